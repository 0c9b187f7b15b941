"""A recorded run under another version: afterwards (what would have happened), and while it is under way (moved)."""

from copy import deepcopy
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import HealthCheck, assume, event, given
from hypothesis import strategies as st

from tests.properties import examples
from tests.workflows.engine.generators import definitions
from tests.workflows.engine.support import KINDS, Driven, definition, step
from tests.workflows.engine.test_properties import happen
from workflows.definitions.rules.document import Definition
from workflows.engine.core import advance
from workflows.engine.inputs import GateAnswered, Input, Migrated, RetryDue, StepReported, TimedOut
from workflows.engine.migration import Crossing
from workflows.engine.what_if import Recorded, RunStory, story_of, what_if
from workflows.runs.states import ENDED

pytestmark = pytest.mark.unit
some = examples(150, suppress_health_check=[HealthCheck.too_slow])
NAMES = ("complete", "complete", "complete_otherwise", "fail", "fail_for_good", "time_out", "retry_due")
SCRIPTS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 20)), max_size=30)


def _driven(found: Definition, script: list[tuple[str, int]]) -> Driven:
    driven = Driven(found)
    driven.start()
    for name, number in script:
        if driven.status in ENDED | {"halted"}:
            break
        happen(driven, name, number)
    return driven


def _about(given_input: Input, names: dict[UUID, str]) -> str:
    if isinstance(given_input, StepReported):
        return names.get(given_input.correlation_id, "") if given_input.correlation_id else ""
    return names.get(given_input.step, "") if isinstance(given_input, GateAnswered | TimedOut | RetryDue) else ""


def _under(driven: Driven, other: Definition) -> RunStory:
    names = {one.id: one.step_id for one in driven.state.steps}
    recorded = [
        Recorded(said, _about(said, names), tuple((names[answer.step], answer) for answer in answers))
        for said, answers, outcome, _ in driven.log
        if outcome == "advanced"
    ]
    return what_if(other, KINDS, deepcopy(driven.first), recorded)


@some
@given(definitions(), SCRIPTS)
def test_under_its_own_definition_a_run_ends_as_it_did(found: Definition, script: list[tuple[str, int]]) -> None:
    driven = _driven(found, script)
    event(driven.status)
    assume(driven.status in ENDED | {"halted"})
    told = _under(driven, found)
    assert told.differs_from(story_of(driven.state)) == []
    assert told.assumed == ()


@some
@given(definitions(), SCRIPTS, st.integers(0, 30))
def test_moving_to_the_same_document_changes_nothing_wherever_the_run_stands(
    found: Definition, script: list[tuple[str, int]], place: int
) -> None:
    still = _driven(found, script)
    moved = _driven(found, script[:place])
    if moved.status not in ENDED:
        assert Crossing(found, found, KINDS, {}).obstacles(moved.state) == []
        moved.state = advance(found, KINDS, moved.state, Migrated(moved.now, {}, "planned_maintenance")).state
    for name, number in script[place:]:
        if moved.status in ENDED | {"halted"}:
            break
        happen(moved, name, number)
    moved.state.context.pop("definition_id", None)
    assert moved.state == still.state


def test_a_step_that_moves_is_closed_and_the_other_one_begins() -> None:
    one = definition(
        {"first": step("request_human_review", "done"), "second": step("request_human_review", "done")}
        | {"done": step("emit_final", "TERMINAL")}
    )
    other = replace(one, start_step="second")
    driven = Driven(one)
    driven.start()
    assert Crossing(one, other, KINDS, {"first": "second"}).obstacles(driven.state) == []
    driven.definition = other
    driven.tell(Migrated(driven.now, {"first": "second"}, "planned_maintenance"))
    assert [(row.step_id, row.state) for row in driven.state.steps] == [
        ("first", "cancelled"),
        ("second", "waiting_approval"),
    ]
