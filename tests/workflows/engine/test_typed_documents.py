"""The engine runs what the validator of format 2 accepts: on whatever the steps give, every run comes to its end."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from tests.properties import examples
from tests.workflows.definitions.test_typed_property import Maker, Walk, repaired
from tests.workflows.definitions.typed import KINDS, findings
from tests.workflows.engine import blocks_support
from tests.workflows.engine.blocks_support import Driven
from workflows.definitions.rules.document import read_definition
from workflows.engine.inputs import StepReported
from workflows.kinds.base import EventType, Json, StepAnswer, StepKind

pytestmark = pytest.mark.unit


def _called() -> StepKind:
    """A call whose answers the test gives."""
    events = {
        name: EventType(name=f"call.{name}", direction="in", description=name, schema={"type": "object"})
        for name in ("completed", "failed")
    }
    kind = replace(
        KINDS["call_service"],
        effect="none",
        waits=True,
        prepare=None,
        completion=events["completed"],
        failure=events["failed"],
        answer=lambda params, payload: StepAnswer(outcome="on_complete", output=payload),
        bind=None,
    )
    return replace(kind, bind=lambda params: replace(kind, output_schema=params["returns"], bind=None))


@pytest.fixture(autouse=True)
def called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(blocks_support.KINDS, "call_service", _called())


def driven(document: Json, random: Random) -> Driven:
    walk = Walk(document, random)
    definition = read_definition(document | {"workflow_timeout_seconds": 1_000_000}, definition_id="d")
    run = Driven(definition, given=walk.value(document["input"]))
    run.start()
    while run.state.working():
        one = random.choice(run.state.working())
        if random.random() < 0.25:
            payload = {"reason_code": "image_quality", "retryable": False}
            run.tell(StepReported(run.now, "call.failed", one.id, payload))
        else:
            payload = walk.value(document["steps"][one.step_id]["params"]["returns"])
            run.tell(StepReported(run.now, "call.completed", one.id, payload))
    return run


@examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_a_run_of_an_accepted_document_never_halts_for_an_expression(seed: int) -> None:
    random = Random(seed)
    # A share outside 0 to 1 is not a matter of kinds.
    document = repaired(Maker(random, sampling=False).make())
    assume(not findings(document))
    run = driven(document, random)
    assert (run.state.state, run.state.halt_reason) == ("completed", "")
