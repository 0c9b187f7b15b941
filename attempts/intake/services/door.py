"""Whether a request may come in: decided from address, headers and credential before any byte of its body is read.
Then what its idempotency key means, and the checked intake."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from attempts.intake.errors import KeyInProgress, KeyInvalid, KeyMissing
from attempts.intake.models import IdempotencyRecord
from attempts.intake.rules import Fingerprint, body_problems
from attempts.intake.services.unreadable import attempt_refuse_unreadable
from attempts.lifecycle.services.slots import (
    Cap,
    Claim,
    KeyGuard,
    Subjects,
    caps_for,
    holds_cap,
    key_counted,
    key_scope,
)
from attempts.lifecycle.sql import RECORD_COLUMNS, key_locked_sql, record_latest_sql
from attempts.lifecycle.states import ENGINE, RuntimeMode
from governance.boundary.rules import inspect_handle
from governance.contracts.rules.documents import KEY_CHARSETS
from governance.enforcement.models import snapshot_load
from governance.enforcement.selectors import (
    Also,
    Arrival,
    IntakeFacts,
    OwnArrival,
    intake_arrival,
    intake_facts,
    intake_own_arrival,
)
from governance.enforcement.sql import Closed, contract_open_sql
from governance.integrity.states import RECORD_DIFFERS
from governance.people.selectors.people import Credential, credential_refusal
from governance.sealing.states import LEDGER_INCONSISTENT
from governance.sql.statements import fetch, stored_row
from governance.throttles.services import Limit, limits_for
from reasoncodes.base.errors import (
    AttemptCreationDisabled,
    CredentialMissing,
    FieldError,
    InvalidInput,
    ScopeMissing,
)
from reasoncodes.base.trace import TraceContext

# Joined to the first query of an intake: the latest record of the key in each of the three scopes that a contract can
# choose, so that a request needs no second round trip for its key. `key_use` picks the contract's scope. `OFFSET 0`
# keeps the planner from joining the records before it knows the contract.
KEY_HEADER = "/headers/Idempotency-Key"
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


def _key_check(*, policy: Mapping[str, Any], key: str | None) -> str:
    """Checks the header against the contract's policy. Empty if there is no key and none is required."""
    if not key:
        if policy["required"]:
            raise KeyMissing
        return ""
    rule = policy["key"]
    if not rule["min_length"] <= len(key) <= rule["max_length"] or not re.fullmatch(KEY_CHARSETS[rule["charset"]], key):
        words = "does not have the length or the characters of the contract"
        raise KeyInvalid(errors=[FieldError(KEY_HEADER, words, rule="format")])
    # The key is stored in clear, so a key that looks like personal data or a secret is refused.
    if found := inspect_handle(key, pointer=KEY_HEADER):
        errors = [FieldError(one.pointer, one.message, rule=one.rule, remedy=one.remedy) for one in found]
        raise KeyInvalid(errors=errors)
    return key


def _headers_check(*, policy: Mapping[str, Any], present: frozenset[str]) -> None:
    """Checks the other headers that the contract requires. `present` has the names in lower case."""
    missing = [name for name in policy["required_headers"] if name.lower() not in present | {"idempotency-key"}]
    if missing:
        raise InvalidInput(errors=[FieldError(f"/headers/{name}", "is required by the contract") for name in missing])


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


SCOPE = "attempts:create"
STOPPED = {
    "shutdown_engaged": "A shutdown covers this contract.",
    RECORD_DIFFERS: "A row of the record is not what the ledger says; two people must look at it.",
    LEDGER_INCONSISTENT: "The ledger does not match what its witnesses keep; an administrator must confirm the loss.",
}


@dataclass(frozen=True, slots=True)
class Intake:
    """One request to an open contract, from a known caller."""

    credential: Credential
    facts: IntakeFacts
    route: str
    key: str | None
    body: Any
    trace: TraceContext
    at: datetime
    deployment_region: str
    base_url: str
    headers: frozenset[str] = frozenset()
    known: tuple[tuple[Any, ...], ...] | None = None
    """Earlier records of the key, in the columns of `KEY_RECORDS`; None if they were not read."""
    retry_of: UUID | None = None
    compensates: UUID | None = None
    origin_step: UUID | None = None
    authorized_by: str = ""
    """The commitment of the person who authorized this retry or compensation; that person may not review it."""

    @property
    def is_from_outside(self) -> bool:
        """False for a retry, a compensation or a workflow step: Holdpoint makes these from its own rows."""
        return self.retry_of is None and self.compensates is None and self.origin_step is None

    def with_body(self, body: Any) -> "Intake":
        return replace(self, body=body)


@dataclass(frozen=True, slots=True)
class CheckedIntake:
    """A request whose key and body are well-formed, with the documents of its contract."""

    intake: Intake
    documents: dict[str, Any]
    key: str
    scope: str
    fingerprint: Fingerprint

    @classmethod
    def of(cls, intake: Intake, documents: dict[str, Any], key: str) -> "CheckedIntake":
        policy, slug = documents["idempotency_key_policy"], intake.facts.contract.slug
        scope = key_scope(policy, slug=slug, caller_id=intake.credential.actor.id)
        return cls(intake, documents, key, scope, Fingerprint.of(route=intake.route, body=intake.body))

    @property
    def is_deduplicated(self) -> bool:
        return bool(self.key) and self.documents["idempotency_key_policy"]["mode"] == "dedupe"

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The throttles that apply to this request. A service's requests are also those of its responsible person."""
        account = self.intake.credential.key.service_account
        subjects = {
            "tenant": ["all"],
            "user": [str(account.responsible_id or "")],
            "service": [str(account.id)],
            "workflow": [self.intake.facts.contract.slug],
            "context": [self.intake.body.get("patient_context_ref", "")],
            "region": self.intake.credential.organization.regions,
        }
        scope = str(account.organization_id)
        return limits_for(self.documents["throttles_and_misuse"], scope=scope, subjects=subjects)

    def caps(self, verdict: str, subjects: Subjects) -> list[Cap]:
        """The caps that this request needs a place in: none if it is denied, and none for a shadow."""
        if self.intake.body.get("runtime_mode") == RuntimeMode.SHADOW:
            return []
        organization = self.intake.credential.organization
        if verdict == "needs_approval":
            return [holds_cap(organization.max_open_holds)]
        if verdict != "allow":
            return []
        return caps_for(
            document=self.documents["concurrency_and_locks"],
            organization_cap=organization.max_concurrency,
            subjects=subjects,
        )

    @property
    def subjects(self) -> Subjects:
        slug, caller_id = self.intake.facts.contract.slug, self.intake.credential.actor.id
        return Subjects.of(
            slug=slug,
            context=self.intake.body.get("patient_context_ref", ""),
            key=key_counted(self.key_policy, key=self.key, slug=slug, caller_id=caller_id),
            person=self.intake.credential.key.service_account.responsible_id,
            regions=self.intake.credential.organization.regions,
        )

    @property
    def key_policy(self) -> Mapping[str, Any]:
        policy: Mapping[str, Any] = self.documents["idempotency_key_policy"]
        return policy

    @property
    def lock(self) -> str | None:
        """The name of the advisory lock of its key; None if the key is not deduplicated."""
        if not self.is_deduplicated:
            return None
        return key_lock(organization_id=self.intake.credential.organization.id, scope=self.scope, key=self.key)

    def claim(self, attempt_id: UUID, *, use: KeyUse, verdict: str, with_key: bool) -> Claim:
        """What a request with this verdict needs. `with_key` false: this transaction already has the key's lock and has
        read its record."""
        lock, subjects = self.lock if with_key else None, self.subjects
        caps = self.caps(verdict, subjects)
        return Claim(
            organization_id=self.intake.credential.organization.id,
            attempt_id=attempt_id,
            caps=caps,
            guard=KeyGuard(lock, self.scope, self.key, use.next_generation) if lock else None,
            subjects=subjects if caps and verdict == "allow" else None,
        )

    def use_as_read(self) -> KeyUse | None:
        """What the key means, by the records that came with the first query; None if they were not read."""
        known = self.intake.known
        if known is None:
            return None
        if not known or not self.is_deduplicated:
            return KeyUse("new")
        return key_use(known, scope=self.scope, fingerprint=self.fingerprint, policy=self.key_policy, at=self.intake.at)

    def use_under_lock(self) -> KeyUse:
        """The same, read again under the key's lock, which the transaction keeps."""
        if not self.is_deduplicated:
            return KeyUse("new")
        # A step's key never expires: a step opens one attempt, however late the engine asks again.
        return key_look_up(
            organization_id=self.intake.credential.organization.id,
            scope=self.scope,
            key=self.key,
            fingerprint=self.fingerprint,
            policy=self.key_policy,
            at=self.intake.at if self.intake.origin_step is None else None,
        )


def intake_knock(
    *, secret: str | None, workflow_slug: str, contract_version: str, key: str | None, at: datetime
) -> Arrival:
    """Finds caller, contract and earlier uses of the key in one query. An unknown credential is refused."""
    # A key with other characters is no valid key. It is not sent as a parameter; `_key_check` refuses it later.
    asked = (key,) if key and key.isascii() and key.isprintable() else ()
    arrival = secret and intake_arrival(
        secret=secret,
        slug=workflow_slug,
        version=contract_version,
        at=at,
        also=KEY_RECORDS if asked else None,
        parameters=asked,
    )
    if not arrival:
        raise credential_refusal(secret=secret, at=at) if secret else CredentialMissing()
    return arrival


def intake_pass(*, credential: Credential, facts: IntakeFacts | None) -> IntakeFacts:
    """Returns the facts of the open contract, or raises the refusal. Writes nothing."""
    if SCOPE not in credential.actor.scopes:
        raise ScopeMissing(extensions={"required_scope": SCOPE})
    return _open_only(facts)


def intake_pass_ours(*, contract_id: UUID, arrival: OwnArrival | None = None) -> None:
    """The same check for a step of effect `none`, which gets no attempt. The caller has the send lock, and passes what
    it read under the lock."""
    arrival = arrival or intake_own_arrival(contract_id=contract_id, account_slug=ENGINE)
    if arrival is None or Closed.ORGANIZATION in arrival.facts.closed_by:
        raise AttemptCreationDisabled
    _open_only(arrival.facts)


def _open_only(facts: IntakeFacts | None) -> IntakeFacts:
    """Refuses a contract that is not open, or that a shutdown covers."""
    # The organization's state is not checked here: for a request from outside the key's query has done it, and for a
    # step's attempt enforcement denies it, so that the denial is on record.
    if facts is None or Closed.STATE in facts.closed_by:
        raise AttemptCreationDisabled
    if facts.shutdowns and (reason := facts.stopped_by):
        raise AttemptCreationDisabled(STOPPED[reason], reason_code=reason)
    return facts


def intake_door(*, credential: Credential, workflow_slug: str, contract_version: str) -> IntakeFacts:
    """The same check for a credential that is already known."""
    facts = intake_facts(organization=credential.organization, slug=workflow_slug, version=contract_version)
    return intake_pass(credential=credential, facts=facts)


def intake_check(intake: Intake) -> CheckedIntake:
    """Checks the shape of key, headers and body, and raises the refusal. A malformed body is also put on the ledger."""
    documents: dict[str, Any] = snapshot_load(intake.facts.contract.snapshot_sha256)["documents"]
    policy = documents["idempotency_key_policy"]
    key = _key_check(policy=policy, key=intake.key)
    if intake.is_from_outside:
        _headers_check(policy=policy, present=intake.headers)
    problems = body_problems(intake.body)
    if problems:
        refusal = InvalidInput(errors=problems)
        attempt_refuse_unreadable(intake=intake, refusal=refusal)
        raise refusal
    return CheckedIntake.of(intake, documents, key)
