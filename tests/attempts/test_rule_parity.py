"""Rules about keys and slots that are said in SQL and in Python say the same: both are asked about the same rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from attempts.intake.models import IdempotencyRecord
from attempts.intake.rules import Fingerprint
from attempts.intake.services.door import KEY_RECORDS, KeyUse, key_lock, key_look_up, key_use
from attempts.lifecycle.models import Attempt, Slot
from attempts.lifecycle.services.transition import Cap, Claim, KeyGuard, slots_reserve
from attempts.lifecycle.sql import RESERVATION_CONDITION
from attempts.lifecycle.states import SlotScope
from governance.enforcement.selectors import intake_arrival
from governance.sql.statements import fetch
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import open_contract
from tests.properties import examples

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWN_WORLD = [HealthCheck.function_scoped_fixture]  # every example undoes what it did: see `undone`
KEY = "parity-00000001"
SAME, OTHER = Fingerprint("a" * 64, {}), Fingerprint("b" * 64, {})
GATE_ONLY = f"WITH {RESERVATION_CONDITION.sql} SELECT locked, known, busy, go FROM gate"  # noqa: S608


@contextmanager
def undone() -> Iterator[None]:
    with every_tenant(), transaction.atomic():
        yield
        transaction.set_rollback(True)


CAPS = st.lists(
    st.builds(Cap, st.sampled_from(SlotScope), st.sampled_from(["one", "two"]), st.integers(0, 4)),
    max_size=4,
    unique_by=lambda cap: cap.scope,
)
HELD = st.lists(
    st.tuples(st.sampled_from(SlotScope), st.sampled_from(["one", "two"]), st.integers(1, 5)), max_size=14, unique=True
)


def first_full(caps: list[Cap], held: list[tuple[SlotScope, str, int]]) -> SlotScope | None:
    """The rule in words: a cap is full when every number up to its limit is held."""
    taken = {(scope, subject, number) for scope, subject, number in held}
    for cap in caps:
        if all((cap.scope, cap.subject, number) in taken for number in range(1, cap.limit + 1)):
            return cap.scope
    return None


@pytest.fixture
def world(cast: Cast) -> Cast:
    """Both organizations, made before the first example, which would undo them."""
    assert cast.organization.id != cast.other.id
    return cast


@examples(100, suppress_health_check=OWN_WORLD)
@given(caps=CAPS, held=HELD, keeps=st.booleans())
def test_a_slot_is_free(world: Cast, caps: list[Cap], held: list[tuple[SlotScope, str, int]], keeps: bool) -> None:
    """Beforehand in the caller's transaction, as the condition of the statement that writes the rows, and in words."""
    with undone():
        Slot.objects.bulk_create(
            Slot(
                organization=world.organization,
                scope=scope,
                subject=Cap(scope, subject, 0).digest,
                number=number,
                attempt_id=uuid7(),
            )
            for scope, subject, number in held
        )
        claim = Claim(world.organization.id, uuid7(), caps)
        full = first_full(caps, held)
        ((locked, known, busy, go),) = fetch(GATE_ONLY, claim.parameters(keeps=False))
        assert (locked, known, busy, go) == (True, False, full, full is None)
        assert slots_reserve(claim, keeps=keeps).busy == full
        got = Slot.objects.filter(attempt_id=claim.attempt_id)
        assert {row.scope for row in got} == ({cap.scope for cap in caps} if keeps and full is None else set())
        assert all(1 <= row.number <= cap.limit for row in got for cap in caps if cap.scope == row.scope)


@dataclass(frozen=True)
class Earlier:
    """A caller, and an attempt that records can point to."""

    secret: str
    caller_id: UUID
    attempt_id: UUID


@pytest.fixture
def earlier(cast: Cast) -> Earlier:
    open_contract(cast)
    secret = cast.key("attempts:create")
    attempt_id = UUID(post(cast.with_key(secret), body()).json()["id"])
    with every_tenant():
        return Earlier(secret, Attempt.objects.get(id=attempt_id).caller_id, attempt_id)


@st.composite
def records(draw: st.DrawFn) -> list[dict[str, Any]]:
    found = []
    for scope in ("tenant", "contract", "caller"):
        for generation in range(1, draw(st.integers(0, 3)) + 1):
            ends = AT + timedelta(microseconds=draw(st.sampled_from([-1, 0, 1])))
            fingerprint = draw(st.sampled_from([SAME, OTHER]))
            found.append({"scope": scope, "generation": generation, "ends": ends, "fingerprint": fingerprint})
    return found


def in_words(rows: list[dict[str, Any]], *, on_expired: str, ends: bool) -> tuple[str, int]:
    """What the key means, and the generation of the record that says so (0: there is none)."""
    if not rows:
        return "new", 0
    latest = max(rows, key=lambda row: row["generation"])
    if ends and latest["ends"] <= AT:
        return ("new" if on_expired == "new" else "expired"), latest["generation"]
    return ("replayed" if latest["fingerprint"] is SAME else "conflicting"), latest["generation"]


def told(use: KeyUse) -> tuple[str, int]:
    return use.outcome, use.record.generation if use.record else 0


@examples(80, suppress_health_check=OWN_WORLD)
@given(
    rows=records(),
    scope=st.sampled_from(["tenant", "contract", "caller"]),
    on_expired=st.sampled_from(["new", "refuse"]),
    ends=st.booleans(),
)
def test_what_a_key_means(
    cast: Cast, earlier: Earlier, rows: list[dict[str, Any]], scope: str, on_expired: str, ends: bool
) -> None:
    """From the records that the door's query found, from the look-up under the lock, by the condition of a reservation
    and of the statement that writes, and in words."""
    with undone():
        names = {"tenant": "tenant", "contract": "contract:close-case", "caller": f"caller:{earlier.caller_id}"}
        for row in rows:
            make_record(cast, earlier.attempt_id, names[row["scope"]], row)
        asked: dict[str, Any] = {"slug": "close-case", "version": "1", "also": KEY_RECORDS, "parameters": (KEY,)}
        arrival = intake_arrival(secret=earlier.secret, at=timezone.now(), **asked)
        assert arrival is not None
        policy, at = {"on_expired": on_expired}, AT if ends else None
        expected = in_words([row for row in rows if row["scope"] == scope], on_expired=on_expired, ends=ends)
        read = key_use(arrival.also, scope=names[scope], fingerprint=SAME, policy=policy, at=at)
        under_lock = key_look_up(
            organization_id=cast.organization.id,
            scope=names[scope],
            key=KEY,
            fingerprint=SAME,
            policy=policy,
            at=at,
        )
        assert [told(read), told(under_lock)] == [expected] * 2
        for use, known in [(under_lock.next_generation, False), (1, under_lock.record is not None)]:
            claim = guarded(cast, names[scope], use)
            ((locked, seen, _, go),) = fetch(GATE_ONLY, claim.parameters(keeps=False))
            assert (locked, seen, go) == (True, known, not known)
            assert slots_reserve(claim).known == known


def make_record(cast: Cast, attempt_id: UUID, scope: str, row: dict[str, Any]) -> None:
    IdempotencyRecord.objects.create(
        organization=cast.organization,
        scope=scope,
        key=KEY,
        fingerprint=row["fingerprint"].value,
        parts="",
        attempt_id=attempt_id,
        status=201,
        body="{}",
        first_used_at=AT - timedelta(days=1),
        expires_at=row["ends"],
        generation=row["generation"],
    )


def guarded(cast: Cast, scope: str, generation: int) -> Claim:
    lock = key_lock(organization_id=cast.organization.id, scope=scope, key=KEY)
    return Claim(cast.organization.id, uuid7(), [], KeyGuard(lock, scope, KEY, generation))
