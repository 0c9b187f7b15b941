"""Reading authority changes: lists, one change, the setting in force, and the people who can be second."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from governance.authority.hooks import act_for
from governance.authority.models import AuthorityChange
from governance.authority.rules import ACTS, ActRule, confirm_refusal
from governance.authority.states import AuthorityState
from governance.people.models import User
from governance.people.rules.roles import OPERATE
from governance.people.selectors import confirmers, person_may
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get


def authority_list(*, state: str | None = None, kind: str | None = None) -> QuerySet[AuthorityChange]:
    """Newest first, of the organizations in scope."""
    rows = AuthorityChange.objects.select_related(
        "organization", "proposed_by", "decided_by", "proposed_through", "note"
    )
    named = {name: value for name, value in {"state": state, "kind": kind}.items() if value}
    rows = AuthorityChange.objects.filter(**named)
    return rows.select_related("organization", "proposed_by", "decided_by", "proposed_through", "note")


def authority_get(*, change_id: UUID) -> AuthorityChange:
    return tenant_get(AuthorityChange, change_id)


def authority_waiting_count(*, organization_ids: frozenset[UUID]) -> int:
    waiting = AuthorityChange.objects.filter(state=AuthorityState.PROPOSED, organization_id__in=organization_ids)
    return waiting.count()


def authority_due(*, at: datetime, limit: int) -> list[UUID]:
    """Proposals whose time is over, oldest first."""
    due = AuthorityChange.objects.filter(state=AuthorityState.PROPOSED, expires_at__lte=at).order_by("expires_at")
    return list(due.values_list("id", flat=True)[:limit])


def authority_in_force(*, organization_id: UUID, kind: str, subject: str = "") -> dict[str, Any] | None:
    """The details of the newest change of this kind that is in force; None if there was none. For settings that exist
    only as such changes."""
    rows = AuthorityChange.objects.filter(organization_id=organization_id, kind=kind, state=AuthorityState.IN_FORCE)
    if subject:
        rows = rows.filter(subject=subject)
    found = rows.order_by("-decided_at", "-id").values_list("details", flat=True).first()
    return dict(found) if found is not None else None


def entitled(*, user_id: UUID, organization: Organization, rule: ActRule) -> bool:
    """Whether the person has the right to this act in this organization, now."""
    if rule.installation and not organization.home:
        return False
    return person_may(user_id=user_id, organization_id=organization.id, permission=OPERATE)


def refusal_for(*, change: AuthorityChange, user_id: UUID) -> str:
    """Why this person cannot confirm this change; empty if they can."""
    rule = ACTS[change.kind]
    return confirm_refusal(
        proposer=change.proposed_by_id,
        confirmer=user_id,
        confirmer_entitled=entitled(user_id=user_id, organization=change.organization, rule=rule),
        proposer_entitled=entitled(user_id=change.proposed_by_id, organization=change.organization, rule=rule),
        excluded=act_for(change.kind).excluded(change=change),
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """Who can confirm a change, and who cannot for which reason."""

    can: list[User]
    cannot: list[tuple[User, str]]


def authority_standing(*, change: AuthorityChange) -> Standing:
    """For the page of a change: everybody who operates here, with the reason why not."""
    people = User.objects.filter(id__in=confirmers(organization_id=change.organization_id)).order_by("username")
    told = [(user, refusal_for(change=change, user_id=user.id)) for user in people]
    return Standing([user for user, why in told if not why], [(user, why) for user, why in told if why])
