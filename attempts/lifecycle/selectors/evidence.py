"""The rows of attempts that go into an evidence bundle, and the locks under which they are read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, Model, OuterRef

from attempts.execution.models import DispatchIntent, Receipt
from attempts.lifecycle.models import Attempt, AttemptTransition
from attempts.lifecycle.selectors.attempts import attempt_get
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review, ReviewVote, VoteSignature
from governance.enforcement.models import EnforcementDecision
from governance.evidence.hooks import FIRST, EndedSubject
from governance.evidence.models import EvidenceBundle
from governance.evidence.rules import BundleSubject, Material, canonical_plain
from governance.evidence.states import EvidenceKind

# Columns by hand: a bundle is given away, so a new column must not enter it unnoticed.
ATTEMPT = [
    "id",
    "organization_id",
    "contract_id",
    "decision_id",
    "caller_id",
    "workflow_slug",
    "contract_version",
    "request_trace_id",
    "idempotency_key",
    "patient_context_ref",
    "review_owner",
    "runtime_mode",
    "connector",
    "operation",
    "target_ref",
    "effect",
    "risk_tier",
    "payload_ref",
    "payload_sha256",
    "fields",
    "action_digest",
    "metadata",
    "state",
    "reason_code",
    "retry_of_id",
    "compensates_id",
    "origin_step",
    "tries",
    "created_at",
    "ended_at",
]
TRANSITION = ["id", "attempt_id", "from_state", "to_state", "reason_code", "actor_kind", "actor_ref", "at"]
INTENT = [
    "id",
    "attempt_id",
    "decision_id",
    "number",
    "fence",
    "once",
    "adapter",
    "effect_key",
    "action_digest",
    "executor_ref",
    "at",
]
RECEIPT = [
    "id",
    "attempt_id",
    "intent_id",
    "outcome",
    "late",
    "category",
    "retryable",
    "reason_code",
    "response_metadata",
    "reversible",
    "reversal_hint",
    "cost",
    "at",
]
REVIEW = [
    "id",
    "kind",
    "attempt_id",
    "decision_id",
    "origin_step",
    "subject_ref",
    "tier",
    "approvals_required",
    "buckets",
    "excluded",
    "action_digest",
    "status",
    "requested_at",
    "expires_at",
    "requeues",
    "decided_at",
]
VOTE = [
    "id",
    "review_id",
    "voter_ref",
    "on_behalf_of_ref",
    "verdict",
    "tier",
    "reason_code",
    "result_ref",
    "result_sha256",
    "outcome",
    "form",
    "action_digest",
    "at",
]
CASE = [
    "id",
    "attempt_id",
    "category",
    "reason_code",
    "escalation_owner",
    "escalated_at",
    "incident_ref",
    "finding",
    "evidence_ref",
    "found_by_ref",
    "resolution",
    "resolved_by_ref",
    "resolved_at",
    "follow_up_id",
    "opened_at",
]


class AttemptCollector:
    def organization(self, *, subject_id: UUID) -> UUID:
        return attempt_get(attempt_id=subject_id).organization_id

    def record(self, *, subject_id: UUID) -> frozenset[UUID]:
        attempt = attempt_get(attempt_id=subject_id)
        return attempts_record(attempts=[attempt], reviews=_reviews_of([attempt.id]))

    def ended(self, *, subject_id: UUID) -> EndedSubject | None:
        attempt = attempt_get(attempt_id=subject_id)
        if attempt.ended_at is None or attempt.origin_step is not None or attempt.ended_at == attempt.created_at:
            return None
        return EndedSubject(attempt.id, attempt.contract_id, attempt.risk_tier)

    def ended_without(
        self, *, between: tuple[datetime, datetime], contracts: Sequence[UUID], limit: int, after: UUID = FIRST
    ) -> list[EndedSubject]:
        """Not attempts of workflow steps, which are in the bundle of their run; nor those that were denied at the door:
        a caller who is refused again and again would otherwise have a zip written for each refusal."""
        made = EvidenceBundle.objects.filter(subject_id=OuterRef("id"))
        rows = Attempt.objects.filter(
            id__gt=after, contract_id__in=contracts, ended_at__range=between, origin_step=None, erased_at=None
        ).exclude(ended_at=F("created_at"))
        found = rows.filter(~Exists(made)).order_by("id").values_list("id", "contract_id", "risk_tier")[:limit]
        return [EndedSubject(*row) for row in found]

    def collect(self, *, subject_id: UUID) -> Material:
        """Collects the attempt and everything that belongs to it."""
        # Locked, because a bundle shows one moment: without it a vote could be in it and its effect not. Attempt before
        # review, the lock order everywhere.
        attempts = attempts_lock(attempt_ids=[subject_id])
        attempt = attempts[0]
        reviews = reviews_lock(attempt_ids=[subject_id])
        return Material(
            subject=BundleSubject(EvidenceKind.ATTEMPT, attempt.id, f"attempt under {attempt}"),
            organization_id=attempt.organization_id,
            record=attempts_record(attempts=attempts, reviews=reviews),
            decisions=decisions_of(attempts=attempts),
            **attempts_rows(attempts=attempts, reviews=reviews),
        )


def attempts_lock(*, attempt_ids: Sequence[UUID]) -> list[Attempt]:
    """Locks the attempts (FOR NO KEY UPDATE), after the instance and before the reviews."""
    # Oldest first: two collectors that lock the same rows in different orders could deadlock.
    rows = Attempt.objects.select_for_update(no_key=True, of=("self",)).filter(id__in=attempt_ids)
    return list(rows.order_by("id"))


def reviews_lock(*, attempt_ids: Sequence[UUID], steps: Sequence[UUID] = ()) -> list[Review]:
    """Locks the reviews of these held attempts and the human reviews of these steps (FOR NO KEY UPDATE)."""
    rows = Review.objects.select_for_update(no_key=True, of=("self",))
    held = list(rows.filter(attempt_id__in=attempt_ids).order_by("id"))
    return held + (list(rows.filter(origin_step__in=steps).order_by("id")) if steps else [])


def decisions_of(*, attempts: Sequence[Attempt]) -> tuple[UUID, ...]:
    """The decision about each request, and those before its acts."""
    again = EnforcementDecision.objects.filter(subject_id__in=[attempt.id for attempt in attempts]).order_by("id")
    return (*(attempt.decision_id for attempt in attempts), *again.values_list("id", flat=True))


def attempts_record(*, attempts: Sequence[Attempt], reviews: Sequence[Review]) -> frozenset[UUID]:
    """The ids that ledger entries about these attempts have as subject: attempts, decisions, reviews, cases, and the
    passkeys that people signed with."""
    cases = QuarantineCase.objects.filter(attempt__in=attempts).values_list("id", flat=True)
    passkeys = VoteSignature.objects.filter(vote__review__in=reviews).values_list("passkey", flat=True)
    return frozenset(
        {
            *(attempt.id for attempt in attempts),
            *decisions_of(attempts=attempts),
            *(review.id for review in reviews),
            *cases,
            *passkeys,
        }
    )


def attempts_rows(*, attempts: Sequence[Attempt], reviews: Sequence[Review]) -> dict[str, Any]:
    """The rows by the name of their file in the bundle."""
    # Of notes only the hash: a note can be erased, but a bundle that was given away cannot be taken back.
    ids = [attempt.id for attempt in attempts]
    votes = list(ReviewVote.objects.filter(review__in=reviews).select_related("note").order_by("id"))
    return {
        "attempts": rows_shown(attempts, ATTEMPT),
        "transitions": rows_shown(AttemptTransition.objects.filter(attempt_id__in=ids).order_by("id"), TRANSITION),
        "reviews": rows_shown(reviews, REVIEW),
        "votes": _votes_shown(votes),
        "intents": rows_shown(DispatchIntent.objects.filter(attempt_id__in=ids).order_by("id"), INTENT),
        "receipts": rows_shown(Receipt.objects.filter(attempt_id__in=ids).order_by("id"), RECEIPT),
        "quarantine": rows_shown(QuarantineCase.objects.filter(attempt_id__in=ids).order_by("id"), CASE),
    }


def _votes_shown(votes: Sequence[ReviewVote]) -> list[dict[str, Any]]:
    signed = {row.vote_id: row.as_document() for row in VoteSignature.objects.filter(vote__in=votes)}
    return [
        one(vote, VOTE) | {"note_sha256": vote.note.sha256 if vote.note else "", "signature": signed.get(vote.id)}
        for vote in votes
    ]


def rows_shown(rows: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    return [one(row, names) for row in rows]


def one(row: Model, names: Sequence[str]) -> dict[str, Any]:
    """These columns of a row as plain JSON values."""
    found: dict[str, Any] = canonical_plain({name: getattr(row, name) for name in names})
    return found


def _reviews_of(attempt_ids: Sequence[UUID]) -> list[Review]:
    return list(Review.objects.filter(attempt_id__in=attempt_ids))
