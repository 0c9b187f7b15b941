"""Parallel branches, items, rounds, delays: one case each. What holds in all cases is in `blocks_support`."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.workflows.engine.blocks_support import Driven, check_end, definition, step
from tests.workflows.engine.support import always
from workflows.engine.effects import Emit, Perform
from workflows.engine.inputs import Overdue, RetryDue, StepReported
from workflows.engine.state import visible_context
from workflows.kinds.base import Json

pytestmark = pytest.mark.unit
ENDS = {"on_complete": "done", "on_failure": "sorry"}


def _parallel(join: Any = "all", others: str = "finish", branches: int = 3, kind: str = "pay") -> Driven:
    names = ["a", "b", "c"][:branches]
    params = {"branches": {name: f"{name}1" for name in names}, "join": join, "others": others}
    steps = {"fork": step("parallel", ENDS, params=params)}
    steps |= {f"{name}1": step(kind, "JOIN") for name in names}
    steps |= {"done": step("emit_final", "TERMINAL"), "sorry": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps))
    driven.start()
    return driven


def test_branches_go_on_at_the_same_time_and_join_once_all_have_completed() -> None:
    driven = _parallel()
    assert driven.here() == ["fork.1:a/a1", "fork.1:b/b1", "fork.1:c/c1"]
    driven.complete("b1")
    driven.complete("a1")
    assert driven.state.state == "running"
    driven.complete("c1")
    assert driven.state.state == "completed"
    assert driven.state.context["fork"] == {name: {"ended": "completed"} for name in "abc"}
    check_end(driven)


def test_any_goes_on_with_the_first_and_cancels_the_others() -> None:
    driven = _parallel("any", "cancel")
    driven.complete("b1")
    assert driven.state.state == "completed"
    assert driven.ends("a1") == driven.ends("c1") == ["cancelled"]
    assert driven.state.context["fork"] == {
        "a": {"ended": "cancelled"},
        "b": {"ended": "completed"},
        "c": {"ended": "cancelled"},
    }
    assert driven.row("done").state == "completed"
    check_end(driven)


def test_any_may_wait_for_the_others_to_finish() -> None:
    driven = _parallel("any", "finish")
    driven.complete("b1")
    driven.fail("a1")
    assert driven.state.state == "running"
    driven.complete("c1")
    assert (driven.state.state, driven.ends("sorry")) == ("completed", [])


def test_at_least_two_of_three_fails_as_soon_as_two_have_failed() -> None:
    driven = _parallel({"at_least": 2}, "cancel")
    driven.fail("a1")
    assert driven.state.state == "running"
    driven.fail("c1")
    assert driven.ends("b1") == ["cancelled"]
    assert (driven.ends("done"), driven.ends("sorry")) == ([], ["completed"])
    check_end(driven)


def test_what_was_sent_in_a_cancelled_branch_has_an_unknown_outcome_and_what_was_not_is_withdrawn() -> None:
    driven = _parallel("any", "cancel", branches=2)
    driven.fail("a1", retryable=False)
    driven.complete("b1")
    results = [one.result for one in driven.effects if type(one).__name__ == "Settle"]
    assert results == ["failed", "succeeded", "succeeded"]
    driven = _parallel("any", "cancel", branches=2)
    driven.complete("b1")
    results = [one.result for one in driven.effects if type(one).__name__ == "Settle"]
    assert results == ["succeeded", "unknown", "succeeded"]


def test_a_cancelled_branch_does_not_even_begin_its_next_step() -> None:
    assigned = {"params": {"values": {"x": "1"}}}
    steps = {
        "fork": step(
            "parallel", "done", params={"branches": {"a": "a1", "b": "b1"}, "join": "any", "others": "cancel"}
        ),
        "a1": step("assign", "JOIN", **assigned),
        "b1": step("assign", "b2", **assigned),
        "b2": step("pay", "JOIN"),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    assert (driven.state.state, driven.ends("b2")) == ("completed", [])


def test_a_late_answer_to_a_cancelled_branch_is_stale() -> None:
    params = {"branches": {"a": "a1", "b": "b1"}, "join": "any", "others": "cancel"}
    steps = {
        "fork": step("parallel", "rest", params=params),
        "a1": step("pay", "JOIN"),
        "b1": step("pay", "JOIN"),
        "rest": step("pay", "done"),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    late = driven.at("a1")
    driven.complete("b1")
    assert driven.complete(late).outcome == "stale"
    assert driven.here() == ["rest"]


def test_a_halt_inside_a_branch_halts_the_run_and_resuming_goes_on_everywhere() -> None:
    steps = {
        "fork": step("parallel", "done", params={"branches": {"a": "a1", "b": "b1"}}),
        "a1": step("call_check", {"on_complete": "JOIN", "on_failure": "stop"}),
        "stop": step("halt"),
        "b1": step("pay", "b2"),
        "b2": step("pay", "JOIN"),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    driven.complete("b1")
    driven.fail("a1")
    assert (driven.state.state, driven.state.halt_reason) == ("halted", "consent_missing")
    assert driven.ends("b2") == ["cancelled"]
    driven.intervene("resume")
    assert driven.here() == ["fork.1:a/a1", "fork.1:b/b2"]
    assert driven.ends("stop") == ["skipped"]
    driven.complete("a1")
    driven.complete("b2")
    assert driven.state.state == "completed"
    assert driven.ends("b1") == ["completed"], "what had ended was not done again"
    check_end(driven)


def test_a_person_halts_and_cancels_everything_that_is_open() -> None:
    driven = _parallel()
    driven.intervene("halt")
    assert driven.here() == []
    driven.intervene("resume")
    assert driven.here() == ["fork.1:a/a1", "fork.1:b/b1", "fork.1:c/c1"]
    driven.intervene("cancel")
    assert driven.ends("fork") == ["cancelled"]
    assert driven.state.state == "cancelled"
    check_end(driven)


def test_a_refusal_of_one_branch_halts_before_the_next_one_is_asked_about() -> None:
    said = iter([("deny", "policy_denied", 0)])
    steps = {
        "fork": step("parallel", "done", params={"branches": {"a": "a1", "b": "b1"}}),
        "a1": step("pay", "JOIN"),
        "b1": step("pay", "JOIN"),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps), say=lambda: next(said))
    driven.start()
    assert driven.state.halt_reason == "policy_denied"
    assert driven.ends("b1") == ["cancelled"]
    driven.say = always("allow")
    driven.intervene("resume")
    assert driven.here() == ["fork.1:a/a1", "fork.1:b/b1"]
    check_end(driven)


def _each(over: str, body: Json | None = None, **params: Any) -> Driven:
    steps = {
        "each": step("for_each", ENDS, params={"over": over, "body": "one"} | params),
        "one": body or step("pay", "JOIN"),
        "done": step("emit_final", "TERMINAL"),
        "sorry": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps), given={"lines": [10, 20, 30, 40, 50]})
    driven.start()
    return driven


def test_items_run_some_at_a_time_and_each_sees_its_own() -> None:
    driven = _each("input.lines", max_parallel=2)
    assert driven.here() == ["each.1:1/one", "each.1:2/one"]
    assert visible_context(driven.state, "each.1:2")["item"] == 20
    driven.complete("each.1:2/one")
    assert driven.here() == ["each.1:1/one", "each.1:3/one"]
    for number in (1, 3, 4, 5):
        driven.complete(f"each.1:{number}/one")
    assert driven.state.context["each"] == {"count": 5, "ends": ["completed"] * 5}
    assert "one" not in driven.state.context, "an item's outputs are seen in that item only"
    check_end(driven)


def test_an_empty_list_is_done_at_once_and_no_list_fails() -> None:
    assert _each("[]").state.context["each"] == {"count": 0, "ends": []}
    assert _each("[]", join="any").ends("sorry") == ["completed"]
    assert _each("input.lines == input.lines").ends("sorry") == ["completed"]


def test_a_failed_item_leads_to_the_failure_outcome_once_the_others_are_done() -> None:
    driven = _each("[1, 2]")
    driven.fail("each.1:1/one")
    driven.complete("each.1:2/one")
    assert driven.state.context["each"]["ends"] == ["failed", "completed"]
    assert driven.ends("sorry") == ["completed"]


def _loop(condition: str, rounds: int = 3, body: Json | None = None) -> Driven:
    params = {"body": "again", "while": condition, "max_rounds": rounds}
    steps = {
        "loop": step("loop", {"on_complete": "done", "on_exhausted": "tired"}, params=params),
        "again": body or step("pay", "JOIN"),
        "done": step("emit_final", "TERMINAL"),
        "tired": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps, output={"last": "again.value", "rounds": "loop.rounds"}))
    driven.start()
    return driven


def test_a_loop_asks_after_each_round_and_its_last_round_stays_visible() -> None:
    driven = _loop("again.value < 5")
    driven.complete("again", value=1)
    assert driven.here() == ["loop.1:2/again"]
    assert visible_context(driven.state, "loop.1:2")["round"] == 2
    driven.complete("again", value=7)
    assert driven.state.output == {"last": 7, "rounds": 2}
    assert [one.payload["output"] for one in driven.effects if isinstance(one, Emit) and "output" in one.payload] == [
        {"last": 7, "rounds": 2}
    ]


def test_a_loop_ends_after_its_last_round() -> None:
    driven = _loop("round > 0")
    for _ in range(3):
        driven.complete("again")
    assert driven.ends("tired") == ["completed"]
    assert driven.state.output == {"last": 1, "rounds": 3}


def test_a_failure_inside_a_loop_at_the_root_halts_there_and_goes_on_in_the_same_round() -> None:
    driven = _loop("round < 3")
    driven.complete("again")
    driven.fail("again")
    assert (driven.state.state, driven.state.halt_step_id) == ("halted", "again")
    driven.intervene("resume")
    assert driven.here() == ["loop.1:2/again"]


def test_a_long_loop_costs_the_same_at_the_end_as_at_the_start() -> None:
    steps = {
        "outer": step("loop", "done", params={"body": "inner", "while": "round < 20", "max_rounds": 50}),
        "inner": step("loop", "JOIN", params={"body": "work", "while": "round < 25", "max_rounds": 50}),
        "work": step("pay", "JOIN"),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    sizes = []
    while driven.state.state == "running":
        sizes.append(len(driven.stored.tokens) + len(str(driven.stored.instance.context)))
        driven.complete("work")
    assert len(sizes) == 500
    assert max(driven.read) <= 3
    assert max(sizes) - min(sizes) < 40, "only the digits of counters grow"


def test_a_delay_is_a_row_with_a_time_and_nothing_else() -> None:
    steps = {"wait": step("delay", "done", params={"seconds": 60}), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps))
    run = driven.start()
    assert [type(one) for one in run.effects] == [Emit]
    waiting = driven.at("wait")
    assert (waiting.state, driven.state.state) == ("pending", "running")
    assert driven.tell(RetryDue(driven.now, waiting.id)).outcome == "stale"
    driven.due("wait")
    assert driven.state.context["wait"] == {"waited_until": "2026-11-16T12:01:00.000000Z"}
    assert driven.state.state == "completed"


def test_a_delay_until_a_moment_that_has_passed_goes_on_at_once() -> None:
    steps = {
        "wait": step("delay", "done", params={"until": "input.when"}),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps), given={"when": "2026-11-01T00:00:00Z"})
    driven.start()
    assert driven.state.state == "completed"
    later = Driven(definition(steps), given={"when": "2026-11-20T00:00:00+02:00"})
    later.start()
    assert later.at("wait").next_eligible_at == datetime(2026, 11, 19, 22, tzinfo=UTC)
    nonsense = Driven(definition(steps), given={"when": "soon"})
    nonsense.start()
    assert nonsense.state.halt_reason == "condition_failed"


def test_values_are_assigned_with_their_kinds() -> None:
    values = {"total": "input.price * 3", "cheap": "input.price < 5", "name": '"a"'}
    steps = {"sum": step("assign", "done", params={"values": values}), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps, output={"total": "sum.total"}), given={"price": 2})
    driven.start()
    assert driven.state.context["sum"] == {"total": 6, "cheap": True, "name": "a"}
    assert driven.state.output == {"total": 6}


def test_an_output_that_cannot_be_evaluated_halts_the_run_at_its_last_step() -> None:
    driven = Driven(definition({"done": step("emit_final", "TERMINAL")}, output={"x": "input.missing"}))
    driven.start()
    assert (driven.state.state, driven.state.halt_reason) == ("halted", "condition_failed")


def test_a_step_that_is_overdue_is_marked_and_goes_on() -> None:
    steps = {"one": step("pay", "done", due_seconds=60), "done": step("emit_final", "TERMINAL")}
    driven = Driven(definition(steps))
    driven.start()
    one = driven.at("one")
    assert driven.tell(Overdue(driven.now, one.id)).outcome == "stale"
    run = driven.tell(Overdue(one.due_at, one.id))
    assert driven.row("one").overdue
    assert [one.event_type for one in run.effects if isinstance(one, Emit)] == ["workflow.overdue"]
    assert driven.tell(Overdue(one.due_at, one.id)).outcome == "stale"
    driven.complete("one")
    assert driven.state.state == "completed"


def test_a_step_whose_time_is_over_takes_its_outcome_or_fails_its_branch() -> None:
    steps = {
        "fork": step("parallel", ENDS, params={"branches": {"a": "a1", "b": "b1"}}),
        "a1": step("watch", {"on_complete": "JOIN", "on_timeout": "JOIN"}, timeout_seconds=10),
        "b1": step("pay", "JOIN", timeout_seconds=20),
        "done": step("emit_final", "TERMINAL"),
        "sorry": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    driven.time_out("a1")
    assert (driven.row("a1").state, driven.row("a1").outcome) == ("timed_out", "on_timeout")
    driven.time_out("b1")
    assert driven.ends("sorry") == ["completed"]
    check_end(driven)


def test_a_block_whose_time_is_over_ends_what_is_inside() -> None:
    steps = {
        "fork": step(
            "parallel",
            ENDS,
            params={"branches": {"a": "a1"}},
            timeout_seconds=5,
        ),
        "a1": step("pay", "JOIN"),
        "done": step("emit_final", "TERMINAL"),
        "sorry": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    driven.time_out(driven.row("fork"))
    assert (driven.ends("fork"), driven.ends("a1")) == (["timed_out"], ["cancelled"])
    assert driven.ends("sorry") == ["completed"]
    check_end(driven)


def test_a_retry_stays_in_its_branch_and_a_person_names_which_one_should_not_wait() -> None:
    steps = {
        "fork": step("parallel", "done", params={"branches": {"a": "a1", "b": "b1"}}),
        "a1": step("pay", "JOIN", max_retries=2),
        "b1": step("pay", "JOIN", max_retries=2),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    failed = driven.at("a1")
    driven.fail("a1", retryable=True)
    driven.fail("b1", retryable=True)
    assert driven.ends("a1") == ["failed", "pending"]
    driven.intervene("retry_step", driven.at("b1").id)
    assert (driven.at("a1").state, driven.at("b1").state) == ("pending", "in_progress")
    run = driven.complete(failed)
    assert run.outcome == "stale"
    driven.tell(StepReported(driven.now, "pay.completed", failed.id, {"value": 1}, contradicts=True))
    assert driven.state.halt_reason == "outcome_unknown"


def test_what_holdpoint_performs_itself_is_asked_for_and_then_reported() -> None:
    driven = Driven(
        definition({"one": step("look_up", "done"), "done": step("emit_final", "TERMINAL")}), given={"x": 1}
    )
    run = driven.start()
    asked = next(one for one in run.effects if isinstance(one, Perform))
    assert (asked.step_id, asked.payload) == ("one", {"seen": ["case_id", "input"]})
    driven.complete("one")
    assert driven.state.state == "completed"


def test_the_outputs_of_completed_branches_are_seen_after_the_join_and_not_before() -> None:
    driven = _parallel("any", "finish", branches=2)
    driven.complete("a1", value=3)
    assert "a1" not in visible_context(driven.state, "fork.1:b")
    driven.fail("b1")
    assert driven.state.context["a1"] == {"value": 3}
    assert "b1" not in driven.state.context


def test_people_are_waited_for_only_when_nothing_else_goes_on() -> None:
    steps = {
        "fork": step("parallel", "done", params={"branches": {"a": "a1", "b": "b1"}}),
        "a1": step("request_human_review", "JOIN"),
        "b1": step("pay", "JOIN"),
        "done": step("emit_final", "TERMINAL"),
    }
    driven = Driven(definition(steps))
    driven.start()
    assert driven.state.state == "running"
    driven.complete("b1")
    assert driven.state.state == "waiting_approval"
    driven.complete("a1")
    assert driven.state.state == "completed"
    check_end(driven)
