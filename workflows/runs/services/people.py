"""Steps for people: what a task asks and whom, and the choice of a reviewer by a rule.

The choice is made when its signal is followed, in the transaction that completes the step, and the person is in the
log: replay takes them from there.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection

from attempts.reviews.services.human_task import TaskAsked
from governance.ledger.rules.entry import canonical_sha256
from governance.ledger.services import person_commitment
from reasoncodes.base.actors import SYSTEM, ActorKind
from workflows.engine.effects import OpenReview
from workflows.engine.state import Run, visible_context
from workflows.kinds.assign_reviewer import IN_TURN, KIND, OTHER, SAME
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.locked import definition_of
from workflows.runs.selectors.people import (
    assigned_last,
    last_assignment,
    reviewers_of,
    run_requester,
    tasks_open,
)
from workflows.runs.services.signal import signal_put

ASSIGN = "assign"


def task_asked(instance: WorkflowInstance, run: Run, effect: OpenReview, step: WorkflowStep) -> TaskAsked:
    """What people are asked, and who may not answer: whoever asked for the run."""
    shown = effect.shown or {}
    requester = run_requester(instance=instance)
    service = requester.id if requester.kind == ActorKind.SERVICE else None
    return TaskAsked(
        organization_id=instance.organization_id,
        origin_step=step.id,
        tier=effect.tier,
        step_kind=step.step_kind,
        shown=shown,
        # A vote is bound to all of it: what is asked, of which step, under which definition.
        digest=canonical_sha256({"step": str(step.id), "definition": instance.definition_sha256, "task": shown}),
        context_ref=f"case/{instance.case_id}",
        expires_at=step.timeout_at,
        due_at=step.due_at,
        asked_by=service,
        requester_refs=(requester.ref,) if requester.kind == ActorKind.PERSON else (),
        assigned=_assigned(instance, run, effect.tier, step),
    )


def _assigned(instance: WorkflowInstance, run: Run, tier: str, step: WorkflowStep) -> str:
    """The person whom the last assignment of this tier named, of those that the step can see."""
    seen = visible_context(run.state, step.scope)
    definition = definition_of(instance)
    named = [
        one.id
        for one in definition.steps.values()
        if one.kind == KIND.name and one.params.get("tier") == tier and "reviewer" in (seen.get(one.id) or {})
    ]
    if not named:
        return ""
    newest = last_assignment(instance=instance, step_ids=named)
    return str(seen[newest or named[-1]]["reviewer"])


def reviewer_assign(instance: WorkflowInstance, step: WorkflowStep, asked: dict[str, Any], at: datetime) -> None:
    """Performs the step, in the transaction of the advance that began it: only the signal, because who it is depends on
    what other runs choose at the same moment."""
    signal_put(instance.organization_id, step.id, ASSIGN, asked, SYSTEM, at)


def reviewer_choose(*, instance: WorkflowInstance, asked: Mapping[str, Any]) -> str:
    """In the transaction that completes the step, with the run locked. The person's commitment; empty:
    nobody of the tier fits."""
    tier, rule, named = asked["tier"], asked["rule"], asked.get("person", "")
    # Two runs that choose at once take turns: without it both would choose the person who was not chosen for longest.
    with connection.cursor() as cursor:
        turn = f"assign {instance.organization_id} {tier}"
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [turn])
    people = _eligible(instance, tier)
    if rule == SAME:
        return named if named in people else ""
    free = [ref for ref in people if rule != OTHER or ref != named]
    if not free:
        return ""
    if rule in (IN_TURN, OTHER):
        order = assigned_last(organization_id=instance.organization_id, refs=free)
    else:
        order = tasks_open(organization_id=instance.organization_id, refs=free)
    return min(free, key=lambda ref: (order.get(ref, 0), free.index(ref)))


def _eligible(instance: WorkflowInstance, tier: str) -> list[str]:
    """Commitments of the active people of a tier, by user name, without those who asked for the run."""
    requester = run_requester(instance=instance)
    people = reviewers_of(organization_id=instance.organization_id, tier=tier, without=requester.id)
    refs = [person_commitment(user_id=person) for person in people]
    return [ref for ref in refs if requester.kind != ActorKind.PERSON or ref != requester.ref]
