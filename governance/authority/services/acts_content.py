"""Authority acts about what decides: publishing a policy, and raising an organization's caps."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.authority.errors import ProposalOutdated
from governance.authority.hooks import Applied, Prepared
from governance.authority.models import AuthorityChange
from governance.authority.services.changes import Outcome, authority_act
from governance.authority.services.shapes import only, texts_of, whole_of
from governance.authorship.selectors import authors_of
from governance.authorship.states import WorkKind
from governance.enforcement.services import policy_snapshot
from governance.ledger.rules.entry import canonical_sha256
from governance.policies.models import Policy
from governance.policies.selectors import policy_get, policy_list, policy_lock
from governance.policies.services import policy_effect, policy_publish
from governance.policies.states import PolicyState
from governance.regions.rules import load_profiles
from governance.tenancy.models import Organization
from governance.tenancy.rules import CAPS, WIDENING, widening_part, widens
from governance.tenancy.services import organization_change
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, WrongState
from reasoncodes.base.ids import UUID_TEXT
from reasoncodes.base.tenancy import tenant_scope

AUTHOR = "You wrote to this since it was published last. Somebody else has to confirm it."
HIGHEST = 2_147_483_647
"""What the column can hold."""


@dataclass(frozen=True, slots=True)
class PolicyPublish:
    """`subject`: the draft, by id. The proposal names the content of the draft and the version it replaces; if either
    changes, it is outdated."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details)
        policy = self._policy(subject, organization)
        if policy.state != PolicyState.DRAFT:
            raise WrongState(f"A policy that is {policy.state} cannot be published.")
        effect = policy_effect(policy=policy)
        named = {"policy": policy.slug, "title": policy.title}
        before = effect.active
        return Prepared(
            str(policy.id),
            {
                "policy": policy.slug,
                "version": policy.version,
                "sha256": self._content(policy),
                "replaces": str(before.id) if before else None,
            },
            before=named | {"version": before.version if before else None, "rules": before.rules if before else []},
            after=named
            | {
                "version": policy.version,
                "rules": policy.rules,
                "simulation": effect.tally.as_json(),
                "loosening": effect.loosening,
            },
            loosens=effect.loosens,
        )

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return dict.fromkeys(authors_of(kind=WorkKind.POLICY, subject_id=UUID(change.subject)), AUTHOR)

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        # Locked before it is compared, in the order of `policy_publish`: the draft must not change in between.
        Organization.objects.select_for_update(no_key=True).get(id=change.organization_id)
        policy = policy_lock(actor=actor, policy_id=UUID(change.subject))
        active = policy_list(slug=policy.slug, state=PolicyState.ACTIVE).filter(organization=change.organization)
        now = active.values_list("id", flat=True).first()
        if policy.state != PolicyState.DRAFT or self._content(policy) != change.details["sha256"]:
            raise ProposalOutdated("The draft changed after the proposal.")
        if (str(now) if now else None) != change.details["replaces"]:
            raise ProposalOutdated("Another version was published or archived after the proposal.")
        published = policy_publish(actor=actor, at=at, policy_id=policy.id)
        return Applied({"policy": str(published.id), "snapshot": published.snapshot_sha256}, made=published)

    @staticmethod
    def _policy(subject: str, organization: Organization) -> Policy:
        found = policy_get(policy_id=UUID(subject)) if UUID_TEXT.fullmatch(subject) else None
        if found is None or found.organization_id != organization.id:
            raise InvalidInput(errors=[FieldError("/subject", "is not the id of a policy of this organization")])
        return found

    @staticmethod
    def _content(policy: Policy) -> str:
        return canonical_sha256({"title": policy.title, "snapshot": policy_snapshot(policy=policy)})


@dataclass(frozen=True, slots=True)
class CapsRaise:
    """`subject`: left out, or the organization's id. `details`: the new values of `capacity_units`,
    `max_concurrency`, `max_runs_per_min`, `max_writes_per_run`, `status` (`active`) and `regions`, as far as they
    widen."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, *sorted(WIDENING))
        if subject not in {"", str(organization.id)} or not details:
            raise InvalidInput(errors=[FieldError("/details", "name what to raise in this organization")])
        asked = {name: self._value(details, name) for name in sorted(details)}
        # Read again: a form has already written the new values into the caller's object.
        stored = Organization.objects.get(id=organization.id)
        now = {name: getattr(stored, name) for name in asked}
        for name, value in asked.items():
            if not widens(name, now[name], value):
                words = "does not widen anything. One person can do this at once, on the organization's page"
                raise InvalidInput(errors=[FieldError(f"/details/{name}", words)])
        return Prepared(str(organization.id), asked, before=now, after=asked, loosens=True)

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        organization = Organization.objects.select_for_update(no_key=True).get(id=change.organization_id)
        # Somebody may have lowered a cap or suspended the organization meanwhile, and for a reason.
        if any(getattr(organization, name) != value for name, value in change.before.items()):
            raise ProposalOutdated("These settings changed after the proposal.")
        made = organization_change(actor=actor, at=at, organization_id=organization.id, changes=change.details)
        return Applied({"organization": str(made.id)}, made=made)

    @staticmethod
    def _value(details: Mapping[str, Any], name: str) -> Any:
        if name in CAPS:
            return whole_of(details, name, least=1, most=HIGHEST, default=1)
        if name == "status":
            if details["status"] != Organization.Status.ACTIVE:
                raise InvalidInput(errors=[FieldError("/details/status", "is active")])
            return Organization.Status.ACTIVE.value
        regions = texts_of(details, "regions")
        if not set(regions) <= set(load_profiles().codes):
            raise InvalidInput(errors=[FieldError("/details/regions", "has a region that is not known")])
        return regions


def organization_settle(
    *, actor: Actor, at: datetime, organization_id: UUID, changes: Mapping[str, Any]
) -> Outcome | None:
    """Changes settings: what takes something away at once, what widens as a proposal. Returns the proposal, or None if
    nothing widens."""
    # One transaction: otherwise a refused proposal would leave half of a form in force.
    with tenant_scope([organization_id]), transaction.atomic():
        organization = Organization.objects.select_for_update(no_key=True).get(id=organization_id)
        before = {name: getattr(organization, name) for name in changes}
        wider = widening_part(before, changes)
        at_once = {name: value for name, value in changes.items() if name not in wider}
        if at_once:
            organization_change(actor=actor, at=at, organization_id=organization.id, changes=at_once)
        if not wider:
            return None
        return authority_act(actor=actor, at=at, organization=organization, kind="caps.raise", details=wider)
