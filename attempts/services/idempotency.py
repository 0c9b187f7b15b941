"""What a key means for this request: new, replayed, conflicting, expired. Nobody waits for anybody."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from attempts.errors import KeyInProgress, KeyInvalid, KeyMissing
from attempts.intake_body import Fingerprint
from attempts.models import IdempotencyRecord
from governance.boundary import inspect_reference
from governance.boundary.detectors import is_ordinary
from governance.documents import KEY_CHARSETS
from governance.selectors import Credential
from reasoncodes.errors import FieldError, InvalidInput

# One round trip: the lock of the key (released with the transaction), the latest record under it and its attempt's
# state now.
LOOK_UP = """
SELECT pg_try_advisory_xact_lock(hashtextextended(%(lock)s, 0)), found.*
FROM (SELECT 1) AS once
LEFT JOIN LATERAL (
    SELECT a.state, {columns} FROM attempts_idempotencyrecord r JOIN attempts_attempt a ON a.id = r.attempt_id
    WHERE r.organization_id = %(organization)s AND r.scope = %(scope)s AND r.key = %(key)s
    ORDER BY r.generation DESC LIMIT 1
) AS found ON TRUE
"""


@dataclass(frozen=True, slots=True)
class KeyUse:
    """`outcome` is one of new, replayed, conflicting, expired; `record` is the earlier use."""

    outcome: str
    record: IdempotencyRecord | None = None
    differing: tuple[str, ...] = ()
    state: str = ""


def key_check(*, policy: Mapping[str, Any], key: str | None) -> str:
    """The header against the contract's policy; empty when there is none and none is demanded."""
    if not key:
        if policy["required"]:
            raise KeyMissing
        return ""
    rule = policy["key"]
    if not rule["min_length"] <= len(key) <= rule["max_length"] or not re.fullmatch(KEY_CHARSETS[rule["charset"]], key):
        raise KeyInvalid
    # The key is stored as it is, so what must not enter the record is no key, whatever characters it has.
    if not is_ordinary(key, frozenset()) and inspect_reference(key, pointer="/idempotency_key"):
        raise KeyInvalid
    return key


def headers_check(*, policy: Mapping[str, Any], present: frozenset[str]) -> None:
    """The headers that the contract demands besides the key. `present` holds names in lower case."""
    missing = [name for name in policy["required_headers"] if name.lower() not in present | {"idempotency-key"}]
    if missing:
        raise InvalidInput(errors=[FieldError(f"/headers/{name}", "is required by the contract") for name in missing])


def key_scope(*, policy: Mapping[str, Any], credential: Credential, slug: str) -> str:
    return {"tenant": "tenant", "contract": f"contract:{slug}", "caller": f"caller:{credential.actor.id}"}[
        policy["scope"]
    ]


def key_look_up(
    *,
    organization_id: UUID,
    scope: str,
    key: str,
    fingerprint: Fingerprint,
    policy: Mapping[str, Any],
    at: datetime | None,
) -> KeyUse:
    """Inside the intake's transaction, whose lock on the key makes it the only one for this key. `at` is None for a
    workflow step's key, which does not end: a step opens one attempt, however late it asks again."""
    fields = IdempotencyRecord._meta.concrete_fields
    with connection.cursor() as cursor:
        cursor.execute(
            LOOK_UP.format(columns=", ".join(f"r.{field.column}" for field in fields)),
            {"lock": f"{organization_id} {scope} {key}", "organization": organization_id, "scope": scope, "key": key},
        )
        locked, state, *values = cursor.fetchone()
    if not locked:
        raise KeyInProgress
    if state is None:
        return KeyUse("new")
    record = IdempotencyRecord.from_db(connection.alias, [field.attname for field in fields], values)
    record.parts = json.loads(record.parts) if isinstance(record.parts, str) else record.parts
    if at is not None and record.expires_at <= at:
        return KeyUse("new" if policy["on_expired"] == "new" else "expired", record)
    if record.fingerprint != fingerprint.value:
        return KeyUse("conflicting", record, tuple(fingerprint.differing(record.parts)))
    return KeyUse("replayed", record, state=state)
