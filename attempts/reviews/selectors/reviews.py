"""Reads and locks reviews: lists, one review with its attempt, the database's clock, what blocks a release now, which
reviews may be decided together, whether their votes are signed, and by whom."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review, ReviewVote, VoteSignature
from attempts.reviews.states import ReviewKind, ReviewStatus
from governance.console.selectors.lists import uuid_or_none
from governance.contracts.models import Contract
from governance.contracts.states import ContractState, SignatureKind
from governance.enforcement.models import snapshot_load
from governance.enforcement.selectors import intake_facts
from governance.enforcement.sql import Closed
from governance.outages.selectors import deadline_in_force
from governance.people.rules.passkeys import Assertion, assertion_fault, vote_challenge
from governance.people.selectors.sign_in import KnownPasskey, passkeys_known
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import NotFound
from reasoncodes.base.tenancy import every_tenant

ME, UNCLAIMED = "me", "unclaimed"


@dataclass(frozen=True, slots=True)
class LockedReview:
    """A locked review and its locked attempt; a human review has no attempt."""

    attempt: Attempt | None
    review: Review

    @property
    def is_open(self) -> bool:
        return self.review.status == ReviewStatus.REQUESTED

    def overdue(self, now: datetime) -> bool:
        return review_overdue(self.review, now)


def review_deadline(review: Review, now: datetime) -> datetime | None:
    """Until when votes count. Later than `expires_at` if Holdpoint could not act meanwhile; the row keeps what was
    promised."""
    if review.expires_at is None:
        return None
    return deadline_in_force(review.expires_at, began=review.requested_at, now=now)


def review_overdue(review: Review, now: datetime) -> bool:
    """Open and past its deadline: no vote counts any more, even before the scheduled task has ended it."""
    if review.status != ReviewStatus.REQUESTED or review.expires_at is None or review.expires_at > now:
        return False
    return deadline_in_force(review.expires_at, began=review.requested_at, now=now) <= now


def database_now() -> datetime:
    """The database's clock, by which deadlines count: the clocks of web servers and workers differ."""
    # Not the start of the transaction (`now()`): it may have waited for a lock since then.
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def review_list(
    *,
    actor: Actor,
    now: datetime,
    status: str | None = None,
    kind: str | None = None,
    tier: str | None = None,
    assigned: str | None = None,
) -> QuerySet[Review]:
    rows = Review.objects.select_related("attempt", "claimed_by").order_by("-id")
    exact = {"status": status, "kind": kind}
    rows = rows.filter(**{name: value for name, value in exact.items() if value is not None})
    if tier is not None:
        rows = rows.filter(_concerns(tier))
    if assigned == ME:
        mine = actor.id if actor.kind is ActorKind.PERSON else None
        return rows.filter(claimed_by_id=mine, claimed_until__gt=now) if mine else rows.none()
    if assigned == UNCLAIMED:
        return rows.filter(Q(claimed_by=None) | Q(claimed_until__lte=now), status=ReviewStatus.REQUESTED)
    return rows


def _concerns(tier: str) -> Q:
    """Reviews of a tier. If several tiers must approve an open review: only those whose approval still helps."""
    waiting = Q(status=ReviewStatus.REQUESTED)
    several = (waiting & Q(open_tiers__contains=[tier])) | (~waiting & Q(buckets__contains=[{"tier": tier}]))
    return Q(tier=tier, buckets=[]) | several


def review_get(*, review_id: UUID) -> Review:
    return tenant_get(Review, review_id)


def review_before(*, review: Review) -> Review | None:
    """The last review that released the attempt before this one was opened."""
    rows = Review.objects.filter(attempt=review.attempt, status=ReviewStatus.APPROVED, id__lt=review.id)
    return rows.order_by("-id").first()


def review_lock(*, review_id: UUID) -> LockedReview:
    """Locks the attempt, if there is one, and the review (FOR NO KEY UPDATE)."""
    # Attempt before review, the lock order everywhere: the other way round two services could deadlock. The unlocked
    # read before is safe, because the attempt of a review never changes.
    attempt_id = review_get(review_id=review_id).attempt_id
    attempt = tenant_get(Attempt, attempt_id, lock=True) if attempt_id is not None else None
    return LockedReview(attempt, tenant_get(Review, review_id, lock=True))


def review_lock_if_free(*, review_id: UUID) -> LockedReview | None:
    """The same for scheduled tasks; None if another transaction has locked one of the rows."""
    # SKIP LOCKED: a person who is voting must not make the task wait. The next run finds the row again.
    attempts = Attempt.objects.filter(review__id=review_id)
    attempt = attempts.select_for_update(no_key=True, of=("self",), skip_locked=True).first()
    # `attempt=None` finds only a human review: if the attempt's row was skipped, its review is not found either.
    reviews = Review.objects.filter(id=review_id, attempt=attempt)
    review = reviews.select_for_update(no_key=True, of=("self",), skip_locked=True).first()
    return LockedReview(attempt, review) if review is not None else None


def actor_at(*, actor: Actor, review_id: UUID) -> Actor:
    """The actor, narrowed to the review's organization, so that a violation is recorded in that organization."""
    organization_id = review_get(review_id=review_id).organization_id
    if not actor.may_act_in(organization_id):
        raise NotFound
    return replace(actor, organization_ids=frozenset({organization_id}))


def claimed_by_other(review: Review, *, person: UUID | None, now: datetime) -> bool:
    live = review.claimed_by_id is not None and review.claimed_until is not None and review.claimed_until > now
    return live and review.claimed_by_id != person


def release_blocked(*, attempt: Attempt) -> str | None:
    """The reason code of what blocks a release now, by the contract and the shutdowns as they are now; else None."""
    organization = attempt.organization
    facts = intake_facts(organization=organization, slug=attempt.workflow_slug, version=str(attempt.contract_version))
    if facts is None or Closed.ORGANIZATION in facts.closed_by:
        return "attempt_creation_disabled"
    if Closed.SHUTDOWN in facts.closed_by:
        return facts.stopped_by
    if not facts.closed_by:
        return None
    if facts.contract.closed_reason_code == "readiness_revoked":
        return "readiness_revoked"
    return "contract_retired" if facts.contract.state == ContractState.RETIRED else "contract_suspended"


MOST = 100  # each is a transaction of its own, all within one request
LOW = "low"


def bulk_rows(*, review_ids: Iterable[UUID]) -> list[Review]:
    """These reviews, as far as they are in scope, by deadline."""
    # One more than allowed, so that `bulk_widths` notices a set that is too large.
    wanted = list(dict.fromkeys(review_ids))[: MOST + 1]
    rows = Review.objects.filter(id__in=wanted).select_related("attempt__caller", "claimed_by")
    return list(rows.order_by("expires_at", "id"))


def bulk_widths(*, rows: Sequence[Review]) -> list[str]:
    """Why these reviews may not be decided together, as sentences; empty if they may."""
    attempts = [row.attempt for row in rows if row.attempt is not None]
    contracts = {(attempt.workflow_slug, attempt.contract_version) for attempt in attempts}
    found = []
    if not rows:
        found.append("Nothing is chosen.")
    if len(rows) > MOST:
        found.append(f"More than {MOST} are chosen.")
    if any(row.kind != ReviewKind.RELEASE for row in rows):
        found.append("Cases are judged one by one.")
    if len(contracts) > 1:
        found.append("They belong to several contracts.")
    if any(attempt.risk_tier != LOW for attempt in attempts):
        found.append("Not all of them are of the low risk tier.")
    return found


def reviews_shown(*, rows: QuerySet[Review], status: str, kind: str) -> QuerySet[Review]:
    """Reviews that ended with this status; for any other status, open reviews, of this kind if one is given."""
    if status in set(ReviewStatus) - {ReviewStatus.REQUESTED}:
        # The condition of the partial index `review_ended` is repeated: otherwise PostgreSQL could not use it.
        return rows.exclude(status=ReviewStatus.REQUESTED).filter(status=status)
    rows = rows.filter(status=ReviewStatus.REQUESTED)
    return rows.filter(kind=kind) if kind in set(ReviewKind) else rows


def review_matches(term: str) -> Q | None:
    """The search of the list of reviews: by the id of a review, of its attempt, or of the step that waits for it."""
    wanted = uuid_or_none(term)
    if wanted is None:
        return None
    return Q(id=wanted) | Q(attempt_id=wanted) | Q(origin_step=wanted, status=ReviewStatus.REQUESTED)


def signature_needed(*, review: Review, attempt: Attempt | None) -> bool:
    """Whether votes in this review are signed: the contract of its attempt says so, for a workflow step that of its
    run."""
    contract_id = attempt.contract_id if attempt is not None else review.contract_id
    return contract_id is not None and _asks(contract_id)


@lru_cache(maxsize=4096)
def _asks(contract_id: UUID) -> bool:
    # Cached for good: attempts exist only under a contract that was opened, and its snapshot never changes after that.
    with every_tenant():
        snapshot = Contract.objects.values_list("snapshot_sha256", flat=True).get(id=contract_id)
    # Snapshots from before signatures do not have the field.
    return bool(snapshot and snapshot_load(snapshot).get("signature") == SignatureKind.PASSKEY)


def review_asks_signature(*, review_id: UUID) -> bool:
    found = Review.objects.filter(id=review_id).values_list("attempt__contract_id", "contract_id").first()
    contract = (found[0] or found[1]) if found else None
    return contract is not None and _asks(contract)


@dataclass(frozen=True, slots=True)
class VoteSigned:
    """What readers are told about the signature of a vote. `by_person` is false for one that does not stand the
    check."""

    by_person: bool
    registered_at: datetime
    registered_entry: UUID


def votes_signed(*, votes: Sequence[ReviewVote]) -> dict[UUID, VoteSigned]:
    """By vote. Unsigned votes are missing. Every signature is checked again, with the key from the ledger."""
    rows = {row.vote_id: row for row in VoteSignature.objects.filter(vote__in=votes)} if votes else {}
    known = passkeys_known(passkey_ids={row.passkey for row in rows.values()})
    return {
        vote.id: VoteSigned(
            signature_stands(vote=vote, row=rows[vote.id], known=known.get(rows[vote.id].passkey)),
            rows[vote.id].registered_at,
            rows[vote.id].registered_entry,
        )
        for vote in votes
        if vote.id in rows
    }


def signature_stands(*, vote: ReviewVote, row: VoteSignature, known: KnownPasskey | None) -> bool:
    """Whether the voter's own passkey signed exactly this vote."""
    if known is None or known.registered.person != vote.voter_ref or known.entry_id != row.registered_entry:
        return False
    challenge = vote_challenge(
        review=str(vote.review_id), action_digest=vote.action_digest, verdict=vote.verdict, nonce=row.nonce
    )
    return assertion_fault(_assertion(row), challenge=challenge, registered=known.registered) is None


def _assertion(row: VoteSignature) -> Assertion:
    return Assertion(
        bytes(row.credential_id), bytes(row.authenticator_data), bytes(row.client_data_json), bytes(row.signature)
    )
