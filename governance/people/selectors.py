"""Reading identity: keys, people, roles, permissions, second factors, passkeys, sessions, one-time links, and the
organization that a request means. Also locks a person's row and passkey for a vote (`person_stays`,
`passkey_lock`)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from governance.enforcement.sql import key_live
from governance.ledger.models import LedgerEntry
from governance.people.configured import second_factor_roles
from governance.people.models import (
    ApiKey,
    FoundingEnd,
    Passkey,
    PersonReference,
    ServiceAccount,
    SignInLink,
    SignInRules,
    User,
)
from governance.people.rules.combinations import Combination, combinations
from governance.people.rules.keys import TELL_DAYS, key_hash, stream_signature_fits
from governance.people.rules.passkeys import RegisteredKey
from governance.people.rules.roles import OPERATE, ApiScope
from governance.people.rules.sign_in import ADMINISTRATOR, role_kind
from governance.sql.statements import fetch
from governance.tenancy.models import (
    Organization,
    OrganizationGroupObjectPermission,
    OrganizationUserObjectPermission,
    RoleGroup,
)
from governance.violations.errors import CrossTenant
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound
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

# As above: it runs for every page and call of a person. The kind of a role is what stands before its colon.
_ROLES = """
SELECT role.role, split_part(role.role, ':', 1) = ANY(coalesce(rules.second_factor_roles, '{}'))
FROM governance_user_groups member
JOIN governance_rolegroup role ON role.group_id = member.group_id
LEFT JOIN governance_signinrules rules ON rules.organization_id = role.organization_id
WHERE member.user_id = $1::uuid
"""
# In the session of somebody who accepted an invitation with a passkey, until they have added it.
PASSKEY_FIRST = "passkey_first"
SECOND_FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)

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


@dataclass(frozen=True, slots=True)
class KeyEnds:
    """Live keys that somebody has to look at. `within` counts those that end within so many days."""

    within: dict[int, int]
    endless: int


def key_ends(*, at: datetime) -> KeyEnds:
    live = ApiKey.objects.filter(key_live(at)).order_by()
    within = {days: live.filter(expires_at__lte=at + timedelta(days=days)).count() for days in TELL_DAYS}
    return KeyEnds(within, live.filter(expires_at=None).count())


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
    actor = Actor(ActorKind.SERVICE, account.id, frozenset({account.organization_id}), frozenset(key.scopes))
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


@dataclass(frozen=True, slots=True)
class ForbiddenPair:
    """A person who has two roles that are forbidden together."""

    organization_id: UUID
    user_id: UUID
    username: str
    pair: Combination


_SEVERAL_ROLES = """
SELECT role_group.organization_id, person.id, person.username, array_agg(role_group.role)
FROM governance_rolegroup role_group
JOIN governance_user_groups member ON member.group_id = role_group.group_id
JOIN governance_user person ON person.id = member.user_id AND person.is_active
GROUP BY role_group.organization_id, person.id, person.username HAVING count(*) > 1
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


def others_may(*, organization_id: UUID | None, permission: str, commitment: str) -> bool:
    """Whether any other active person than this one has the permission: an administrator of the installation, or, if an
    organization is named, somebody there."""
    people = User.objects.filter(is_active=True).exclude(reference__commitment=commitment)
    if organization_id is None:
        return people.filter(is_superuser=True).exists()
    held = {"content_object_id": organization_id, "permission__codename": permission}
    groups = OrganizationGroupObjectPermission.objects.filter(group__user__id=OuterRef("id"), **held)
    own = OrganizationUserObjectPermission.objects.filter(user_id=OuterRef("id"), **held)
    return people.filter(Q(is_superuser=True) | Exists(groups) | Exists(own)).exists()


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
        return ServiceAccount.objects.filter(id=actor.id).values_list("responsible_id", flat=True).first()
    return None


def accounts_orphaned() -> "QuerySet[ServiceAccount]":
    """Service accounts in scope that were suspended because their responsible person left."""
    rows = ServiceAccount.objects.filter(status=ServiceAccount.Status.SUSPENDED, suspended_reason_code=RESPONSIBLE_LEFT)
    return rows.select_related("organization").order_by("slug")


def sessions_of(*, user: User) -> list[UserSession]:
    """Newest first. Also deletes the rows of sessions that have ended."""
    return sorted(UserSession.objects.purge_and_list(user), key=lambda row: row.created_at, reverse=True)


def session_of(*, user_id: UUID, session_id: int) -> UserSession | None:
    return UserSession.objects.filter(user_id=user_id, id=session_id).first()


def second_factor_required(*, user: User) -> bool:
    """Whether one of the person's roles needs a second factor: by the installation's setting, or by the rules of the
    organization where they have the role."""
    everywhere = second_factor_roles()
    if user.is_superuser and ADMINISTRATOR in everywhere:
        return True
    return any(by_rules or role_kind(role) in everywhere for role, by_rules in fetch(_ROLES, (user.id,)))


def second_factor_missing(*, user: User) -> bool:
    return second_factor_required(user=user) and not has_second_factor(user=user)


def unproven(*, user: User, session: Mapping[str, Any]) -> bool:
    """Whether this session may only set up how the person signs in: a second factor that their role needs, or the
    passkey that they chose instead of a password."""
    if session.get(PASSKEY_FIRST) and not has_passkey(user=user):
        return True
    return second_factor_missing(user=user)


def has_second_factor(*, user: User) -> bool:
    """Recovery codes alone do not count: they stand in for a factor that was lost."""
    return bool(Authenticator.objects.filter(user=user, type__in=SECOND_FACTORS).exists())


def has_passkey(*, user: User) -> bool:
    return bool(Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN).exists())


def sign_in_rules_of(*, organization_id: UUID) -> list[str]:
    """The kinds of roles for which this organization requires a second factor itself."""
    found = SignInRules.objects.filter(organization_id=organization_id).first()
    return list(found.second_factor_roles) if found else []


def has_sign_in(*, user: User) -> bool:
    """Whether the person has chosen how to sign in, or ever did sign in. Then an invitation would be a way to take
    their account over."""
    return bool(user.has_usable_password() or user.last_login or has_second_factor(user=user))


def sign_in_links_of(*, user: User, limit: int = 20) -> list[SignInLink]:
    """Newest first, with the people who made or saw them."""
    rows = SignInLink.objects.filter(user=user).select_related("created_by", "shown_to")
    return list(rows.order_by("-id")[:limit])


def sign_in_link_open(*, token_sha256: bytes, at: datetime) -> SignInLink | None:
    """The link, if it can be used now."""
    rows = SignInLink.objects.filter(token_sha256=token_sha256, ended_at=None, expires_at__gt=at)
    return rows.filter(user__is_active=True).select_related("user").first()


def invitation_open(*, user: User) -> SignInLink | None:
    """An invitation that was neither used nor withdrawn; its time may be over."""
    return SignInLink.objects.filter(user=user, purpose=SignInLink.Purpose.INVITATION, ended_at=None).first()


def organization_shared(*, user: User, ids: frozenset[UUID]) -> Organization:
    """The first organization of the person among these; 404 if there is none."""
    with every_tenant():
        found = Organization.objects.filter(id__in=ids, role_groups__group__user=user).order_by("slug").first()
    if found is None:
        raise NotFound
    return found


def signed_in_from(*, user_id: UUID, address: str) -> bool:
    return bool(UserSession.objects.filter(user_id=user_id, ip=address).exists())


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


@dataclass(frozen=True, slots=True)
class KnownPasskey:
    """A passkey with what the ledger says about its registration."""

    passkey_id: UUID
    entry_id: UUID
    registered_at: datetime
    registered: RegisteredKey


@dataclass(frozen=True, slots=True)
class UsablePasskey:
    """A passkey that its person can sign with now."""

    row: Passkey
    credential_id: bytes
    known: KnownPasskey


def passkeys_known(*, passkey_ids: Collection[UUID]) -> dict[UUID, KnownPasskey]:
    """By id. One whose registration is not on the ledger, or erased there, is missing: nothing can be checked with
    it."""
    if not passkey_ids:
        return {}
    # The entries belong to no organization, so no scope shows them.
    with every_tenant():
        rows = LedgerEntry.objects.filter(
            organization=None, action="passkey.registered", subject_id__in=passkey_ids, payload__isnull=False
        )
        found = list(rows.order_by("-id"))
    return {
        row.subject_id: KnownPasskey(row.subject_id, row.id, row.at, RegisteredKey.from_payload(row.payload or {}))
        for row in found
    }


def passkeys_usable(*, user_id: UUID, rp_id: str) -> list[UsablePasskey]:
    """The person's own passkeys for this site, the newest first."""
    rows = Passkey.objects.filter(user_id=user_id, removed_at=None, authenticator__user_id=user_id)
    passkeys = list(rows.select_related("authenticator").order_by("-id"))
    known = passkeys_known(passkey_ids=[row.id for row in passkeys])
    return [
        UsablePasskey(row, _credential_id(row), known[row.id])
        for row in passkeys
        if row.id in known and known[row.id].registered.rp_id == rp_id
    ]


def _credential_id(passkey: Passkey) -> bytes:
    authenticator: Any = passkey.authenticator
    return bytes(authenticator.wrap().authenticator_data.credential_data.credential_id)


def passkey_lock(*, user_id: UUID, credential_sha256: str) -> tuple[Passkey, KnownPasskey] | None:
    """The person's passkey with this credential, locked (FOR NO KEY UPDATE), so that it is not removed and its counter
    not read twice while a vote is signed with it. None if they have none, or it was removed."""
    rows = Passkey.objects.select_for_update(no_key=True, of=("self",))
    passkeys = list(rows.filter(user_id=user_id, removed_at=None, authenticator__user_id=user_id).order_by("id"))
    known = passkeys_known(passkey_ids=[row.id for row in passkeys])
    for row in passkeys:
        if row.id in known and known[row.id].registered.credential_sha256 == credential_sha256:
            return row, known[row.id]
    return None


def second_factors(*, user_id: UUID) -> frozenset[str]:
    """The kinds of second factors that the person has: `totp`, `webauthn`, `recovery_codes`."""
    return frozenset(Authenticator.objects.filter(user_id=user_id).values_list("type", flat=True))


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
