"""The worker's choice: in fair turns, within each receiver's share, and past receivers that are down."""

import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from attempts.execution.adapters.base import success
from attempts.execution.models import DispatchIntent
from attempts.execution.selectors import attempt_obstacles
from attempts.execution.services.work import Places, attempts_work
from attempts.execution.sql import HEADS
from attempts.receivers.models import ReceiverCircuit
from attempts.receivers.rules import OPENS_AFTER
from governance.contracts.services.contracts import contract_suspend
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import asked, attempt, capacity, change, contract, other_attempts
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.plans import only_these_indexes
from tests.stack.support import wait_for


@pytest.fixture
def second(settings: Any, target: CountingTarget) -> Iterator[CountingTarget]:
    """A receiver of its own for the contract `other-case`."""
    found = CountingTarget()
    settings.HOLDPOINT_HTTP_TARGETS = settings.HOLDPOINT_HTTP_TARGETS | {"clinic/other-case": found.url}
    settings.HOLDPOINT_HTTP_ALLOW_PRIVATE = [target.host, found.host]
    yield found
    found.stop()


def work(places: Places) -> int:
    return attempts_work(now=timezone.now, places=places)


def states(*attempt_ids: UUID) -> list[str]:
    return [attempt(one).state for one in attempt_ids]


def circuit() -> ReceiverCircuit:
    with every_tenant():
        return ReceiverCircuit.objects.get()


def test_one_message_executes_everything_that_is_due(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast)
    found = [asked(caller, number) for number in range(1, 4)]
    assert work(Places(4)) == 3
    assert set(states(*found)) == {"completed"}
    assert work(Places(4)) == 0


def test_attempts_that_wait_for_a_time_a_slot_or_somebody_else_are_not_chosen(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast)
    later, queued = asked(caller, 1), asked(caller, 2)
    asked(caller, 3, runtime_mode="client_driven")
    asked(caller, 4, runtime_mode="shadow")
    change(later, "next_eligible_at = clock_timestamp() + interval '1 minute'")
    change(queued, "queued_until = clock_timestamp() + interval '1 minute'")
    assert work(Places(4)) == 0
    assert target.requests == []


def test_an_attempt_that_may_not_be_sent_now_does_not_keep_the_next_one_waiting(
    cast: Cast, caller: Any, target: CountingTarget, second: CountingTarget
) -> None:
    stopped = contract(cast)
    contract(cast, slug="other-case")
    first, next_one = asked(caller, 1), asked(caller, 2, slug="other-case")
    actor = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        contract_suspend(actor=actor, at=timezone.now(), contract_id=stopped.id, reason_code="planned_maintenance")
    assert work(Places(4)) == 1
    assert states(first, next_one) == ["approved-for-execution", "completed"]


def turns(places: Places, number: int) -> list[UUID]:
    """Whose turn it is, one after another, each answered at once."""
    chosen, passed = [], list[UUID]()
    with every_tenant():
        for _ in range(number):
            one = places.choose(at=timezone.now(), passed=passed)
            assert one is not None
            places.end(one, outcome=success(status=200))
            passed.append(one.attempt_id)
            chosen.append(one.turn.key)
    return chosen


def test_organizations_take_turns_by_their_weight_although_one_came_first(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast)
    capacity(cast.other, capacity_units=3)
    for number in range(1, 13):
        asked(caller, number)
    other_attempts(cast, [asked(caller, number) for number in range(20, 32)])
    order = turns(Places(4), 12)
    assert abs(order.count(cast.other.id) - 9) <= 1, order


def test_within_an_organization_the_oldest_is_first(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast)
    first, second, third = (asked(caller, number) for number in (1, 2, 3))
    change(third, "next_eligible_at = clock_timestamp() - interval '1 minute'")
    places = Places(16)
    with every_tenant():
        chosen = [places.choose(at=timezone.now()) for _ in range(2)]
    assert [one.attempt_id if one else None for one in chosen] == [third, first]
    assert attempt(second).tries == 0


@pytest.mark.django_db(transaction=True)
def test_a_receiver_that_hangs_has_a_small_share_and_another_is_called_meanwhile(
    cast: Cast, caller: Any, target: CountingTarget, second: CountingTarget
) -> None:
    contract(cast)
    contract(cast, slug="other-case")
    target.pause = True
    places = Places(8)
    for number in range(1, 7):
        asked(caller, number)
    threads = [threading.Thread(target=_in_thread, args=(places,)) for _ in range(3)]
    for one in threads:
        one.start()
    assert target.arrived.wait(10)
    # The others find no room and end; one of them would otherwise take what is asked below.
    wait_for(lambda: sum(one.is_alive() for one in threads) == 1, seconds=10, what="the places without work")
    quick = asked(caller, 100, slug="other-case")
    assert work(places) == 1
    assert states(quick) == ["completed"]
    assert (len(target.requests), len(second.requests)) == (1, 1), "an eighth of eight places"
    target.pause = False
    target.release.set()
    for one in threads:
        one.join(10)
    work(places)
    with every_tenant():
        assert DispatchIntent.objects.count() == 7


def _in_thread(places: Places) -> None:
    try:
        work(places)
    finally:
        connection.close()


def test_a_receiver_that_is_down_opens_its_circuit_and_what_waits_is_not_sent(
    cast: Cast, caller: Any, target: CountingTarget, second: CountingTarget
) -> None:
    contract(cast, effect="idempotent")
    contract(cast, slug="other-case")
    target.statuses = [503] * 50
    found = [asked(caller, number) for number in range(1, 9)]
    places = Places(4)
    assert work(places) == OPENS_AFTER
    assert len(target.requests) == OPENS_AFTER
    row = circuit()
    assert (row.organization_id, row.connector, row.receiver) == (cast.organization.id, "http", target.host)
    assert (row.failures, row.last_why) == (OPENS_AFTER, "refused")
    assert row.opened_at is not None
    with every_tenant():
        entry = LedgerEntry.objects.filter(subject_id=row.id).get()
        assert entry.action == "receiver.circuit_opened"
    assert work(places) == 0
    assert {attempt(one).tries for one in found} == {0, 1}
    waiting = next(one for one in found if attempt(one).tries == 0)
    with every_tenant():
        (said,) = attempt_obstacles(attempt=attempt(waiting), at=timezone.now())
    assert (said.kind, said.facts["failures"]) == ("receiver", OPENS_AFTER)
    quick = asked(caller, 100, slug="other-case")
    assert work(places) == 1
    assert states(quick) == ["completed"]


def test_an_open_circuit_sends_one_probe_and_closes_when_it_is_answered(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast, effect="idempotent")
    target.statuses = [503] * (OPENS_AFTER + 1)
    found = [asked(caller, number) for number in range(1, 12)]
    places = Places(4)
    work(places)
    _pause_is_over()
    assert work(Places(4)) == 1, "the probe fails"
    assert (circuit().probes, circuit().probing_until) == (1, None)
    assert work(Places(4)) == 0
    _pause_is_over()
    assert work(Places(4)) == len(found) - OPENS_AFTER - 1, "a probe that is answered lets the others go"
    row = circuit()
    assert (row.failures, row.opened_at, row.probes) == (0, None, 0)
    with every_tenant():
        actions = [entry.action for entry in LedgerEntry.objects.filter(subject_id=row.id).order_by("id")]
    assert actions == ["receiver.circuit_opened", "receiver.circuit_closed"]


def _pause_is_over() -> None:
    with every_tenant():
        ReceiverCircuit.objects.update(probe_at=timezone.now() - timedelta(seconds=1))


def test_two_workers_do_not_probe_at_once(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast, effect="idempotent")
    target.statuses = [503] * 50
    for number in range(1, 12):
        asked(caller, number)
    work(Places(4))
    _pause_is_over()
    with every_tenant():
        chosen = Places(4).choose(at=timezone.now())
        assert chosen is not None
        assert chosen.probes
        assert Places(4).choose(at=timezone.now()) is None


def test_what_one_organization_meets_does_not_stop_another_at_the_same_receiver(
    cast: Cast, caller: Any, target: CountingTarget, settings: Any
) -> None:
    settings.HOLDPOINT_HTTP_TARGETS = settings.HOLDPOINT_HTTP_TARGETS | {f"{cast.other.slug}/close-case": target.url}
    contract(cast, effect="idempotent")
    target.statuses = [503] * OPENS_AFTER
    for number in range(1, 8):
        asked(caller, number)
    assert work(Places(4)) == OPENS_AFTER
    (found,) = other_attempts(cast, [asked(caller, 20)])
    with every_tenant():
        chosen = Places(4).choose(at=timezone.now())
    assert chosen is not None
    assert (chosen.attempt_id, chosen.receiver.name, chosen.probes) == (found, target.host, False)


def test_the_choice_reads_by_its_index_and_not_every_due_attempt(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast)
    for number in range(1, 4):
        asked(caller, number)
    only_these_indexes(["attempt_lines", "attempt_ready"])
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + HEADS, {"taken": [], "each": 2})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    # Of three rows: the planner may take either index for the last part.
    assert len(re.findall(r"using attempt_(?:lines|ready) on attempts_attempt", plan)) >= 3, plan
    assert "Seq Scan on attempts_attempt" not in plan
