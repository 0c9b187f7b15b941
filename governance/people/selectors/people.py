"""Reading people and services: credentials, roles, permissions, forbidden pairs, founding, and the organization that a
request means. Also locks a person's row for a vote (`person_stays`)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from governance.enforcement.sql import key_live, key_not_ended
from governance.identity.models import ProviderPerson
from governance.identity.states import Origin
from governance.people.errors import CallerSuspended
from governance.people.models import (
    ApiKey,
    FoundingEnd,
    PersonReference,
    ServiceAccount,
    User,
)
from governance.people.rules.combinations import Combination, combinations
from governance.people.rules.keys import TELL_DAYS, key_hash, stream_signature_fits
from governance.people.rules.roles import OPERATE, ApiScope
from governance.people.rules.sign_in import ADMINISTRATOR
from governance.sql.statements import fetch
from governance.tenancy.models import (
    Organization,
    OrganizationGroupObjectPermission,
    OrganizationUserObjectPermission,
    RoleGroup,
)
from governance.violations.errors import CrossTenant
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import CredentialMissing, DomainError, FieldError, InvalidInput, NotFound
from reasoncodes.base.ids import UUID_TEXT
from reasoncodes.base.tenancy import every_tenant, in_scope

RESPONSIBLE_LEFT = "responsible_left"
"""Why a service account is suspended when nobody answers for it any more."""

# Hand-written and prepared, because it runs several times for every page and every call of a person. guardian's own
# look-up also gives a superuser every permission by default, which would make an administrator a reviewer.
_HELD = """
SELECT held.content_object_id FROM governance_organizationgroupobjectpermission held
JOIN governance_user_groups member ON member.group_id = held.group_id
JOIN auth_permission permission ON permission.id = held.permission_id
WHERE member.user_id = $1::uuid AND permission.codename = $2
UNION
SELECT held.content_object_id FROM governance_organizationuserobjectpermission held
JOIN auth_permission permission ON permission.id = held.permission_id
WHERE held.user_id = $1::uuid AND permission.codename = $2
"""

# The same two ways to a permission, for a whole organization.
_CONFIRMERS = """
SELECT person.id FROM governance_user person
WHERE person.is_active AND (person.is_superuser
OR EXISTS (
    SELECT 1 FROM governance_organizationgroupobjectpermission held
    JOIN governance_user_groups member ON member.group_id = held.group_id
    JOIN auth_permission permission ON permission.id = held.permission_id
    WHERE member.user_id = person.id AND held.content_object_id = $1::uuid AND permission.codename = $2)
OR EXISTS (
    SELECT 1 FROM governance_organizationuserobjectpermission held
    JOIN auth_permission permission ON permission.id = held.permission_id
    WHERE held.user_id = person.id AND held.content_object_id = $1::uuid AND permission.codename = $2))
"""


@dataclass(frozen=True, slots=True)
class Credential:
    """A live key, its account and its organization, from one query."""

    key: ApiKey
    actor: Actor

    @property
    def organization(self) -> Organization:
        return self.key.service_account.organization


def credential_for_secret(*, secret: str, at: datetime) -> Credential | None:
    """None for an unknown, expired, revoked or suspended key: the caller must not learn which it is."""
    # The organization is known only after the key is found, so there is no scope to look in yet.
    with every_tenant():
        key = live_keys(at).filter(sha256=key_hash(secret)).first()
    return _credential(key) if key else None


def credential_refusal(*, secret: str, at: datetime) -> DomainError:
    """Why there is no credential for this secret. Only who has the secret of a suspended account is told that it is
    suspended; everything else gets one answer."""
    with every_tenant():
        suspended = ApiKey.objects.filter(
            key_not_ended(at),
            sha256=key_hash(secret),
            service_account__status=ServiceAccount.Status.SUSPENDED,
            service_account__suspended_reason_code="misuse_suspended",
            service_account__organization__status=Organization.Status.ACTIVE,
        ).exists()
    if suspended:
        return CallerSuspended(extensions={"suspended_until": "an operator reinstates the account"})
    return CredentialMissing()


def credential_for_signature(*, prefix: str, data: bytes, signature: str, at: datetime) -> Credential | None:
    """Who signed a stream message, found by the key's prefix. Live keys only, and as with a secret the reason for None
    is not told."""
    with every_tenant():
        key = live_keys(at).filter(prefix=prefix, stream_key__isnull=False).first()
    if key is None or key.stream_key is None:
        return None
    if not stream_signature_fits(public_key=bytes(key.stream_key), data=data, signature=signature):
        return None
    return _credential(key)


def live_keys(at: datetime) -> "QuerySet[ApiKey]":
    """With account and organization, because nearly every caller reads them."""
    return ApiKey.objects.select_related("service_account__organization").filter(key_live(at))


KEYS_COUNTED = 10_000
"""The overview and the metrics count no further."""


@dataclass(frozen=True, slots=True)
class KeyEnds:
    """Live keys that somebody has to look at. `within` counts those that end within so many days."""

    within: dict[int, int]
    endless: int


def key_ends(*, at: datetime) -> KeyEnds:
    live = ApiKey.objects.filter(key_live(at)).order_by()
    ends = {days: live.filter(expires_at__lte=at + timedelta(days=days)) for days in TELL_DAYS}
    within = {days: rows[:KEYS_COUNTED].count() for days, rows in ends.items()}
    return KeyEnds(within, live.filter(expires_at=None)[:KEYS_COUNTED].count())


def keys_ending(*, at: datetime, limit: int) -> list[ApiKey]:
    """Live keys that end soon and have no successor: no newer live key of the account that may do the same."""
    end = at + timedelta(days=max(TELL_DAYS))
    newer = ApiKey.objects.filter(
        key_live(at),
        service_account_id=OuterRef("service_account_id"),
        id__gt=OuterRef("id"),
        scopes__contains=OuterRef("scopes"),
    )
    return list(live_keys(at).filter(~Exists(newer), expires_at__lte=end).order_by("expires_at")[:limit])


def _credential(key: ApiKey) -> Credential:
    account = key.service_account
    where, scopes = frozenset({account.organization_id}), frozenset(key.scopes)
    actor = Actor(ActorKind.SERVICE, account.id, where, scopes, account.module)
    return Credential(key=key, actor=actor)


def organizations_where(*, user: User, permission: str) -> frozenset[UUID]:
    """Where the person has this permission through a group or directly. Being a superuser gives none."""
    if not user.is_authenticated:
        return frozenset()
    return frozenset(id_ for (id_,) in fetch(_HELD, (user.id, permission)))


def person_actor(*, user: User, permission: str) -> Actor:
    """The person, acting in the organizations where they have the permission."""
    return Actor(ActorKind.PERSON, user.id, organizations_where(user=user, permission=permission))


def organization_of(*, actor: Actor, org_id: UUID | None) -> Organization:
    """The organization that a request means: the one it names, or the only one that the credential has.

    Naming somebody else's is 404, except with the scope `orchestrator:admin`.
    """
    if org_id is None:
        if len(actor.organization_ids) != 1:
            raise InvalidInput(errors=[FieldError("/org_id", "is required: you act in several organizations")])
        (org_id,) = actor.organization_ids
    # Outside the actor's scope on purpose: asking for another organization's id is recorded as a violation, asking for
    # an unknown one is not.
    with every_tenant():
        organization = Organization.objects.filter(id=org_id).first()
    if organization is None:
        raise NotFound
    if not actor.may_act_in(org_id) and ApiScope.ORCHESTRATOR_ADMIN not in actor.scopes:
        raise CrossTenant(subject_type="organization", subject_id=org_id)
    return organization


def organization_by_slug(*, slug: str | None) -> list[UUID]:
    """The id of the organization with this slug; without a slug, the ids of all."""
    rows = Organization.objects.order_by("slug")
    return list((rows if slug is None else rows.filter(slug=slug)).values_list("id", flat=True))


def user_by_name(*, username: str) -> User | None:
    return User.objects.filter(username=username).first()


def person_named(*, text: str) -> User | None:
    """A person by id or user name."""
    by_id = User.objects.filter(id=text).first() if UUID_TEXT.fullmatch(text) else None
    return by_id or user_by_name(username=text)


def roles_held(*, user_id: UUID, organization_id: UUID) -> list[str]:
    """The person's roles in the organization, in order."""
    rows = RoleGroup.objects.filter(organization_id=organization_id, group__user__id=user_id)
    return sorted(rows.values_list("role", flat=True))


def standing_held(*, user_id: UUID, organization_id: UUID) -> list[str]:
    """The person's roles in the organization, and `administrator` if they administer the installation: what the table
    of forbidden roles looks at."""
    held = roles_held(user_id=user_id, organization_id=organization_id)
    return sorted([*held, ADMINISTRATOR]) if is_administrator(user_id=user_id) else held


@dataclass(frozen=True, slots=True)
class ForbiddenPair:
    """A person who has two roles that are forbidden together."""

    organization_id: UUID
    user_id: UUID
    username: str
    pair: Combination


_SEVERAL_ROLES = """
SELECT role_group.organization_id, person.id, person.username,
    array_agg(role_group.role::text) || CASE WHEN person.is_superuser THEN ARRAY['administrator'] ELSE '{}'::text[] END
FROM governance_rolegroup role_group
JOIN governance_user_groups member ON member.group_id = role_group.group_id
JOIN governance_user person ON person.id = member.user_id AND person.is_active
GROUP BY role_group.organization_id, person.id, person.username, person.is_superuser
HAVING count(*) > 1 OR person.is_superuser
ORDER BY role_group.organization_id, person.username
"""


def forbidden_pairs() -> list[ForbiddenPair]:
    """Everybody who has forbidden roles now, of the organizations in scope."""
    rows = fetch(_SEVERAL_ROLES, ())
    return [
        ForbiddenPair(organization_id, user_id, username, pair)
        for organization_id, user_id, username, roles in rows
        if in_scope(organization_id)
        for pair in combinations(roles)
    ]


def people_behind(*, commitments: set[str]) -> dict[str, str]:
    """Usernames for the commitments whose references still exist. Erased people are missing."""
    rows = PersonReference.objects.filter(commitment__in=commitments).select_related("user")
    return {row.commitment: row.user.username for row in rows}


def has_role(*, user_id: UUID, organization_id: UUID, role: str) -> bool:
    """Called inside the transaction that decides, so that a role that was just taken away no longer counts."""
    return RoleGroup.objects.filter(organization_id=organization_id, role=role, group__user__id=user_id).exists()


def people_in_role(*, organization_id: UUID, role: str) -> list[User]:
    """Active people who have the role now."""
    groups = RoleGroup.objects.filter(organization_id=organization_id, role=role).values("group_id")
    return list(User.objects.filter(is_active=True, groups__in=groups).distinct().order_by("username"))


def commitment_has_role(*, commitments: set[str], organization_id: UUID, role: str) -> bool:
    """Whether one of these people has the role now."""
    members = RoleGroup.objects.filter(organization_id=organization_id, role=role)
    return members.filter(group__user__reference__commitment__in=commitments).exists()


def person_may(*, user_id: UUID, organization_id: UUID, permission: str) -> bool:
    """Whether an active person has this permission, in one query; for work that runs later than its order. An
    administrator of the installation has it, as in the console."""
    groups = OrganizationGroupObjectPermission.objects.filter(
        group__user__id=OuterRef("id"), content_object_id=organization_id, permission__codename=permission
    )
    own = OrganizationUserObjectPermission.objects.filter(
        user_id=OuterRef("id"), content_object_id=organization_id, permission__codename=permission
    )
    people = User.objects.filter(id=user_id, is_active=True)
    return people.filter(Q(is_superuser=True) | Exists(groups) | Exists(own)).exists()


def others_may(*, organization_id: UUID | None, permission: str, commitment: str, people: frozenset[UUID]) -> bool:
    """Whether any other active person than these has the permission: an administrator of the installation, or, if an
    organization is named, somebody there. `commitment`: one more of these, as the record names them."""
    others = User.objects.filter(is_active=True).exclude(reference__commitment=commitment).exclude(id__in=people)
    if organization_id is None:
        return others.filter(is_superuser=True).exists()
    held = {"content_object_id": organization_id, "permission__codename": permission}
    groups = OrganizationGroupObjectPermission.objects.filter(group__user__id=OuterRef("id"), **held)
    own = OrganizationUserObjectPermission.objects.filter(user_id=OuterRef("id"), **held)
    return others.filter(Q(is_superuser=True) | Exists(groups) | Exists(own)).exists()


def owner_groups_of(*, user_id: UUID, organization_id: UUID | None) -> list[str]:
    """The owning groups of an active person, in one organization or in any."""
    rows = RoleGroup.objects.filter(role__startswith="owner:", group__user__id=user_id, group__user__is_active=True)
    rows = rows.filter(organization_id=organization_id) if organization_id is not None else rows
    return sorted({role.removeprefix("owner:") for role in rows.values_list("role", flat=True)})


def person_stays(*, user_id: UUID) -> None:
    """Locks the person's row FOR SHARE until the end of the transaction, so that `person_deactivate` waits for a vote
    that is being cast."""
    with connection.cursor() as cursor:
        # A statement of its own, before the reads that it protects: their snapshot must be younger than the lock.
        # Without it a vote could commit after the person's access has ended.
        cursor.execute("SELECT 1 FROM governance_user WHERE id = %s FOR SHARE", [user_id])


def author_of(*, actor: Actor) -> UUID | None:
    """The person who counts as the author of what the actor writes. For a service: the person responsible for it."""
    if actor.kind is ActorKind.PERSON:
        return actor.id
    if actor.kind is ActorKind.SERVICE and actor.id is not None:
        # In all organizations: an administrator's key writes in others than its own.
        with every_tenant():
            return ServiceAccount.objects.filter(id=actor.id).values_list("responsible_id", flat=True).first()
    return None


def provider_elsewhere(*, user_id: UUID, organization_id: UUID) -> bool:
    """Whether the identity provider of another organization signs this person in."""
    with every_tenant():
        rows = ProviderPerson.objects.filter(user_id=user_id).exclude(provider__organization_id=organization_id)
        return rows.exists()


def provider_brought(*, user_id: UUID) -> bool:
    """Whether an identity provider made this person's account, by SCIM or at a first sign-in. False for somebody who
    linked an account that they had before."""
    with every_tenant():
        return ProviderPerson.objects.filter(user_id=user_id).exclude(origin=Origin.LINKED).exists()


def accounts_orphaned() -> "QuerySet[ServiceAccount]":
    """Service accounts in scope that were suspended because their responsible person left."""
    rows = ServiceAccount.objects.filter(status=ServiceAccount.Status.SUSPENDED, suspended_reason_code=RESPONSIBLE_LEFT)
    return rows.select_related("organization").order_by("slug")


def organization_shared(*, user: User, ids: frozenset[UUID]) -> Organization:
    """The first organization of the person among these; 404 if there is none."""
    with every_tenant():
        found = Organization.objects.filter(id__in=ids, role_groups__group__user=user).order_by("slug").first()
    if found is None:
        raise NotFound
    return found


def is_administrator(*, user_id: UUID | None) -> bool:
    return user_id is not None and User.objects.filter(id=user_id, is_superuser=True, is_active=True).exists()


def service_account_named(*, organization_id: UUID, text: str) -> ServiceAccount | None:
    """A service account of this organization, by id or slug."""
    rows = ServiceAccount.objects.filter(organization_id=organization_id).select_related("responsible")
    by_id = rows.filter(id=text).first() if UUID_TEXT.fullmatch(text) else None
    return by_id or rows.filter(slug=text).first()


def may_answer_for(*, user: User, organization_id: UUID) -> bool:
    """Whether the person may be responsible for a service account there: active, with a role in that organization. An
    administrator of the installation looks after all of them."""
    if not user.is_active or user.is_superuser:
        return user.is_active
    # The caller's scope may be another one: a command or a task has none.
    with every_tenant():
        return RoleGroup.objects.filter(organization_id=organization_id, group__user=user).exists()


def confirmers(*, organization_id: UUID) -> frozenset[UUID]:
    """The active people who can confirm a change of authority here: operators, and administrators of the
    installation."""
    return frozenset(id_ for (id_,) in fetch(_CONFIRMERS, (organization_id, OPERATE)))


def founding_has_ended(*, organization_id: UUID) -> bool:
    return FoundingEnd.objects.filter(organization_id=organization_id).exists()


def founding_open(*, organization_ids: frozenset[UUID] | None) -> QuerySet[Organization]:
    """Those of the organizations (None: of all in scope) that are still being founded, by name."""
    rows = Organization.objects.filter(founding_end=None).order_by("slug")
    return rows if organization_ids is None else rows.filter(id__in=organization_ids)


def organizations_founding_count() -> int:
    return Organization.objects.filter(founding_end=None).count()
