"""Reading authority changes: lists, one change, the setting in force, and the people who can be second."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from governance.authority.hooks import act_for
from governance.authority.models import AuthorityChange
from governance.authority.rules import ACTS, PROPOSED_FOR, ActRule, confirm_refusal
from governance.authority.states import AuthorityState
from governance.authorship.selectors import authors_of
from governance.authorship.states import WorkKind
from governance.people.models import User
from governance.people.rules.roles import OPERATE
from governance.people.selectors.people import ForbiddenPair, confirmers, forbidden_pairs, person_may
from governance.sql.statements import fetch
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.tenancy import in_scope


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
    # Whoever ever answered for the service may have proposed this with its key.
    behind = (
        authors_of(kind=WorkKind.SERVICE, subject_id=change.proposed_through_id)
        if change.proposed_through_id
        else frozenset()
    )
    excluded = dict.fromkeys(behind, PROPOSED_FOR) | act_for(change.kind).excluded(change=change)
    return confirm_refusal(
        proposer=change.proposed_by_id,
        confirmer=user_id,
        confirmer_entitled=entitled(user_id=user_id, organization=change.organization, rule=rule),
        proposer_entitled=entitled(user_id=change.proposed_by_id, organization=change.organization, rule=rule),
        excluded=excluded,
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


def role_exceptions(*, organization_ids: frozenset[UUID] | None = None) -> list[AuthorityChange]:
    """Roles that were given by way of exception, newest first. Whether the person still has the role is not asked
    here."""
    rows = AuthorityChange.objects.filter(
        kind="role.give", state=AuthorityState.IN_FORCE, details__exception_until__isnull=False
    ).exclude(details__exception_until=None)
    if organization_ids is not None:
        rows = rows.filter(organization_id__in=organization_ids)
    return list(rows.select_related("organization").order_by("-id"))


@dataclass(frozen=True, slots=True)
class ForbiddenRow:
    """Somebody with forbidden roles. `until` is the end of the exception; empty if nobody allowed it."""

    held: ForbiddenPair
    organization: str
    until: str


def forbidden_report() -> list[ForbiddenRow]:
    """Everybody with forbidden roles, with the exception that allows it, if there is one."""
    allowed = {
        (row.organization_id, row.subject, row.details["role"]): row.details["exception_until"]
        for row in reversed(role_exceptions())
    }
    names = dict(Organization.objects.values_list("id", "slug"))
    found = []
    for held in forbidden_pairs():
        keys = [(held.organization_id, str(held.user_id), role) for role in (held.pair.one, held.pair.other)]
        until = next((allowed[key] for key in keys if key in allowed), "")
        found.append(ForbiddenRow(held, names.get(held.organization_id, ""), until))
    return found


@dataclass(frozen=True, slots=True)
class DrillRow:
    """One person who can confirm, and when they last did."""

    organization: str
    organization_id: UUID
    username: str
    last: datetime | None
    overdue: bool


_DRILL_SQL = """
SELECT organization.id, organization.slug, person.username, person.date_joined, max(change.decided_at)
FROM governance_organization organization
JOIN governance_foundingend ended ON ended.organization_id = organization.id
JOIN governance_rolegroup role_group ON role_group.organization_id = organization.id AND role_group.role = 'operator'
JOIN governance_user_groups member ON member.group_id = role_group.group_id
JOIN governance_user person ON person.id = member.user_id AND person.is_active
LEFT JOIN governance_authoritychange change ON change.organization_id = organization.id
    AND change.decided_by_id = person.id AND change.state IN ('in_force', 'declined')
GROUP BY organization.id, organization.slug, person.username, person.date_joined
ORDER BY organization.slug, person.username
"""


def drill_report(*, at: datetime, within: timedelta) -> list[DrillRow]:
    """Every operator of the organizations in scope. Overdue: neither joined nor decided on a proposal within the
    period. A period of zero means that nobody is."""
    return [
        DrillRow(slug, id_, username, last, bool(within) and (last or joined) < at - within)
        for id_, slug, username, joined, last in fetch(_DRILL_SQL, ())
        if in_scope(id_)
    ]


def witnesses_unconfirmed(*, configured: dict[str, str]) -> bool:
    """Whether this process uses other witnesses than two people confirmed. False while nobody confirmed any."""
    home = Organization.objects.filter(home=True).first()
    confirmed = authority_in_force(organization_id=home.id, kind="witness.change") if home else None
    return confirmed is not None and confirmed["witnesses"] != configured
