"""Passkeys on the record: each registration and removal is a ledger entry, written with allauth's own change in one
transaction. The entry of the registration has the public key that signatures of votes are checked with."""

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Any

from allauth.mfa.models import Authenticator
from django.db import transaction

from governance.ledger.services import ledger_append, person_commitment
from governance.people.models import Passkey, User
from governance.people.rules.passkeys import key_from_cose
from reasoncodes.base.actors import Actor


def passkey_register(
    *, actor: Actor, at: datetime, user: User, rp_id: str, store: Callable[[], Authenticator]
) -> Passkey:
    """Stores a new authenticator (`store` does it) and records it. Raises PasskeyUnusable, and then nothing is
    stored."""
    with transaction.atomic():
        authenticator = store()
        credential = authenticator.wrap().authenticator_data.credential_data
        key = key_from_cose(dict(credential.public_key))
        passkey = Passkey(user=user, authenticator=authenticator, registered_at=at)
        passkey.save(force_insert=True)
        _record(
            passkey,
            "passkey.registered",
            actor=actor,
            at=at,
            credential_sha256=sha256(credential.credential_id).hexdigest(),
            algorithm=key.algorithm,
            public_key=key.text,
            rp_id=rp_id,
        )
    return passkey


def passkey_remove(*, actor: Actor, at: datetime, authenticator: Authenticator, remove: Callable[[], None]) -> None:
    """Removes an authenticator (`remove` does it) and records it. Its signatures under earlier votes stay valid."""
    with transaction.atomic():
        # Locked (FOR UPDATE): a vote that is being signed with it locks the same row, and comes before or after.
        rows = Passkey.objects.select_for_update(of=("self",))
        passkey = rows.filter(authenticator=authenticator, removed_at=None).first()
        remove()
        if passkey is not None:
            _end(passkey, actor=actor, at=at)


def passkeys_end(*, actor: Actor, at: datetime, user: User) -> int:
    """Ends all passkeys of a person, in the caller's transaction, for a reset of their sign-in."""
    passkeys = list(Passkey.objects.select_for_update(of=("self",)).filter(user=user, removed_at=None))
    for passkey in passkeys:
        _end(passkey, actor=actor, at=at)
    return len(passkeys)


def _end(passkey: Passkey, *, actor: Actor, at: datetime) -> None:
    passkey.authenticator, passkey.removed_at = None, at
    passkey.save(update_fields=["authenticator", "removed_at"])
    _record(passkey, "passkey.removed", actor=actor, at=at)


def _record(passkey: Passkey, action: str, *, actor: Actor, at: datetime, **facts: Any) -> None:
    # Of no organization: a person keeps their passkeys wherever they act. An evidence bundle of any organization takes
    # these entries with it.
    ledger_append(
        action=action,
        organization_id=None,
        subject_type="passkey",
        subject_id=passkey.id,
        actor=actor,
        at=at,
        payload={"person": person_commitment(user_id=passkey.user_id), **facts},
    )
