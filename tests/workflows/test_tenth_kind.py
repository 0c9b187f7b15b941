"""A kind from another installed app: validated, published, requested through the hold point, observed, told of."""

from typing import Any

import pytest

from attempts.lifecycle.models import Attempt
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.running import Running
from workflows.definitions.rules.validate import validate
from workflows.events.rules import event_type
from workflows.kinds.registry import kinds, shipped

pytestmark = pytest.mark.django_db


def document(**step: Any) -> dict[str, Any]:
    return {
        "name": "A letter",
        "start_step": "letter",
        "steps": {
            "letter": {
                "kind": "print_letter",
                "params": {"form": "recall"},
                "transitions": {"on_printed": "done"},
            }
            | step,
            "done": {"kind": "emit_final", "transitions": {"on_complete": "TERMINAL"}},
        },
    }


def test_it_is_known_everywhere_without_being_named_anywhere() -> None:
    assert len(kinds()) == len(shipped()) + 1
    assert kinds()["print_letter"].effect == "once"
    assert event_type("letter.print.requested") is not None


def test_its_effect_forbids_retries_at_publication() -> None:
    found = validate(document(max_retries=2), kinds=kinds(), halt_codes=frozenset(), tiers=frozenset())
    assert [finding.rule for finding in found] == ["effect_forbids_retries"]


def test_it_runs_through_the_hold_point(cast: Cast) -> None:
    running = Running(cast, document())
    instance = running.start()
    assert running.requests(instance)[-1].event_type == "letter.print.requested"
    with every_tenant():
        attempt = Attempt.objects.get()
        assert (attempt.operation, attempt.effect) == ("letter.print.requested", "once")
    running.report(instance, "letter.print.completed", {"letter_ref": "letter-1"})
    instance = running.fresh(instance)
    assert (instance.state, instance.context["letter"]) == ("completed", {"letter_ref": "letter-1"})


def test_a_retryable_failure_of_what_must_not_happen_twice_is_final(cast: Cast) -> None:
    running = Running(cast, document())
    instance = running.start()
    running.report(instance, "letter.print.failed", {"reason_code": "adapter_failed", "retryable": True})
    instance = running.fresh(instance)
    assert (instance.state, instance.halt_reason) == ("halted", "adapter_failed")
