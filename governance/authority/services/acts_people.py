"""Authority acts about people, service accounts and keys: how each is checked, who gains by it, and how it is done."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_date, parse_datetime

from governance.authority.errors import ProposalOutdated
from governance.authority.hooks import Applied, Prepared
from governance.authority.models import AuthorityChange
from governance.authority.services.shapes import choice_of, flag_of, only, text_of, texts_of, whole_of
from governance.authorship.services import authorship_add
from governance.authorship.states import WorkKind
from governance.boundary.services import handle_check, text_check
from governance.ledger.selectors import was_deactivated_in
from governance.people.configured import api_key_life
from governance.people.errors import RolesForbidden
from governance.people.models import ApiKey, ServiceAccount, User
from governance.people.rules.combinations import combinations, combinations_with
from governance.people.rules.keys import KeyMaterial, key_generate, key_material
from governance.people.rules.roles import PERMISSIONS_OF_ROLE, tier_of
from governance.people.selectors.people import (
    may_answer_for,
    person_named,
    roles_held,
    service_account_named,
    standing_held,
)
from governance.people.services.accounts import (
    RESERVED_SLUGS,
    api_key_issue,
    api_key_rotate,
    scopes_check,
    service_account_create,
    service_account_reinstate,
)
from governance.people.services.links import invitation_create
from governance.people.services.people import person_create, person_reactivate, person_role_give, role_check
from governance.policies.selectors import reviewer_tiers
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, WrongState

GAINS = "You would gain by this. Somebody else has to confirm it."
LONGEST_DAYS = 730
LONGEST_NAME = 150
LONGEST_EXCEPTION = timedelta(days=366)


def person_of(subject: str, pointer: str = "/subject") -> User:
    found = person_named(text=subject)
    if found is None:
        raise InvalidInput(errors=[FieldError(pointer, "is not the id or user name of a person")])
    return found


def _role(value: str, pointer: str, organization: Organization) -> str:
    """A role that can be given here: of the table, or of an active tier of the organization."""
    tier = tier_of(value)
    if not tier and value not in PERMISSIONS_OF_ROLE:
        raise InvalidInput(errors=[FieldError(pointer, "is not a role")])
    if tier and tier not in reviewer_tiers(organization_id=organization.id):
        raise InvalidInput(errors=[FieldError(pointer, "is not an active reviewer tier of this organization")])
    return value


@dataclass(frozen=True, slots=True)
class RoleGive:
    """`subject`: the person, by id or user name. `details`: `role`, and `exception_until` (a day) for a role that makes
    a forbidden pair. The clock takes such a role away on that day."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, "role", "exception_until")
        user = person_of(subject)
        role = _role(text_of(details, "role", longest=64), "/details/role", organization)
        held = roles_held(user_id=user.id, organization_id=organization.id)
        if role in held:
            raise AlreadyExists("This person has the role already.")
        if not user.is_active:
            raise WrongState("This person has no access. Re-activate them first.")
        until = _exception_until(details, at)
        pairs = combinations_with(role, standing_held(user_id=user.id, organization_id=organization.id))
        if until is None or not pairs:
            role_check(user_id=user.id, organization=organization, role=role)
            until = None
        after = {"person": user.username, "roles": sorted([*held, role])}
        if until:
            after |= {
                "forbidden": [f"{pair.one} and {pair.other}: the person {pair.why}" for pair in pairs],
                "exception_until": until.isoformat(),
            }
        return Prepared(
            subject=str(user.id),
            details={"role": role, "exception_until": until.isoformat() if until else None},
            before={"person": user.username, "roles": held},
            after=after,
            loosens=True,
        )

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {UUID(change.subject): GAINS}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        user = person_of(change.subject)
        if not user.is_active:
            raise ProposalOutdated("This person has no access any more.")
        role, excepted = change.details["role"], change.details["exception_until"] is not None
        tier = tier_of(role)
        if tier and tier not in reviewer_tiers(organization_id=change.organization_id):
            raise ProposalOutdated("The reviewer tier is not active any more.")
        person_role_give(actor=actor, at=at, user=user, organization=change.organization, role=role, exception=excepted)
        return Applied({"person": change.subject, "role": role, "exception": excepted}, made=user)


def _exception_until(details: Mapping[str, Any], at: datetime) -> date | None:
    text = text_of(details, "exception_until", longest=10, required=False)
    if not text:
        return None
    until = parse_date(text)
    if until is None or not at.date() < until <= (at + LONGEST_EXCEPTION).date():
        raise InvalidInput(errors=[FieldError("/details/exception_until", "is a day within the next year")])
    return until


@dataclass(frozen=True, slots=True)
class PersonCreate:
    """`subject`: the user name. `details`: `roles` they get at once, `email`, `is_staff`."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, "roles", "email", "is_staff")
        username = subject.strip()
        if not username or len(username) > LONGEST_NAME:
            raise InvalidInput(errors=[FieldError("/subject", "is the user name of the new person")])
        if person_named(text=username) is not None:
            raise AlreadyExists("A person with this username exists.")
        roles = [_role(role, "/details/roles", organization) for role in texts_of(details, "roles")]
        if not roles:
            raise InvalidInput(errors=[FieldError("/details/roles", "needs one role at least")])
        pairs = combinations(roles)
        if pairs:
            words = " ".join(f"{pair.one} and {pair.other}: the person {pair.why}." for pair in pairs)
            raise RolesForbidden(words, organization_id=organization.id)
        complete = {
            "roles": sorted(set(roles)),
            "email": text_of(details, "email", longest=254, required=False),
            "is_staff": flag_of(details, "is_staff", default=True),
        }
        return Prepared(username, complete, after={"person": username, **complete}, loosens=True)

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        asked = change.details
        user = person_create(
            actor=actor,
            at=at,
            username=change.subject,
            is_staff=asked["is_staff"],
            email=asked["email"],
        )
        for role in asked["roles"]:
            person_role_give(actor=actor, at=at, user=user, organization=change.organization, role=role)
        # Whoever confirms sees the link if it cannot be mailed; while the organization is founded, the founder.
        issued = invitation_create(actor=actor, at=at, user=user, shown_to=change.decided_by_id)
        return Applied({"person": str(user.id), "link": str(issued.link.id)}, made=user, once=issued.address)


@dataclass(frozen=True, slots=True)
class PersonReactivate:
    """`subject`: the person, by id or user name. They must have lost their access in this organization."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details)
        user = person_of(subject)
        # Their roles ended with their access, so only the record knows that they were here. Somebody else's people are
        # answered like people who do not exist.
        if not was_deactivated_in(user_id=user.id, organization_id=organization.id):
            raise InvalidInput(errors=[FieldError("/subject", "is not a person whose access ended here")])
        if user.is_active:
            raise WrongState("This person has access.")
        shown = {"person": user.username}
        return Prepared(str(user.id), {}, {**shown, "access": "ended"}, {**shown, "access": "open"}, loosens=True)

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {UUID(change.subject): GAINS}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        user = person_reactivate(actor=actor, at=at, user_id=UUID(change.subject), organization=change.organization)
        return Applied({"person": change.subject}, made=user)


@dataclass(frozen=True, slots=True)
class ServiceAccountCreate:
    """`subject`: the slug. `details`: `responsible` (id or user name; the proposer if left out), `description`."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, "responsible", "description")
        named = text_of(details, "responsible", longest=150, required=False)
        responsible = person_of(named or str(actor.id), "/details/responsible")
        if not may_answer_for(user=responsible, organization_id=organization.id):
            message = "must be an active person who has a role in this organization"
            raise InvalidInput(errors=[FieldError("/details/responsible", message)])
        if subject in RESERVED_SLUGS:
            raise InvalidInput(errors=[FieldError("/subject", "is the name of a part of Holdpoint itself")])
        complete = {
            "responsible": str(responsible.id),
            "description": text_of(details, "description", longest=280, required=False),
        }
        if ServiceAccount.objects.filter(organization=organization, slug=subject).exists():
            raise AlreadyExists("This organization has a service account with this slug.")
        # Refused now, not when a second person confirms it.
        handle_check(handle=subject, pointer="/subject")
        text_check(text=complete["description"], pointer="/details/description")
        # Built and checked, not saved: a slug that the database would refuse is refused now, beside its field.
        choice_of(subject, "/subject", pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
        return Prepared(
            subject,
            complete,
            after={"slug": subject, "responsible": responsible.username, "description": complete["description"]},
            loosens=True,
        )

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {UUID(change.details["responsible"]): GAINS}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        account = service_account_create(
            actor=actor,
            at=at,
            organization=change.organization,
            slug=change.subject,
            description=change.details["description"],
            responsible=person_of(change.details["responsible"]),
        )
        return Applied({"service_account": str(account.id)}, made=account)


def account_of(subject: str, organization: Organization) -> ServiceAccount:
    """A service account of people. Holdpoint's own accounts have no key and nobody who answers for them."""
    found = service_account_named(organization_id=organization.id, text=subject)
    if found is None or found.internal:
        raise InvalidInput(errors=[FieldError("/subject", "is not the id or slug of a service account")])
    return found


def _responsible(account: ServiceAccount) -> dict[UUID, str]:
    return {account.responsible_id: GAINS} if account.responsible_id else {}


@dataclass(frozen=True, slots=True)
class ServiceAccountReinstate:
    """`subject`: the account, by id or slug."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details)
        account = account_of(subject, organization)
        if account.status == ServiceAccount.Status.ACTIVE:
            raise WrongState("This account is active.")
        before = {"slug": account.slug, "status": account.status, "reason": account.suspended_reason_code}
        return Prepared(str(account.id), {}, before, {"slug": account.slug, "status": "active"}, loosens=True)

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return _responsible(account_of(change.subject, change.organization))

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        account = service_account_reinstate(actor=actor, at=at, service_account_id=UUID(change.subject))
        return Applied({"service_account": str(account.id)}, made=account)


@dataclass(frozen=True, slots=True)
class ApiKeyIssue:
    """`subject`: the account, by id or slug. `details`: `scopes`, `days`; or `replaces` (a key's id) and
    `overlap_hours`.

    The key is made when it is proposed and shown to the proposer then. Only its hash is stored, and it works once it
    is confirmed. So nobody but the proposer ever sees it.
    """

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, "scopes", "days", "replaces", "overlap_hours")
        account = account_of(subject, organization)
        old = self._old(details, account)
        scopes = scopes_check(actor=actor, scopes=old.scopes if old else texts_of(details, "scopes"))
        days = whole_of(details, "days", least=1, most=LONGEST_DAYS, default=None)
        secret = key_generate()[1]
        complete = {
            "scopes": scopes,
            "expires_at": (at + (timedelta(days=days) if days else api_key_life())).isoformat(),
            "replaces": str(old.id) if old else None,
            "overlap_hours": whole_of(details, "overlap_hours", least=0, most=720, default=24),
            "key": key_material(secret).as_json(),
        }
        shown = {"service_account": account.slug, "responsible": str(account.responsible or "nobody")}
        return Prepared(
            str(account.id),
            complete,
            before={**shown, "keys": [str(key) for key in account.keys.filter(revoked_at=None)]},
            after={**shown, "scopes": scopes, "expires_at": complete["expires_at"]},
            loosens=True,
            once=secret,
        )

    @staticmethod
    def _old(details: Mapping[str, Any], account: ServiceAccount) -> ApiKey | None:
        named = text_of(details, "replaces", longest=36, required=False)
        if not named:
            return None
        found = next((key for key in account.keys.all() if str(key.id) == named), None)
        if found is None:
            raise InvalidInput(errors=[FieldError("/details/replaces", "is not a key of this account")])
        return found

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return _responsible(account_of(change.subject, change.organization))

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        asked, material = change.details, KeyMaterial.from_json(change.details["key"])
        if asked["replaces"]:
            overlap = timedelta(hours=asked["overlap_hours"])
            issued = api_key_rotate(
                actor=actor, at=at, key_id=UUID(asked["replaces"]), overlap=overlap, material=material
            )
        else:
            issued = api_key_issue(
                actor=actor,
                at=at,
                service_account=account_of(change.subject, change.organization),
                scopes=asked["scopes"],
                expires_at=parse_datetime(asked["expires_at"]) if asked["expires_at"] else None,
                material=material,
            )
        # The proposer saw the key, so what is done with it may be theirs.
        authorship_add(
            actor=actor,
            at=at,
            organization_id=change.organization_id,
            kind=WorkKind.SERVICE,
            subject_ids=[issued.key.service_account_id],
        )
        return Applied({"api_key": str(issued.key.id)}, made=issued.key)
