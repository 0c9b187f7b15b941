"""What a key means for this request: new, replayed, conflicting, expired. Nobody waits for anybody."""

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
from governance.enforcement.selectors.arrival import Also
from governance.enforcement.sql import contract_open_sql
from governance.people.selectors import Credential
from governance.sql.statements import fetch, stored_row
from reasoncodes.base.errors import FieldError, InvalidInput

# For the query at the door: the latest record of the key in every scope that it can have. Which one counts, the
# contract says. `OFFSET 0` keeps the planner from joining the records before it knows the contract.
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
# A statement of its own: one that also read the record would read it as it was when it began, before it had the lock,
# and take a repetition for new.
LOCK = f"SELECT {key_locked_sql('$1')}"
LOOK_UP = record_latest_sql(organization="$1", scope="$2", key="$3")


@dataclass(frozen=True, slots=True)
class KeyUse:
    """`outcome` is one of new, replayed, conflicting, expired; `record` is the earlier use."""

    outcome: str
    record: IdempotencyRecord | None = None
    differing: tuple[str, ...] = ()
    state: str = ""

    @property
    def next_generation(self) -> int:
        """Of the record that this request may write."""
        return self.record.generation + 1 if self.record else 1


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


def key_lock(*, organization_id: UUID, scope: str, key: str) -> str:
    """The name under which one transaction at a time works on a key."""
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
    """Inside the intake's transaction, whose lock on the key makes it the only one for this key."""
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
    """What the latest of these records under the scope means. They are never changed, so this needs no lock. `at` is
    None for a workflow step's key, which does not end: a step opens one attempt, however late it asks again."""
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
