"""What keeps an attempt from being executed now, in words for people. It is not the check before a lease."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from attempts.execution.adapters.base import receiver_name
from attempts.execution.rules import LEASE_SECONDS
from attempts.execution.sql import OLDEST_DUE
from attempts.lifecycle.models import Attempt, Slot
from attempts.lifecycle.selectors.attempts import attempt_decision, attempt_review
from attempts.lifecycle.states import FINAL_STATES, AttemptState, is_ours_to_execute
from attempts.receivers.selectors import Receiver, circuit_open
from attempts.reviews.selectors.standing import approval_stands, progress_of, standing_of
from attempts.reviews.states import ReviewStatus
from governance.enforcement.rules import results_from_document
from governance.enforcement.selectors import intake_facts
from governance.enforcement.sql import Closed
from governance.outages.selectors import deadline_in_force


def lease_deadline(expires_at: datetime, *, now: datetime) -> datetime:
    """When a lease really ends: time in which Holdpoint could not take a heartbeat or a report does not count."""
    return deadline_in_force(expires_at, began=expires_at - timedelta(seconds=LEASE_SECONDS), now=now)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason why an attempt waits, with the facts that help to remove it."""

    kind: str
    detail: str
    facts: dict[str, Any]


def dispatch_lag() -> float:
    """For how many seconds the oldest due attempt has waited for one of our workers; 0 if none does."""
    with connection.cursor() as cursor:
        cursor.execute(OLDEST_DUE)
        found = cursor.fetchone()
    return float(found[0]) if found and found[0] is not None else 0.0


def attempt_obstacles(*, attempt: Attempt, at: datetime) -> list[Obstacle]:
    """All obstacles now; for one that was denied, what denied it; empty for one that has ended or could be leased."""
    if attempt.state == AttemptState.PREFLIGHT_DENIED:
        return _denials(attempt)
    if attempt.state in FINAL_STATES:
        return []
    # Everything at once, not only the first: a person who removes one obstacle should not find the next one after it.
    found = [*_review(attempt, at), *_closed_doors(attempt)]
    if attempt.state == AttemptState.APPROVED:
        found += _signers(attempt, at)
        found += [*_queue(attempt), *_timing(attempt, at)]
    return found


def _denials(attempt: Attempt) -> list[Obstacle]:
    """In the words of the answer that the caller got. Nothing if a person denied it or its time ended."""
    denied = [row for row in results_from_document(attempt_decision(attempt=attempt).results) if row.verdict == "deny"]
    return [
        Obstacle(
            "denied",
            row.explanation,
            {
                "evaluator": row.evaluator,
                "reason_code": row.reason_code,
                "errors": [error.as_json() for error in row.refused_fields],
            },
        )
        for row in denied
    ]


def _review(attempt: Attempt, at: datetime) -> list[Obstacle]:
    review = attempt_review(attempt=attempt)
    if review is None or review.status != ReviewStatus.REQUESTED:
        return []
    standing = standing_of(review=review, attempt=attempt, person=None, now=at)
    by_tier = progress_of(review=review, facts=standing.facts)
    facts = {
        "review_id": str(review.id),
        "tier": review.tier,
        "by_tier": by_tier,
        "approvals": standing.quorum.approvals,
        "approvals_required": review.approvals_required,
        "expires_at": review.expires_at.isoformat() if review.expires_at else None,
    }
    missing = " and ".join(f"{row['missing']} more approval(s) by {row['tier']}" for row in by_tier if row["missing"])
    return [Obstacle("review", f"{missing or 'one more decision'} needed", facts)]


def _signers(attempt: Attempt, at: datetime) -> list[Obstacle]:
    """Whether those who approved it still have the role, which the lease checks again."""
    review = attempt_review(attempt=attempt)
    if review is None or review.status != ReviewStatus.APPROVED:
        return []
    if approval_stands(review=review, attempt=attempt, now=at):
        return []
    facts = {"review_id": str(review.id), "reason_code": "approver_standing_lost"}
    return [Obstacle("approval", "somebody who approved it has lost the role; the next lease denies it", facts)]


def _closed_doors(attempt: Attempt) -> list[Obstacle]:
    """The contract and the shutdowns as they are now, not as they were at intake."""
    # The same facts that a lease reads, without its locks: the answer may be outdated a moment later.
    facts = intake_facts(
        organization=attempt.organization, slug=attempt.workflow_slug, version=str(attempt.contract_version)
    )
    if facts is None:
        return [Obstacle("contract", "the contract is gone", {})]
    found = [
        Obstacle("shutdown", f"a shutdown of scope {row['scope']} is engaged", {"shutdown_id": row["id"]})
        for row in facts.shutdowns
        if not row["drill"]
    ]
    if Closed.STATE in facts.closed_by:
        found.append(Obstacle("contract", f"the contract is {facts.contract.state}", {}))
    return found


def _queue(attempt: Attempt) -> list[Obstacle]:
    if attempt.queued_until is None:
        return []
    # A sample for people: whichever cap is full, these count for the organization's.
    holders = Slot.objects.filter(organization_id=attempt.organization_id).order_by("attempt_id")
    facts = {
        "holders": [str(row) for row in holders.values_list("attempt_id", flat=True)[:20]],
        "queued_until": attempt.queued_until.isoformat(),
    }
    return [Obstacle("cap", "waits for a free slot", facts)]


def _timing(attempt: Attempt, at: datetime) -> list[Obstacle]:
    if attempt.lease_expires_at is not None and attempt.lease_expires_at > at:
        facts = {"lease_owner": attempt.lease_owner, "lease_expires_at": attempt.lease_expires_at.isoformat()}
        return [Obstacle("lease", "an executor has the lease", facts)]
    if attempt.next_eligible_at is not None and attempt.next_eligible_at > at:
        return [Obstacle("timer", "the next try is due later", {"due_at": attempt.next_eligible_at.isoformat()})]
    if attempt.runtime_mode == "shadow":
        return [Obstacle("shadow", "a shadow attempt is never executed", {})]
    return _receiver(attempt)


def _receiver(attempt: Attempt) -> list[Obstacle]:
    """Whether its receiver is down for this organization."""
    if not is_ours_to_execute(attempt) or attempt.origin_step is not None:
        return []
    name = receiver_name(connector=attempt.connector, route=f"{attempt.organization.slug}/{attempt.workflow_slug}")
    row = circuit_open(receiver=Receiver(attempt.organization_id, attempt.connector, name))
    if row is None or row.opened_at is None:
        return []
    facts = {
        "opened_at": row.opened_at.isoformat(),
        "failures": row.failures,
        "probe_at": row.probe_at.isoformat() if row.probe_at else None,
    }
    return [Obstacle("receiver", "the receiver gives no useful answer; one probe at a time is sent", facts)]
