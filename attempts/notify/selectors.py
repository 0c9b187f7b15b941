"""Reads for notifications: routes of a review, who gets mail and how, what a message may say, chat workspaces."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from attempts.lifecycle.models import Attempt
from attempts.notify.models import ChatIdentity, ChatWorkspace, MailChoice, Notification, NotificationRoute
from attempts.notify.rules.facts import ReviewFacts, asked_twice_words, held_again_words
from attempts.notify.states import MailMode, NotificationState, NotifyChannel, RouteState
from attempts.reviews.models import Review, ReviewVote
from attempts.reviews.selectors.card import asked_action
from attempts.reviews.selectors.reviews import database_now, review_before
from attempts.reviews.selectors.standing import facts_of, signers, told
from attempts.reviews.states import FULFILLING, ReviewKind, ReviewStatus
from governance.people.models import User
from governance.people.rules.roles import VIEW
from governance.people.selectors.people import person_may
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.tenancy import every_tenant


def notifications_late(*, at: datetime) -> float:
    """How late the oldest due message is, in seconds. A digest is not late before the end of its interval."""
    due = Notification.objects.filter(state=NotificationState.PENDING, next_try_at__lte=at).order_by(
        "next_try_at", "id"
    )
    oldest = due.values_list("next_try_at", flat=True).first()
    return 0.0 if oldest is None else (at - oldest).total_seconds()


def route_list(*, state: str | None = None, channel: str | None = None) -> QuerySet[NotificationRoute]:
    rows = NotificationRoute.objects.select_related("workspace", "organization").order_by("-id")
    exact = {"state": state, "channel": channel}
    return rows.filter(**{name: value for name, value in exact.items() if value is not None})


def route_get(*, route_id: UUID) -> NotificationRoute:
    return tenant_get(NotificationRoute, route_id)


def workspace_get(*, workspace_id: UUID) -> ChatWorkspace:
    return tenant_get(ChatWorkspace, workspace_id)


def workspace_choices(*, organizations: QuerySet[Organization]) -> QuerySet[ChatWorkspace]:
    return ChatWorkspace.objects.filter(organization__in=organizations, state=RouteState.ACTIVE)


def organizations_told() -> dict[UUID, int]:
    """Organizations with an active route, with their weight. The reviews of others are not read."""
    rows = NotificationRoute.objects.filter(state=RouteState.ACTIVE).order_by()
    return dict(rows.values_list("organization_id", "organization__capacity_units").distinct())


def routes_for(*, review: Review, attempt: Attempt | None) -> list[NotificationRoute]:
    """The active routes for a review, the most specific first. A human review has no contract, so only routes for all
    contracts match it."""
    # Only routes that are older than the review: a new route must not send all reviews that already wait.
    slugs, tiers = {"", attempt.workflow_slug if attempt else ""}, {"", *(part["tier"] for part in review.parts)}
    rows = NotificationRoute.objects.select_related("workspace").filter(
        Q(workspace=None) | Q(workspace__state=RouteState.ACTIVE),
        organization_id=review.organization_id,
        state=RouteState.ACTIVE,
        contract_slug__in=slugs,
        tier__in=tiers,
        created_at__lte=review.requested_at,
    )
    # The first route that leads to a channel or a person wins, so the order decides about single mail or digest.
    return sorted(rows, key=lambda route: (route.contract_slug == "", route.tier == "", route.id))


def chat_routes_of(*, organization_id: UUID, contract_slug: str) -> list[tuple[ChatWorkspace, str]]:
    """The chat channels that are told about this contract, each once."""
    rows = NotificationRoute.objects.select_related("workspace").filter(
        organization_id=organization_id,
        state=RouteState.ACTIVE,
        channel=NotifyChannel.SLACK,
        workspace__state=RouteState.ACTIVE,
        contract_slug__in=["", contract_slug],
    )
    found = {(row.workspace_id, row.chat_channel): row for row in rows}
    return [(row.workspace, row.chat_channel) for row in found.values() if row.workspace is not None]


def people_to_mail(*, review: Review, attempt: Attempt | None, tier: str) -> list[User]:
    """People whose approval would help now, of one tier or of all. For a person who is away, who stands in for them."""
    now = database_now()
    facts = facts_of(review=review, attempt=attempt, person=None, now=now)
    by_tier = told(review=review, by_tier=signers(review=review, facts=facts), now=now)
    chosen = by_tier.get(tier, ()) if tier else (person for people in by_tier.values() for person in people)
    return list({person.id: person for person in chosen}.values())


def mail_modes(*, people: Collection[User]) -> dict[UUID, MailMode]:
    """How each of these people wants mail; people who get none are left out. A refused address counts again when it
    was changed."""
    choices = {row.user_id: row for row in MailChoice.objects.filter(user__in=[person.id for person in people])}
    found: dict[UUID, MailMode] = {}
    for person in people:
        choice = choices.get(person.id)
        refused = choice is not None and choice.refused_address == person.email
        mode = MailMode(choice.mode) if choice is not None else MailMode.ROUTE
        if person.email and not refused and mode is not MailMode.OFF:
            found[person.id] = mode
    return found


def mail_choice(*, user_id: UUID) -> MailChoice:
    return MailChoice.objects.filter(user_id=user_id).first() or MailChoice(user_id=user_id)


def may_get_mail(*, row: Notification) -> bool:
    """Checked just before sending: a person who has left, or who chose no mail meanwhile, gets none."""
    person = row.recipient
    if person is None or person.id not in mail_modes(people=[person]):
        return False
    return person_may(user_id=person.id, organization_id=row.organization_id, permission=VIEW)


def signatures(*, reviews: Sequence[Review]) -> dict[UUID, int]:
    """How many people have approved each review, in one query."""
    votes = ReviewVote.objects.filter(review__in=[review.id for review in reviews], verdict__in=FULFILLING)
    found: dict[UUID, int] = {}
    for review_id in votes.values_list("review_id", flat=True):
        found[review_id] = found.get(review_id, 0) + 1
    return found


def review_facts(*, review: Review, signed: int, base_url: str) -> ReviewFacts:
    """The facts of a review that was read with attempt, contract and decision."""
    attempt = review.attempt
    # The decision that asked for the review: a later one than the attempt's, if it is held again before an act.
    decision = review.decision or (attempt.decision if attempt is not None else None)
    return ReviewFacts(
        review_id=review.id,
        title=attempt.contract.title if attempt is not None else review.label or "A case to judge",
        kind=ReviewKind(review.kind),
        tiers=tuple(part["tier"] for part in review.parts),
        risk=attempt.risk_tier if attempt is not None else "",
        status=ReviewStatus(review.status),
        requested_at=review.requested_at,
        expires_at=review.expires_at,
        approvals=signed,
        approvals_required=review.approvals_required,
        asked=asked_action(attempt=attempt, decision=decision) if attempt is not None and decision else None,
        notices=_notices(review, attempt) if attempt is not None else (),
        link=f"{base_url}/review/{review.id}" if base_url else "",
    )


def _notices(review: Review, attempt: Attempt) -> tuple[tuple[str, str], ...]:
    """The panels "Held again" and "Asked twice" of the card, in one line each."""
    again = None
    if review.decision_id not in {None, attempt.decision_id}:
        again = held_again_words(released=review_before(review=review) is not None, tries=attempt.tries)
    twice = asked_twice_words(attempt.decision.environment.get("effect", {}).get("asked_before", 0))
    return tuple(notice for notice in (again, twice) if notice is not None)


def workspaces_of(*, user: User) -> list[tuple[ChatWorkspace, ChatIdentity | None]]:
    """The active workspaces in scope, each with the person's linked account, if there is one."""
    rows = list(ChatWorkspace.objects.filter(state=RouteState.ACTIVE).select_related("organization").order_by("name"))
    linked = {row.workspace_id: row for row in ChatIdentity.objects.filter(user=user, workspace__in=rows)}
    return [(row, linked.get(row.id)) for row in rows]


def workspace_for_callback(*, workspace_id: UUID) -> ChatWorkspace | None:
    """The workspace of a callback; None if it is unknown or disabled, so that nobody can decide through it."""
    # Across all organizations: a callback has no session, and its URL says which workspace it is for.
    with every_tenant():
        return ChatWorkspace.objects.filter(id=workspace_id, state=RouteState.ACTIVE).first()
