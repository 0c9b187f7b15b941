"""Reading how people sign in: sessions, second factors, passkeys, one-time links. Also locks a passkey for a vote
(`passkey_lock`)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession

from governance.ledger.models import LedgerEntry
from governance.people.configured import second_factor_roles
from governance.people.models import (
    Passkey,
    SignInLink,
    SignInRules,
    User,
)
from governance.people.rules.passkeys import RegisteredKey
from governance.people.rules.sign_in import ADMINISTRATOR, role_kind
from governance.sql.statements import fetch
from reasoncodes.base.tenancy import every_tenant

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


def signed_in_from(*, user_id: UUID, address: str) -> bool:
    return bool(UserSession.objects.filter(user_id=user_id, ip=address).exists())


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
