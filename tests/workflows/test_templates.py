"""The six starters, each run to its end on every branch, through the services and with every row real."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from governance.conditions import EvaluationScope, compile_condition
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.world import World, ago, check_record
from workflows.definitions.rules.document import TERMINAL
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.runs.models import WorkflowInstance, WorkflowStep

pytestmark = pytest.mark.django_db
STARTERS = (
    "ai_only",
    "ai_plus_clinician",
    "ai_with_confidence_escalation",
    "ai_plus_clinician_plus_sa_qa_sample",
    "clinician_only",
    "ai_escalation_plus_sa_sample",
)
Path = list[tuple[str, str]]
FAILING = {
    "gate_on_consent": {"granted": False, "missing_types": ["ai_analysis"]},
    "require_images": {"count": 1, "passed": False, "image_ids": []},
}


def paths(steps: dict[str, Any], at: str, so_far: Path) -> Iterator[Path]:
    """Every way through, as (step, outcome); a halt has none."""
    transitions = steps[at].get("transitions", {})
    if not transitions:
        yield [*so_far, (at, "")]
    for outcome, target in transitions.items():
        way = [*so_far, (at, outcome)]
        if target == TERMINAL:
            yield way
        else:
            yield from paths(steps, target, way)


def is_sampled(expr: str, case_id: UUID, definition_id: str) -> bool:
    scope = EvaluationScope(now=timezone.now(), case_id=str(case_id), definition_id=definition_id)
    return compile_condition(expr).evaluate({}, scope=scope)


def case_for(world: World, way: Path, taken: set[UUID]) -> UUID:
    """One that the definition's samples decide as the way says."""
    steps = world.definition.definition["steps"]
    samples = [(steps[at]["expr"], outcome) for at, outcome in way if "sample" in steps[at].get("expr", "")]
    for number in range(1, 2000):
        case_id = UUID(int=number)
        fits = [is_sampled(expr, case_id, str(world.definition.id)) == (said == "on_true") for expr, said in samples]
        if all(fits) and case_id not in taken:
            taken.add(case_id)
            return case_id
    raise AssertionError("no case is sampled so")


def walk(world: World, way: Path, case_id: UUID, *, decision: str, retry: bool) -> WorkflowInstance:
    """Modules and people answer so that the run goes this way."""
    instance, steps = world.start(case_id=case_id, at=ago(60)), world.definition.definition["steps"]
    low = ("branch_confidence", "on_true") in way
    for at, outcome in way:
        kind = steps[at]["kind"]
        if kind in FAILING:
            world.complete(instance, at=ago(55), **(FAILING[kind] if outcome == "on_fail" else {}))
        elif kind == "run_ai_review" and outcome == "on_failure":
            world.fail(instance, retryable=False)
        elif kind == "run_ai_review":
            if retry:
                world.fail(instance, at=ago(50))
                assert world.tick("step_retries_due") == 1
            world.complete(instance, confidence=0.62 if low else 0.93)
        elif kind == "request_human_review":
            world.judge(instance, decision, name=f"judge-{steps[at]['params']['tier']}".replace("_", "-"))
            world.follow()
    return world.fresh(instance)


@pytest.mark.parametrize("name", STARTERS)
def test_a_starter_comes_to_its_end_on_every_branch(cast: Cast, name: str) -> None:
    world, document = World(cast, name), definition_starter(name)
    ways = list(paths(document["steps"], document["start_step"], []))
    variants = [(way, "confirm", False) for way in ways]
    variants += [(way, "override", True) for way in ways if way[-1][1] == "on_complete"]
    seen: set[tuple[str, str]] = set()
    taken: set[UUID] = set()
    for way, decision, retry in variants:
        instance = walk(world, way, case_for(world, way, taken), decision=decision, retry=retry)
        with every_tenant():
            rows = list(WorkflowStep.objects.filter(instance=instance).order_by("number"))
        tried_again = {row.id for row in rows if row.error and row.error.get("retryable")}
        went = [(row.step_id, row.outcome) for row in rows if row.id not in tried_again]
        assert went == way, name
        last = document["steps"][way[-1][0]]
        if last["kind"] == "halt":
            assert (instance.state, instance.halt_reason) == ("halted", last["params"]["reason_code"])
        else:
            assert instance.state == "completed"
            assert {row.state for row in rows if row.id not in tried_again} == {"completed"}
            assert world.sent(instance)[-1] == "case.workflow.completed"
        check_record(world, instance)
        seen |= set(went)
    everywhere = {(at, one) for at, step in document["steps"].items() for one in step.get("transitions", {"": ""})}
    assert seen == everywhere, "a branch of the definition was not gone through"
