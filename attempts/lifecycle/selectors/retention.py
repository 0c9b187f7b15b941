"""Attempts as a subject of retention and erasure, and the tables of this app that an export contains."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from attempts.execution.models import DispatchIntent, Receipt
from attempts.intake.models import EffectAsk, IdempotencyRecord, RepeatedRefusal
from attempts.lifecycle.models import Attempt, AttemptTransition
from attempts.lifecycle.states import FINAL_STATES, AttemptState
from attempts.notify.models import ChatIdentity, ChatWorkspace, Notification, NotificationRoute
from attempts.proposals.models import ProposalAnswer, ShutdownProposal
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Delegation, Review, ReviewVote, VoteSignature
from governance.enforcement.models import EnforcementDecision
from governance.retention.hooks import ExportTable, SubjectKind
from governance.retention.rules import RetentionSubject

NAMES = (
    "id",
    "created_at",
    "ended_at",
    "retention_until",
    "state",
    "workflow_slug",
    "patient_context_ref",
    "target_ref",
    "payload_ref",
    "quarantine_case__resolution",
    "quarantine_case__resolved_at",
)


def _attempts_about(organization_id: UUID, reference: str) -> QuerySet[Attempt]:
    """Attempts whose context or target is this reference."""
    about = Q(patient_context_ref=reference) | Q(target_ref=reference)
    return Attempt.objects.filter(about, organization_id=organization_id)


def _subjects(rows: QuerySet[Attempt]) -> list[RetentionSubject]:
    return [_subject(*row) for row in rows.filter(erased_at=None).order_by("id").values_list(*NAMES)]


def _subject(
    id_: UUID,
    created_at: datetime,
    ended_at: datetime | None,
    until: datetime | None,
    state: str,
    slug: str,
    context: str,
    target: str,
    payload: str,
    resolution: str | None,
    resolved_at: datetime | None,
) -> RetentionSubject:
    return RetentionSubject(
        kind="attempt",
        id=id_,
        created_at=created_at,
        # The end and a later resolution count as activity, which extends retention.
        last_activity_at=max(moment for moment in (created_at, ended_at, resolved_at) if moment),
        retention_until=until,
        finished=state in FINAL_STATES,
        unresolved=state == AttemptState.QUARANTINED and not resolution,
        contract=slug,
        references=frozenset({context, target, payload} - {""}),
    )


def _due(organization_id: UUID, at: datetime, after: UUID, limit: int) -> list[RetentionSubject]:
    rows = Attempt.objects.filter(organization_id=organization_id, retention_until__lte=at, erased_at=None)
    # Ids first, by key and with a limit: the join with quarantine cases is then made for one page only.
    ids = list(rows.filter(id__gt=after).order_by("id").values_list("id", flat=True)[:limit])
    return _subjects(Attempt.objects.filter(id__in=ids)) if ids else []


def _get(organization_id: UUID, row_id: UUID) -> RetentionSubject | None:
    return next(iter(_subjects(Attempt.objects.filter(organization_id=organization_id, id=row_id))), None)


def _unstamped(organization_id: UUID, limit: int) -> int:
    rows = Attempt.objects.filter(organization_id=organization_id, retention_until=None, erased_at=None)
    return rows.order_by()[:limit].count()


ATTEMPT = SubjectKind(
    name="attempt",
    title="Attempts",
    door="attempts_erase",
    due=_due,
    about=lambda organization_id, reference: _subjects(_attempts_about(organization_id, reference)),
    get=_get,
    unstamped=_unstamped,
)


class OfAttempt:
    """A condition for rows that belong to an attempt about the reference."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, organization_id: UUID, reference: str) -> Q:
        return Q(**{f"{self.path}__in": _attempts_about(organization_id, reference).values("id")})


def _reviews_about(organization_id: UUID, reference: str) -> QuerySet[Review]:
    """Reviews of attempts about the reference, and human reviews about it."""
    own = Q(attempt__in=_attempts_about(organization_id, reference).values("id")) | Q(subject_ref=reference)
    return Review.objects.filter(own, organization_id=organization_id)


def _votes(organization_id: UUID, reference: str) -> Q:
    return Q(review__in=_reviews_about(organization_id, reference).values("id"))


def _signatures(organization_id: UUID, reference: str) -> Q:
    return Q(vote__review__in=_reviews_about(organization_id, reference).values("id"))


def _decisions(organization_id: UUID, reference: str) -> Q:
    """The decision about each request, and those before its acts."""
    attempts = _attempts_about(organization_id, reference)
    return Q(id__in=attempts.values("decision_id")) | Q(subject_id__in=attempts.values("id"))


def attempt_ledger_about(organization_id: UUID, reference: str) -> Q:
    attempts = _attempts_about(organization_id, reference)
    cases = QuarantineCase.objects.filter(attempt__in=attempts.values("id"))
    return (
        Q(subject_id__in=attempts.values("id"))
        | Q(subject_id__in=attempts.values("decision_id"))
        | Q(subject_id__in=_reviews_about(organization_id, reference).values("id"))
        | Q(subject_id__in=cases.values("id"))
    )


def attempt_export_tables() -> Iterable[ExportTable]:
    through = "attempt__organization_id"
    return [
        ExportTable(Attempt, about=OfAttempt("id")),
        ExportTable(AttemptTransition, through, about=OfAttempt("attempt")),
        ExportTable(DispatchIntent, through, about=OfAttempt("attempt")),
        ExportTable(Receipt, through, about=OfAttempt("attempt")),
        ExportTable(IdempotencyRecord, about=OfAttempt("attempt")),
        ExportTable(RepeatedRefusal, about=OfAttempt("attempt")),
        ExportTable(EffectAsk, about=OfAttempt("attempt")),
        ExportTable(QuarantineCase, about=OfAttempt("attempt")),
        ExportTable(Review, about=lambda o, r: Q(id__in=_reviews_about(o, r).values("id"))),
        ExportTable(ReviewVote, "review__organization_id", about=_votes),
        ExportTable(VoteSignature, "vote__review__organization_id", about=_signatures),
        ExportTable(Delegation),
        ExportTable(Notification, about=_votes),
        ExportTable(NotificationRoute),
        ExportTable(ShutdownProposal),
        ExportTable(ProposalAnswer, "proposal__organization_id"),
        ExportTable(ChatWorkspace, without=frozenset({"bot_token_sealed", "signing_secret_sealed"})),
        ExportTable(ChatIdentity, "workspace__organization_id"),
        ExportTable(
            EnforcementDecision,
            about=_decisions,
            without=frozenset({"frame_sha256"}),
        ),
    ]


LEFT_OUT = {
    "attempts.slot": "slots of attempts that are under way: hashes, no history",
    "attempts.casenotice": "who was told of which quarantine case; the cases themselves are exported",
    "attempts.holdsnotice": "who was told how many holds are open; the attempts themselves are exported",
    "attempts.receivercircuit": "whether calls to a receiver are paused now; the ledger, which is exported, says when",
    "attempts.keyendnotice": "which ends of API keys were told; the keys themselves are exported",
    "attempts.proposalnotice": "which proposed shutdowns were told; the proposals themselves are exported",
    "attempts.chatlinkcode": "hashes of codes that are valid for ten minutes",
    "attempts.votechallenge": "random numbers that are valid for five minutes",
}
