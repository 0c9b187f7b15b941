"""Makes and ends delegations. A delegation says who stands in for a reviewer: their claims and messages go there. It
gives no vote: the delegate has the tier themselves, and votes in their own name."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q

from attempts.lifecycle.services.due import each_due
from attempts.reviews.errors import DelegateAway, DelegateWithoutTier, DelegationExists, NotAReviewer, NotYourDelegation
from attempts.reviews.models import LONGEST, Delegation
from attempts.reviews.selectors.delegations import colleague, has_delegated
from attempts.reviews.selectors.reviews import actor_at, database_now, review_get, review_overdue
from attempts.reviews.selectors.standing import ROLE, role_holders
from attempts.reviews.services.claim import claim_move, claims_lock
from attempts.reviews.services.decide import record_review
from attempts.reviews.states import DelegationEnd, ReviewStatus
from governance.ledger.services import ledger_append, person_commitment
from governance.people.models import User
from governance.people.rules.roles import OPERATE
from governance.people.selectors.people import person_may
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import CLOCK, Actor, ActorKind
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require

LONGEST_HOURS = LONGEST // timedelta(hours=1)
SHORTEST = timedelta(minutes=15)
EARLIEST = timedelta(days=90)  # planned no longer ahead: roles change until then
AWAY = "reviewer_away"
BATCH = 200


@dataclass(frozen=True, slots=True)
class Cover:
    """What the person asks for. Without `starts_at` it begins at once."""

    tier: str
    to_username: str
    reason_code: str
    ends_at: datetime
    starts_at: datetime | None = None


@violations_recorded
def delegation_create(*, actor: Actor, at: datetime, organization: Organization, cover: Cover) -> Delegation:
    """Delegates a tier of the actor to somebody who has it too."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    with transaction.atomic():
        return _create(actor=actor, at=at, organization=organization, cover=cover)


def review_delegate(
    *,
    actor: Actor,
    at: datetime,
    review_id: UUID,
    to_username: str,
    hours: int,
    tier: str = "",
    reason_code: str = AWAY,
) -> Delegation:
    """Delegates a tier of this review from now on, for all its reviews. Without `tier`: the giver's first tier in this
    review."""
    if not 1 <= hours <= LONGEST_HOURS:
        raise InvalidInput(errors=[FieldError("/hours", f"from 1 to {LONGEST_HOURS}")])
    cover = Cover(tier, to_username, reason_code or AWAY, database_now() + timedelta(hours=hours))
    return _review_delegate(actor=actor_at(actor=actor, review_id=review_id), at=at, review_id=review_id, cover=cover)


@violations_recorded
def _review_delegate(*, actor: Actor, at: datetime, review_id: UUID, cover: Cover) -> Delegation:
    with transaction.atomic():
        review = review_get(review_id=review_id)
        tiers = [part["tier"] for part in review.parts]
        held = role_holders(organization_id=review.organization_id, tiers=tiers, people=_person(actor))
        tier = cover.tier or next((name for name in tiers if name in held), review.tier)
        if tier in held and (review.status != ReviewStatus.REQUESTED or review_overdue(review, database_now())):
            raise WrongState("This review has ended.")
        delegation = _create(
            actor=actor, at=at, organization=review.organization, cover=replace(cover, tier=tier), review_id=review.id
        )
        payload = {"delegation": str(delegation.id), "delegated_tier": tier}
        record_review(review, "review.delegated", actor=actor, at=at, reason_code=cover.reason_code, payload=payload)
    return delegation


def _create(
    *, actor: Actor, at: datetime, organization: Organization, cover: Cover, review_id: UUID | None = None
) -> Delegation:
    # Reviews before people, as a vote locks them: the other way round the two could deadlock.
    claimed = claims_lock(organization_id=organization.id, people=_person(actor), tier=cover.tier)
    receiver = _sides_lock(organization.id, actor, cover)
    giver = _check_sides(organization.id, actor, receiver, cover.tier, review_id)
    reason_code_require(organization_id=organization.id, scope=Scope.DELEGATION, code=cover.reason_code)
    now = database_now()
    starts_at = max(cover.starts_at or now, now)
    _check_times(now, starts_at, cover.ends_at)
    delegation = Delegation(
        organization=organization,
        tier=cover.tier,
        from_user_id=giver,
        to_user=receiver,
        reason_code=cover.reason_code,
        created_at=at,
        starts_at=starts_at,
        ends_at=cover.ends_at,
    )
    _insert(delegation, now)
    _record(delegation, "delegation.created", actor=actor, at=at, reason_code=cover.reason_code)
    if starts_at <= now:
        for locked in claimed:
            claim_move(locked, delegation, actor=actor, at=at, now=now)
    return delegation


@violations_recorded
def delegation_end(*, actor: Actor, at: datetime, delegation_id: UUID) -> Delegation:
    """Ends a delegation at once: by either side, or by an operator."""
    found = tenant_get(Delegation, delegation_id)
    if not actor.may_act_in(found.organization_id):
        raise NotFound
    with transaction.atomic():
        # Both people: a vote that is being cast waits, or this waits for it. So the record never shows a vote that
        # was refused for a delegation which had ended, or accepted beside one that was in force.
        _people_lock(found.from_user_id, found.to_user_id)
        delegation = tenant_get(Delegation, delegation_id, lock=True)
        cause = _may_end(actor, delegation)
        if delegation.ended_at is not None or delegation.ends_at <= database_now():
            raise WrongState("This delegation has ended.")
        _end(delegation, cause, actor=actor, at=at)
    return delegation


def delegations_end_for(*, user_id: UUID, organization_id: UUID, role: str | None, actor: Actor, at: datetime) -> None:
    """Ends the delegations of a person who lost a tier or their access, in both directions. The caller has locked the
    person's row and opened the transaction."""
    if role is not None and not role.startswith(ROLE):
        return
    cause = DelegationEnd.DEACTIVATED if role is None else DelegationEnd.ROLE_TAKEN
    rows = Delegation.objects.filter(
        Q(from_user_id=user_id) | Q(to_user_id=user_id), organization_id=organization_id, ended_at=None
    )
    if role is not None:
        rows = rows.filter(tier=role.removeprefix(ROLE))
    for delegation in rows.select_for_update(no_key=True, of=("self",)).order_by("id"):
        _end(delegation, cause, actor=actor, at=at)


def delegations_expire(*, at: datetime) -> int:
    """Puts the end of delegations that ran out on record, and returns how many. They no longer counted anyway."""
    with every_tenant():
        due = Delegation.objects.filter(ended_at=None, ends_at__lte=at).order_by("ends_at", "id")
        return each_due(iter(due.values_list("id", flat=True)[:BATCH]), _run_out, tick="delegations_expire")


def _run_out(delegation_id: UUID) -> bool:
    rows = Delegation.objects.filter(id=delegation_id, ended_at=None)
    # SKIP LOCKED: somebody is ending it just now. The next run looks again.
    delegation = rows.select_for_update(no_key=True, of=("self",), skip_locked=True).first()
    if delegation is None or delegation.ends_at > database_now():
        return False
    _end(delegation, DelegationEnd.RAN_OUT, actor=CLOCK, at=delegation.ends_at)
    return True


def _end(delegation: Delegation, cause: DelegationEnd, *, actor: Actor, at: datetime) -> None:
    delegation.ended_at = at
    delegation.ended_by_id = actor.id if actor.kind is ActorKind.PERSON else None
    delegation.end_cause = cause.value
    delegation.save(update_fields=["ended_at", "ended_by", "end_cause"])
    _record(delegation, "delegation.ended", actor=actor, at=at, cause=cause.value)


def _record(
    delegation: Delegation, action: str, *, actor: Actor, at: datetime, reason_code: str = "", **more: str
) -> None:
    ledger_append(
        action=action,
        organization_id=delegation.organization_id,
        subject_type="delegation",
        subject_id=delegation.id,
        actor=actor,
        at=at,
        payload={
            "tier": delegation.tier,
            "from": person_commitment(user_id=delegation.from_user_id),
            "to": person_commitment(user_id=delegation.to_user_id),
            "starts_at": delegation.starts_at.isoformat(),
            "until": delegation.ends_at.isoformat(),
            **more,
        },
        reason_code=reason_code,
    )


def _may_end(actor: Actor, delegation: Delegation) -> DelegationEnd:
    person = actor.id if actor.kind is ActorKind.PERSON else None
    if person is not None:
        if person == delegation.from_user_id:
            return DelegationEnd.BY_DELEGATOR
        if person == delegation.to_user_id:
            return DelegationEnd.BY_DELEGATE
        if person_may(user_id=person, organization_id=delegation.organization_id, permission=OPERATE):
            return DelegationEnd.BY_OPERATOR
    raise NotYourDelegation(
        subject_type="delegation", subject_id=delegation.id, organization_id=delegation.organization_id
    )


def _people_lock(*people: UUID) -> None:
    # NO KEY UPDATE: conflicts with the FOR SHARE of a vote and with the loss of a role, but not with rows that only
    # refer to the person. In the order of ids, so that two delegations cannot wait for each other.
    list(User.objects.select_for_update(no_key=True).filter(id__in=people).order_by("id").values_list("id"))


def _person(actor: Actor) -> list[UUID]:
    return [actor.id] if actor.kind is ActorKind.PERSON and actor.id is not None else []


def _sides_lock(organization_id: UUID, actor: Actor, cover: Cover) -> User:
    """The person who receives the delegation, with both rows locked."""
    receiver = colleague(organization_id=organization_id, username=cover.to_username)
    if receiver is None:
        _require_tier(organization_id, actor, cover.tier)
        # A name of another organization and one that does not exist get the same answer, so names cannot be probed.
        raise InvalidInput(errors=[FieldError("/to_username", "is nobody who has a role in this organization")])
    _people_lock(receiver.id, *_person(actor))
    return receiver


def _require_tier(organization_id: UUID, actor: Actor, tier: str, review_id: UUID | None = None) -> UUID:
    """The person who delegates. Only an own role counts, so that nothing is passed on."""
    giver = next(iter(_person(actor)), None)
    if giver is None or not role_holders(organization_id=organization_id, tiers=[tier], people=[giver]):
        raise NotAReviewer(
            "Only a reviewer of the tier can delegate it.",
            subject_type="review" if review_id else "",
            subject_id=review_id,
            organization_id=organization_id,
        )
    return giver


def _check_sides(organization_id: UUID, actor: Actor, receiver: User, tier: str, review_id: UUID | None) -> UUID:
    """Who delegates. Both must have the tier, read under the locks of both people."""
    giver = _require_tier(organization_id, actor, tier, review_id)
    if receiver.id == giver:
        raise InvalidInput(errors=[FieldError("/to_username", "must be somebody else")])
    if not role_holders(organization_id=organization_id, tiers=[tier], people=[receiver.id]):
        raise DelegateWithoutTier(
            subject_type="review" if review_id else "", subject_id=review_id, organization_id=organization_id
        )
    if has_delegated(organization_id=organization_id, tier=tier, person=receiver.id):
        raise DelegateAway
    return giver


def _check_times(now: datetime, starts_at: datetime, ends_at: datetime) -> None:
    wrong = []
    if starts_at > now + EARLIEST:
        wrong.append(FieldError("/starts_at", f"at most {EARLIEST.days} days from now"))
    if not SHORTEST <= ends_at - starts_at <= LONGEST:
        wrong.append(FieldError("/ends_at", f"from 15 minutes to {LONGEST.days} days after the beginning"))
    if wrong:
        raise InvalidInput(errors=wrong)


def _insert(delegation: Delegation, now: datetime) -> None:
    # One that ran out a moment ago may not be on record as ended yet. It is no obstacle.
    earlier = Delegation.objects.select_for_update(no_key=True, of=("self",)).filter(
        organization_id=delegation.organization_id,
        from_user_id=delegation.from_user_id,
        tier=delegation.tier,
        ended_at=None,
        ends_at__lte=now,
    )
    for row in earlier:
        _end(row, DelegationEnd.RAN_OUT, actor=CLOCK, at=row.ends_at)
    try:
        with transaction.atomic():
            delegation.save(force_insert=True)
    # The unique constraint decides: a look-up before the insert would lose the race against a second request.
    except IntegrityError as error:
        raise DelegationExists from error
