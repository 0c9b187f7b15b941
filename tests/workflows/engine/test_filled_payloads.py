"""What a webhook step of format 2 sends: its template with expressions, filled from what the step reads."""

import pytest

from tests.workflows.engine.blocks_support import Driven, definition, step
from workflows.engine.effects import SendRequest
from workflows.kinds.base import Json

pytestmark = pytest.mark.unit


def hook(template: Json, **given: Json) -> Driven:
    params = {"event_name": "order.done", "payload_template": template}
    steps = {"hook": step("emit_webhook", "done", params=params), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps), given=given)
    driven.start()
    return driven


def test_a_payload_is_filled_with_values_of_their_own_kind() -> None:
    driven = hook({"cents": "{{input.cents * 2}}", "words": "{{input.cents / 100}} EUR"}, cents=1250)
    sent = next(one for one in driven.effects if isinstance(one, SendRequest))
    assert sent.payload == {"event_name": "order.done", "payload": {"cents": 2500, "words": "12.5 EUR"}}
    assert driven.state.state == "completed"


def test_a_payload_that_cannot_be_filled_fails_the_step() -> None:
    driven = hook({"cents": "{{input.gone}}"})
    assert (driven.state.state, driven.state.halt_reason) == ("halted", "condition_failed")
