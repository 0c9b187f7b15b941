"""What an idempotency key means for a request: new, replayed, conflicting or expired.

Locks of keys are tried and never waited for: a concurrent request with the same key is answered 409.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from attempts.intake.errors import KeyInProgress, KeyInvalid, KeyMissing
from attempts.intake.models import IdempotencyRecord
from attempts.intake.rules import Fingerprint
from attempts.lifecycle.sql import RECORD_COLUMNS, key_locked_sql, record_latest_sql
from governance.boundary.rules import inspect_reference
from governance.boundary.rules.detectors import is_ordinary
from governance.contracts.rules.documents import KEY_CHARSETS
from governance.enforcement.selectors import Also
from governance.enforcement.sql import contract_open_sql
from governance.people.selectors import Credential
from governance.sql.statements import fetch, stored_row
from reasoncodes.base.errors import FieldError, InvalidInput

# Joined to the first query of an intake: the latest record of the key in each of the three scopes that a contract can
# choose, so that a request needs no second round trip for its key. `key_use` picks the contract's scope. `OFFSET 0`
# keeps the planner from joining the records before it knows the contract.
KEY_RECORDS = Also(
    columns=f"known.state, {', '.join(f'known.{name}' for name in RECORD_COLUMNS)}",
    join=f"""
    LEFT JOIN LATERAL (
        SELECT r.* FROM unnest(ARRAY['tenant', 'contract:' || c.slug, 'caller:' || a.id]) AS s (scope)
        CROSS JOIN LATERAL ({record_latest_sql(organization="o.id", scope="s.scope", key="$5")}) r
        WHERE {contract_open_sql("c")} OFFSET 0
    ) AS known ON TRUE
    """,  # noqa: S608
)
# Two statements. One that locks and reads sees the records of the moment when it began, before it had the lock: a
# request that was committed in between would be missed, and its repetition would be treated as new.
LOCK = f"SELECT {key_locked_sql('$1')}"
LOOK_UP = record_latest_sql(organization="$1", scope="$2", key="$3")


@dataclass(frozen=True, slots=True)
class KeyUse:
    """`outcome` is new, replayed, conflicting or expired; `record` is the earlier use."""

    outcome: str
    record: IdempotencyRecord | None = None
    differing: tuple[str, ...] = ()
    state: str = ""

    @property
    def next_generation(self) -> int:
        """The generation of the record that this request may write."""
        return self.record.generation + 1 if self.record else 1


def key_check(*, policy: Mapping[str, Any], key: str | None) -> str:
    """Checks the header against the contract's policy. Empty if there is no key and none is required."""
    if not key:
        if policy["required"]:
            raise KeyMissing
        return ""
    rule = policy["key"]
    if not rule["min_length"] <= len(key) <= rule["max_length"] or not re.fullmatch(KEY_CHARSETS[rule["charset"]], key):
        raise KeyInvalid
    # The key is stored in clear, so a key that looks like personal data or a secret is refused, as in any reference.
    if not is_ordinary(key, frozenset()) and inspect_reference(key, pointer="/idempotency_key"):
        raise KeyInvalid
    return key


def headers_check(*, policy: Mapping[str, Any], present: frozenset[str]) -> None:
    """Checks the other headers that the contract requires. `present` has the names in lower case."""
    missing = [name for name in policy["required_headers"] if name.lower() not in present | {"idempotency-key"}]
    if missing:
        raise InvalidInput(errors=[FieldError(f"/headers/{name}", "is required by the contract") for name in missing])


def key_scope(*, policy: Mapping[str, Any], credential: Credential, slug: str) -> str:
    return {"tenant": "tenant", "contract": f"contract:{slug}", "caller": f"caller:{credential.actor.id}"}[
        policy["scope"]
    ]


def key_lock(*, organization_id: UUID, scope: str, key: str) -> str:
    """The name of the advisory lock of a key. Keys of two organizations or scopes must not block each other."""
    return f"{organization_id} {scope} {key}"


def key_look_up(
    *,
    organization_id: UUID,
    scope: str,
    key: str,
    fingerprint: Fingerprint,
    policy: Mapping[str, Any],
    at: datetime | None,
) -> KeyUse:
    """Locks the key for this transaction, then reads its record. Raises KeyInProgress if another one has the lock."""
    ((locked,),) = fetch(LOCK, (key_lock(organization_id=organization_id, scope=scope, key=key),))
    if not locked:
        raise KeyInProgress
    found = fetch(LOOK_UP, (organization_id, scope, key))
    return key_use(found, scope=scope, fingerprint=fingerprint, policy=policy, at=at)


def key_use(
    rows: Iterable[tuple[Any, ...]],
    *,
    scope: str,
    fingerprint: Fingerprint,
    policy: Mapping[str, Any],
    at: datetime | None,
) -> KeyUse:
    """What the latest of these records in the scope means for a request with this fingerprint. `at` None: the key never
    expires. Records are append-only, so reading them needs no lock."""
    found = [(row[0], record) for row in rows if (record := stored_row(IdempotencyRecord, RECORD_COLUMNS, row[1:]))]
    state, record = max(
        ((state, record) for state, record in found if record.scope == scope),
        key=lambda pair: pair[1].generation,
        default=("", None),
    )
    if record is None:
        return KeyUse("new")
    if at is not None and record.expires_at <= at:
        return KeyUse("new" if policy["on_expired"] == "new" else "expired", record)
    if record.fingerprint != fingerprint.value:
        parts = json.loads(record.parts) if isinstance(record.parts, str) else record.parts
        return KeyUse("conflicting", record, tuple(fingerprint.differing(parts)))
    return KeyUse("replayed", record, state=state)
