"""Runs of format 2 in the database: several open steps, joins, timers, people; and what an advance costs."""

from typing import Any
from uuid import uuid4

from django.db import connection
from django.test.utils import CaptureQueriesContext

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.running import ANSWERS
from tests.workflows.world import World, ago, check_record
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.locked import instance_locked_by_id
from workflows.runs.services.advisory import instance_next_step

NAME, ANSWER = ANSWERS["ai_review.requested"]
DONE = {"kind": "emit_final", "transitions": {"on_complete": "TERMINAL"}}
STOP = {"kind": "halt", "params": {"reason_code": "ai_review_failed"}}


def review(to: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "run_ai_review", "transitions": {"on_complete": to, "on_failure": "stop"}} | fields


def block(kind: str, params: dict[str, Any], to: str, second: str = "on_failure") -> dict[str, Any]:
    return {"kind": kind, "params": params, "transitions": {"on_complete": to, second: to}}


def branches(join: Any = "all", others: str = "finish") -> dict[str, Any]:
    params = {"branches": {"left": "one", "right": "wait"}, "join": join, "others": others}
    return {
        "fork": block("parallel", params, "done"),
        "one": review("JOIN"),
        "wait": {"kind": "delay", "params": {"seconds": 60}, "transitions": {"on_complete": "two"}},
        "two": review("JOIN"),
        "stop": STOP,
        "done": DONE,
    }


class Blocks(World):
    """A clinic with a document of format 2."""

    def __init__(self, cast: Cast, steps: dict[str, Any], **fields: Any) -> None:
        document = {"format": 2, "name": "Blocks", "start_step": next(iter(steps)), "steps": steps}
        super().__init__(cast, document | fields)

    def open_steps(self, run: WorkflowInstance) -> dict[str, WorkflowStep]:
        with every_tenant():
            rows = WorkflowStep.objects.filter(instance=run, state__in=["pending", "in_progress", "waiting_approval"])
            return {f"{row.scope}/{row.step_id}".lstrip("/"): row for row in rows.order_by("number")}

    def reviewed(self, run: WorkflowInstance, where: str, **changes: Any) -> str:
        """The AI module answers the step that stands there."""
        step = self.open_steps(run)[where]
        envelope = self.envelope(NAME, ANSWER | changes, case_id=run.case_id, correlation_id=step.id)
        return str(self.send(envelope).event.outcome)

    def settle(self, run: WorkflowInstance) -> None:
        check_record(self, run)


def test_branches_go_on_beside_each_other_and_join(cast: Cast) -> None:
    world = Blocks(cast, branches(), output={"sure": "coalesce(one.confidence, 0) > 0.5"})
    run = world.start(at=ago(600))
    assert list(world.open_steps(run)) == ["fork", "fork.1:left/one", "fork.1:right/wait"]
    assert world.reviewed(run, "fork.1:left/one") == "advanced"
    assert world.fresh(run).state == "running"
    assert world.tick("step_retries_due") == 1
    with every_tenant():
        asked = instance_next_step(instance_id=run.id)
    assert [(one["id"], one["scope"], one["action"]) for one in asked["current_steps"]] == [
        ("two", "fork.1:right", "await_module")
    ]
    assert world.reviewed(run, "fork.1:right/two") == "advanced"
    ended = world.fresh(run)
    assert (ended.state, ended.output) == ("completed", {"sure": True})
    assert ended.context["fork"] == {"left": {"ended": "completed"}, "right": {"ended": "completed"}}
    world.settle(run)


def test_the_first_branch_is_enough_and_the_other_one_is_cancelled(cast: Cast) -> None:
    world = Blocks(cast, branches("any", "cancel"))
    run = world.start()
    late = world.open_steps(run)["fork.1:right/wait"]
    world.reviewed(run, "fork.1:left/one")
    assert world.fresh(run).state == "completed"
    assert ("wait", "cancelled") in world.steps(run)
    with every_tenant():
        assert WorkflowStep.objects.get(id=late.id).next_eligible_at is None
    world.settle(run)


def test_items_wait_for_their_turn_and_a_late_answer_changes_nothing(cast: Cast) -> None:
    params = {"over": "[1, 2, 3]", "body": "one", "max_parallel": 2, "join": {"at_least": 2}, "others": "cancel"}
    steps = {"each": block("for_each", params, "last"), "one": review("JOIN"), "last": review("done"), "stop": STOP}
    world = Blocks(cast, steps | {"done": DONE})
    run = world.start()
    first = world.open_steps(run)["each.1:1/one"]
    world.reviewed(run, "each.1:1/one")
    late = world.open_steps(run)["each.1:3/one"]
    world.reviewed(run, "each.1:2/one")
    assert list(world.open_steps(run)) == ["last"]
    for step in (first, late):
        again = world.envelope(NAME, ANSWER, case_id=run.case_id, correlation_id=step.id)
        assert world.send(again).event.outcome == "stale"
    nobody = world.envelope(NAME, ANSWER, case_id=run.case_id, correlation_id=uuid4())
    assert world.send(nobody).event.drift == "unrequested_completion"
    world.reviewed(run, "last")
    assert world.fresh(run).context["each"] == {"count": 3, "ends": ["completed", "completed", "cancelled"]}
    with every_tenant():
        assert WorkflowStep.objects.get(id=late.id).state == "cancelled"


def test_a_person_halts_all_branches_and_resumes_all_of_them(cast: Cast) -> None:
    world = Blocks(cast, branches())
    run = world.start()
    world.reviewed(run, "fork.1:left/one")
    world.intervene(run, "halt")
    assert list(world.open_steps(run)) == ["fork"]
    world.intervene(run, "resume")
    assert list(world.open_steps(run)) == ["fork", "fork.1:right/wait"]
    world.intervene(run, "cancel")
    assert world.open_steps(run) == {}
    world.settle(run)


def test_a_step_that_is_overdue_is_said_so_once_and_goes_on(cast: Cast) -> None:
    world = Blocks(cast, {"one": review("done", due_seconds=30), "done": DONE, "stop": STOP})
    run, punctual = world.start(at=ago(600)), world.start()
    assert world.tick("steps_overdue") == 1
    assert world.tick("steps_overdue") == 0
    assert (world.open_steps(run)["one"].overdue, world.open_steps(punctual)["one"].overdue) == (True, False)
    assert "workflow.overdue" in [row.event_type for row in world.requests(run)]
    world.reviewed(run, "one")
    assert world.fresh(run).state == "completed"


def _looping(cast: Cast) -> Blocks:
    outer = {"body": "inner", "while": "round < 50", "max_rounds": 50}
    inner = {"body": "one", "while": "round < 50", "max_rounds": 50}
    steps = {
        "outer": block("loop", outer, "done", "on_exhausted"),
        "inner": block("loop", inner, "JOIN", "on_exhausted"),
        "one": review("JOIN"),
        "done": DONE,
        "stop": STOP,
    }
    return Blocks(cast, steps)


def test_an_advance_costs_the_same_after_many_steps_as_after_few(cast: Cast) -> None:
    world = _looping(cast)
    run = world.start()
    costs = []
    for number in range(60):
        (where,) = [name for name in world.open_steps(run) if name.endswith("/one")]
        with CaptureQueriesContext(
            connection,
        ) as counted:
            assert world.reviewed(run, where) == "advanced"
        with every_tenant():
            locked = instance_locked_by_id(instance_id=run.id)
        assert locked is not None
        assert locked.locked_steps is not None
        sent = sum(len(query["sql"]) for query in counted.captured_queries)
        costs.append((number, len(counted), len(locked.locked_steps), len(str(locked.tokens)), sent))
    early, late = costs[5], costs[55]
    assert early[1:3] == late[1:3], "as many statements, as many steps read"
    assert late[2] == 3
    assert abs(early[3] - late[3]) < 40, "only the digits of counters grow"
    with every_tenant():
        assert WorkflowStep.objects.filter(instance=run, step_id="one").count() == 61


def test_format_2_takes_no_more_statements_than_format_1_for_the_same_steps(cast: Cast) -> None:
    steps = {"one": review("two"), "two": review("done"), "done": DONE, "stop": STOP}
    world, counts = Blocks(cast, steps), []
    for plain in (False, True):
        if plain:
            world.publish({"name": "Plain", "start_step": "one", "steps": steps}, slug="plain")
        run = world.start()
        world.answer(run)
        with CaptureQueriesContext(connection) as counted:
            world.answer(run)
        assert world.fresh(run).state == "completed"
        counts.append(len(counted))
    assert counts[0] <= counts[1]
