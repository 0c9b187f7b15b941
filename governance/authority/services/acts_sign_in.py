"""Authority acts about signing in: an organization's rules, links that somebody would see, and who answers for a
service account."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.authority.hooks import Applied, Prepared
from governance.authority.models import AuthorityChange
from governance.authority.services.acts_people import GAINS, account_of, person_of
from governance.authority.services.shapes import only, text_of, texts_of
from governance.people.rules.sign_in import KINDS_OF_AN_ORGANIZATION
from governance.people.selectors.people import may_answer_for
from governance.people.selectors.sign_in import has_sign_in, sign_in_rules_of
from governance.people.services.accounts import service_account_responsible_name
from governance.people.services.links import IssuedLink, invitation_create, password_reset_issue
from governance.people.services.people import require_standing_over
from governance.people.services.sign_in_rules import sign_in_rules_change
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, WrongState


@dataclass(frozen=True, slots=True)
class SignInRulesChange:
    """`details`: `second_factor_roles`, the kinds of roles that need a second factor in this organization."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, "second_factor_roles")
        asked = texts_of(details, "second_factor_roles")
        if set(asked) - set(KINDS_OF_AN_ORGANIZATION):
            allowed = "zero or more of: " + ", ".join(KINDS_OF_AN_ORGANIZATION)
            raise InvalidInput(errors=[FieldError("/details/second_factor_roles", allowed)])
        before = sign_in_rules_of(organization_id=organization.id)
        after = [kind for kind in KINDS_OF_AN_ORGANIZATION if kind in asked]
        if before == after:
            raise WrongState("These are the rules already.")
        return Prepared(
            str(organization.id),
            {"second_factor_roles": after},
            before={"second_factor_roles": before},
            after={"second_factor_roles": after},
            loosens=bool(set(before) - set(after)),
        )

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        rules = sign_in_rules_change(actor=actor, at=at, organization=change.organization, **change.details)
        return Applied({"second_factor_roles": list(rules.second_factor_roles)}, made=rules)


@dataclass(frozen=True, slots=True)
class LinkAct:
    """`subject`: the person, by id or user name. The link is shown once, to whoever confirms. The person themselves
    cannot confirm: they would need no link."""

    issue: Callable[..., IssuedLink]
    for_newcomers: bool

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details)
        user = person_of(subject)
        require_standing_over(actor=actor, user=user)
        if not user.is_active:
            raise WrongState("This person has no access.")
        if has_sign_in(user=user) and self.for_newcomers:
            raise WrongState("They can sign in already. For a lost password make a link for a new one.")
        if not has_sign_in(user=user) and not self.for_newcomers:
            raise WrongState("They have no sign-in yet: invite them.")
        shown = {"person": user.username}
        return Prepared(str(user.id), {}, shown, shown | {"link": "shown once to whoever confirms"}, loosens=True)

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {UUID(change.subject): GAINS}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        issued = self.issue(actor=actor, at=at, user=person_of(change.subject), shown_to=change.decided_by_id)
        return Applied({"link": str(issued.link.id)}, made=issued.link, once=issued.address)


INVITATION_SHOW = LinkAct(issue=invitation_create, for_newcomers=True)
PASSWORD_RESET_ISSUE = LinkAct(issue=password_reset_issue, for_newcomers=False)


@dataclass(frozen=True, slots=True)
class ServiceAccountResponsible:
    """`subject`: the account, by id or slug. `details`: `responsible`, by id or user name. Neither the old nor the new
    person can confirm it."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, "responsible")
        account = account_of(subject, organization)
        user = person_of(text_of(details, "responsible", longest=150), "/details/responsible")
        if not may_answer_for(user=user, organization_id=organization.id):
            message = "must be an active person who has a role in this organization"
            raise InvalidInput(errors=[FieldError("/details/responsible", message)])
        before = account.responsible.username if account.responsible else "nobody"
        return Prepared(
            str(account.id),
            {"responsible": str(user.id), "until_now": str(account.responsible_id or "")},
            before={"slug": account.slug, "responsible": before},
            after={"slug": account.slug, "responsible": user.username},
            loosens=True,
        )

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        people = (change.details["responsible"], change.details["until_now"])
        return {UUID(one): GAINS for one in people if one}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        account = service_account_responsible_name(
            actor=actor,
            at=at,
            service_account_id=UUID(change.subject),
            responsible=person_of(change.details["responsible"]),
        )
        return Applied({"service_account": str(account.id)}, made=account)
