"""A hold against an erasure, on real connections: whoever comes first, nothing is erased that is held."""

import threading

import pytest
from django.db import connection, transaction
from django.utils import timezone

from governance.retention.models import ContextReference, ErasureItem, LegalHold
from governance.retention.services.deletion import deletion_accept, deletion_request
from governance.retention.services.erasure import erase_one, erasure_work
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.retention.support import Clinic, attempt, results, work
from tests.governance.support import in_parallel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def clinic() -> Clinic:
    found = Clinic(Cast())
    assert found.operator.id
    assert found.second.id
    return found


def test_an_erasure_waits_for_a_hold_that_is_being_placed(clinic: Clinic) -> None:
    """The hold is inserted and not yet committed: without the lock the erasure would not see it."""
    first = clinic.denied()
    order = clinic.order()
    inserted, go_on = threading.Event(), threading.Event()

    def place() -> None:
        with transaction.atomic():
            clinic.hold()
            inserted.set()
            assert waits_for_lock(go_on)

    def erase() -> None:
        assert inserted.wait(20)
        go_on.set()
        work(order)

    in_parallel(place, erase)
    assert results(order) == [("refused", "legal_hold")]
    assert attempt(first).erased_at is None


def test_it_is_the_lock_that_makes_it_wait(clinic: Clinic) -> None:
    """The same without the lock: the erasure does not see the hold that is being placed, and erases what is held."""
    first = clinic.denied()
    order = clinic.order()
    inserted, erased = threading.Event(), threading.Event()

    def place() -> None:
        with transaction.atomic(), every_tenant():
            LegalHold(
                organization=clinic.organization,
                scope="organization",
                reason_code="litigation",
                placed_by_kind="person",
                placed_by_ref="x",
                placed_at=timezone.now(),
            ).save(force_insert=True)
            inserted.set()
            assert erased.wait(20)

    def erase() -> None:
        assert inserted.wait(20)
        work(order)
        erased.set()

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE governance_legalhold DISABLE TRIGGER hold_lock")
    try:
        in_parallel(place, erase)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE governance_legalhold ENABLE ALWAYS TRIGGER hold_lock")
    assert attempt(first).erased_at is not None


def waits_for_lock(go_on: threading.Event) -> bool:
    """True once another connection waits for an advisory lock, so that the other side is surely under way."""
    assert go_on.wait(20)
    for _ in range(400):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            if cursor.fetchone() != (0,):
                return True
        threading.Event().wait(0.05)
    return False


def test_a_hold_waits_for_an_erasure_that_is_under_way(clinic: Clinic) -> None:
    first = clinic.denied()
    order = clinic.order()
    with every_tenant():
        item = ErasureItem.objects.get(order=order)
    erased, go_on = threading.Event(), threading.Event()

    def erase() -> None:
        with every_tenant(), transaction.atomic():
            assert erase_one(order, item.id, timezone.now())
            erased.set()
            assert waits_for_lock(go_on)

    def place() -> None:
        assert erased.wait(20)
        go_on.set()
        clinic.hold()

    in_parallel(erase, place)
    assert attempt(first).erased_at is not None
    with every_tenant():
        assert LegalHold.objects.count() == 1


@pytest.mark.parametrize("hold_first", [True, False])
def test_whoever_wins_what_is_held_is_not_erased(clinic: Clinic, hold_first: bool) -> None:
    for number in range(1, 9):
        clinic.denied(number)
    order = clinic.order()

    def place() -> None:
        clinic.hold()

    def erase() -> None:
        with every_tenant():
            erasure_work(order_id=order.id, now=timezone.now)

    in_parallel(*([place, erase] if hold_first else [erase, place]))
    found = results(order)
    assert len(found) == 8
    assert {problem for state, problem in found if state == "refused"} <= {"legal_hold"}
    with every_tenant():
        placed = LegalHold.objects.get().placed_at
        done = ErasureItem.objects.filter(order=order, state="done")
        # The hold is stamped before its lock is asked for: only what was under way by then may end after it.
        assert done.filter(finished_at__gt=placed).count() <= 1


@pytest.mark.parametrize("hold_first", [True, False])
def test_a_hold_and_a_deletion_leave_no_half_erased_reference(clinic: Clinic, hold_first: bool) -> None:
    first = clinic.denied()
    with every_tenant():
        request = deletion_request(
            actor=clinic.operator, at=timezone.now(), organization=clinic.organization, context_ref="ctx-0001"
        )
        accepted = deletion_accept(
            actor=clinic.second, at=timezone.now(), deletion_id=request.id, reason_code="data_subject_request"
        )
    order = accepted.order
    assert order is not None

    def place() -> None:
        clinic.hold("context", "ctx-0001")

    def erase() -> None:
        work(order)

    in_parallel(*([place, erase] if hold_first else [erase, place]))
    with every_tenant():
        request.refresh_from_db()
    row = attempt(first)
    assert (request.state, row.erased_at is not None) in {("done", True), ("refused", False)}
    assert (row.patient_context_ref == "") == (request.state == "done")


def test_a_hold_on_a_reference_that_is_being_forgotten_still_means_it(clinic: Clinic) -> None:
    """It comes after the erasure and before its end: the link stays, or what comes later would not be held."""
    clinic.denied()
    with every_tenant():
        request = deletion_request(
            actor=clinic.operator, at=timezone.now(), organization=clinic.organization, context_ref="ctx-0001"
        )
        accepted = deletion_accept(
            actor=clinic.second, at=timezone.now(), deletion_id=request.id, reason_code="data_subject_request"
        )
        order = accepted.order
        assert order is not None
        erase_one(order, ErasureItem.objects.get(order=order).id, timezone.now())
    hold = clinic.hold("context", "ctx-0001")
    work(order)
    with every_tenant():
        assert ContextReference.objects.get(reference="ctx-0001").commitment == hold.target


def test_two_workers_erase_each_item_once(clinic: Clinic) -> None:
    for number in range(1, 9):
        clinic.denied(number)
    order = clinic.order()

    def erase() -> int:
        with every_tenant():
            return erasure_work(order_id=order.id, now=timezone.now)

    assert sum(in_parallel(erase, erase)) == 8
    work(order)
    assert results(order) == [("done", "")] * 8
