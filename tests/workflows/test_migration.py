"""Runs that are under way go on under another version: previewed, moved as logged inputs, replayed across the move."""

from copy import deepcopy
from typing import Any

import pytest
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.running import REGION
from tests.workflows.world import World
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.runs.models import BulkIntervention, WorkflowInstance
from workflows.runs.services.bulk import bulk_work
from workflows.runs.services.replay import instance_replay

NAME = "ai_with_confidence_escalation"


@pytest.fixture
def world(cast: Cast) -> World:
    return World(cast, NAME)


def document(**steps: Any) -> dict[str, Any]:
    found = deepcopy(definition_starter(NAME))
    found["steps"] |= steps
    return found


def call(world: World, definition: WorkflowDefinition, **body: Any) -> Any:
    url = f"/api/v1/workflow-definitions/{definition.id}/migrate"
    return world.cast.api("orchestrator:intervene").post(url, body, format="json")


def move(world: World, definition: WorkflowDefinition, **body: Any) -> dict[str, int]:
    """Ordered, and worked off as a worker does."""
    answer = call(world, definition, preview=False, **body)
    assert answer.status_code == 202, answer.json()
    with every_tenant():
        bulk = BulkIntervention.objects.get(id=answer.json()["bulk_intervention_id"])
        bulk_work(bulk_id=bulk.id, now=timezone.now, region=REGION)
    shown = world.cast.api("orchestrator:read-instances").get(answer["Location"]).json()
    return {name: shown[name] for name in ("total", "done", "refused", "waiting")}


def replayed(world: World, run: WorkflowInstance) -> list[str]:
    with every_tenant():
        return instance_replay(instance=world.fresh(run)).differences


def test_a_run_that_is_moved_gets_its_answer_and_goes_on_by_the_new_version(world: World) -> None:
    old, run = world.definition, world.start()
    stricter = document()
    stricter["steps"]["branch_confidence"]["expr"] = "ai_review.confidence < 0.95"
    new = world.publish(stricter)
    seen = call(world, new, from_version=old.version).json()
    assert (seen["total"], seen["can_go"], seen["cannot"]) == (1, 1, 0)
    assert world.fresh(run).definition_id == old.id
    assert move(world, new, from_version=old.version) == {"total": 1, "done": 1, "refused": 0, "waiting": 0}
    moved = world.fresh(run)
    assert (moved.definition_id, moved.definition_sha256) == (new.id, new.snapshot_sha256)
    assert (moved.contract_id, moved.context["definition_id"]) == (new.contract_id, str(new.id))
    world.complete(run)
    world.complete(run)
    world.complete(run, confidence=0.93)
    assert world.fresh(run).state == "waiting_approval"
    world.judge(run)
    world.follow()
    assert world.fresh(run).state == "completed"
    assert replayed(world, run) == []
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=run.id, action="workflow.migrated")
        assert entry.payload["status"] == "running"


def test_a_step_that_waits_for_an_answer_stays_and_one_that_waits_for_nobody_may_move(world: World) -> None:
    old, waiting, halted = world.definition, world.start(), world.start()
    world.complete(halted, granted=False, missing_types=["ai_analysis"])
    look = {
        "kind": "require_images",
        "params": {"min_count": 3},
        "transitions": {"on_pass": "ai_review", "on_fail": "halt_images"},
    }
    changed = document(look=look)
    changed["start_step"] = "look"
    for name in ("consent_gate", "image_check", "halt_consent"):
        del changed["steps"][name]
    new = world.publish(changed)
    without = {one["instance_id"]: one for one in call(world, new, from_version=old.version).json()["runs"]}
    assert not any(one["can_go"] for one in without.values())
    mapping = {"consent_gate": "look"}
    seen = call(world, new, from_version=old.version, mapping=mapping).json()["runs"]
    told = {one["instance_id"]: one for one in seen}
    assert told[str(halted.id)]["can_go"]
    assert not told[str(waiting.id)]["can_go"]
    assert "waits for an answer from outside" in told[str(waiting.id)]["why"][0]
    done = move(world, new, from_version=old.version, mapping=mapping)
    assert (done["done"], done["refused"]) == (1, 1)
    assert (world.fresh(waiting).definition_id, world.fresh(halted).definition_id) == (old.id, new.id)
    world.intervene(halted, "resume")
    current = world.current(halted)
    assert (current.step_id, world.fresh(halted).state) == ("look", "running")
    assert [replayed(world, run) for run in (waiting, halted)] == [[], []]


def test_an_output_that_the_run_never_got_keeps_it_from_going(world: World) -> None:
    old, run = world.definition, world.start()
    world.complete(run)
    world.complete(run)
    early = document()
    early["steps"]["first_look"] = early["steps"]["ai_review"] | {
        "transitions": {"on_complete": "consent_gate", "on_failure": "halt_ai"}
    }
    early["start_step"] = "first_look"
    early["steps"]["branch_confidence"]["expr"] = "first_look.confidence < 0.7"
    new = world.publish(early)
    (one,) = call(world, new, from_version=old.version).json()["runs"]
    assert (one["instance_id"], one["can_go"]) == (str(run.id), False)
    assert one["why"] == ["`branch_confidence` reads the output of `first_look`, which this run has not been through."]


def test_the_way_back_is_open_until_something_happens(world: World) -> None:
    old, run, other = world.definition, world.start(), world.start()
    new = world.publish(document())
    assert move(world, new, from_version=old.version)["done"] == 2
    world.complete(other)
    assert move(world, old, from_version=new.version) == {"total": 2, "done": 1, "refused": 1, "waiting": 0}
    assert (world.fresh(run).definition_id, world.fresh(other).definition_id) == (old.id, new.id)
    world.complete(run)
    assert [replayed(world, one) for one in (run, other)] == [[], []]


def test_what_names_no_version_or_no_step_is_refused(world: World) -> None:
    old = world.definition
    world.start()
    new = world.publish(document())
    cases: list[tuple[dict[str, Any], str]] = [
        ({"from_version": 99}, "/from_version"),
        ({"from_version": new.version}, "/from_version"),
        ({"from_version": old.version, "mapping": {"unknown": "ai_review"}}, "/mapping"),
        ({"from_version": old.version, "mapping": {"ai_review": "unknown"}}, "/mapping"),
    ]
    for body, pointer in cases:
        answer = call(world, new, **body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)
    reader = world.cast.api("orchestrator:read-instances")
    url = f"/api/v1/workflow-definitions/{new.id}/migrate"
    assert reader.post(url, {"from_version": old.version}, format="json").status_code == 403
