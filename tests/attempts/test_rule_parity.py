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
from attempts.lifecycle.services.slots import Cap, Claim, KeyGuard, Subjects, caps_for, slots_reserve
from attempts.lifecycle.sql import RESERVATION_CONDITION
from attempts.lifecycle.states import SlotScope
from governance.enforcement.selectors import intake_arrival
from governance.sql.statements import fetch
from governance.tenancy.models import Organization
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


@dataclass(frozen=True)
class Under:
    """An attempt under way, as its slot has it; `held`: one that waits for people."""

    workflow: str
    context: str
    key: str
    held: bool = False


NAMES = st.sampled_from(["one", "two"])
MAYBE = st.sampled_from(["", "one", "two"])
UNDER_WAY = st.lists(st.builds(Under, NAMES, MAYBE, MAYBE, st.booleans()), max_size=20)
LIMITS = st.one_of(st.none(), st.integers(0, 20))
WANTED_CAPS = st.fixed_dictionaries(
    {"per_key": LIMITS, "per_context": LIMITS, "per_workflow": LIMITS, "per_tenant": LIMITS, "per_region": LIMITS}
)


def first_full(caps: list[Cap], found: list[Under], strangers: list[Under]) -> tuple[SlotScope, int, int] | None:
    """The rule in words: a cap is full when as many as its limit are under way for its subject, of any contract. The
    region's counts strangers too: both organizations are in one."""
    counted = {
        SlotScope.KEY: lambda one, subject: not one.held and one.key == subject,
        SlotScope.CONTEXT: lambda one, subject: not one.held and one.context == subject,
        SlotScope.WORKFLOW: lambda one, subject: not one.held and one.workflow == subject,
        SlotScope.TENANT: lambda one, subject: not one.held,
        SlotScope.REGION: lambda one, subject: not one.held,
        SlotScope.HOLDS: lambda one, subject: one.held,
    }
    for number, cap in enumerate(caps, 1):
        everyone = found + (strangers if cap.scope is SlotScope.REGION else [])
        used = sum(counted[cap.scope](one, cap.subject) for one in everyone)
        if cap.limit is not None and used >= cap.limit:
            return cap.scope, cap.limit, number  # counted no further than the limit
    return None


@pytest.fixture
def world(cast: Cast) -> Cast:
    """Both organizations, made before the first example, which would undo them."""
    assert cast.organization.id != cast.other.id
    return cast


def put(organization: Organization, one: Under) -> None:
    if not one.held:
        row = {"workflow_slug": one.workflow, "context": one.context, "key": one.key}
        Slot.objects.create(organization=organization, attempt_id=uuid7(), **row)


@examples(150, suppress_health_check=OWN_WORLD)
@given(
    limits=WANTED_CAPS,
    organization_cap=st.integers(0, 25),
    asked=st.builds(Under, NAMES, MAYBE, MAYBE),
    found=UNDER_WAY,
    strangers=UNDER_WAY,
    keeps=st.booleans(),
)
def test_a_slot_is_free(
    world: Cast,
    limits: dict[str, int | None],
    organization_cap: int,
    asked: Under,
    found: list[Under],
    strangers: list[Under],
    keeps: bool,
) -> None:
    """Beforehand in the caller's transaction, as the condition of the statement that writes the rows, and in words.
    Whose contract took the slots changes nothing, and what another organization has under way only the region's."""
    with undone():
        for one in found:
            put(world.organization, one)
        for one in strangers:
            put(world.other, one)
        subjects = Subjects(asked.workflow, asked.context, asked.key, regions=("US",))
        caps = caps_for(document={"limits": limits}, organization_cap=organization_cap, subjects=subjects)
        claim = Claim(world.organization.id, uuid7(), caps, subjects=subjects)
        full = first_full(caps, *([one for one in some if not one.held] for some in (found, strangers)))
        said = None if full is None else f"{full[2]} {full[1]}"
        ((locked, known, busy, go),) = fetch(GATE_ONLY, claim.parameters(keeps=False))
        assert (locked, known, busy, go) == (True, False, said, full is None)
        reserved = slots_reserve(claim, keeps=keeps).busy
        assert (reserved and (reserved.cap.scope, reserved.used)) == (full and full[:2])
        assert Slot.objects.filter(attempt_id=claim.attempt_id).count() == int(keeps and full is None)


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
