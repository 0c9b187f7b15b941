"""A worker that dies in the middle of an order: what was erased is erased, the rest follows, nothing twice."""

from datetime import datetime

import pytest
from django.db import transaction
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.retention.models import ErasureItem, ErasureOrder
from governance.retention.services import erasure
from governance.retention.services.erasure import erase_one, erasures_due
from governance.retention.tasks import erasures_resume_task
from reasoncodes.base.actors import Actor
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.retention.support import Clinic, attempt, results

pytestmark = pytest.mark.django_db(transaction=True)


class Died(BaseException):
    """Not an Exception: nothing catches it, like a killed process."""


def _dies_after(order: ErasureOrder, item: ErasureItem) -> None:
    with transaction.atomic():
        erase_one(order, item.id, timezone.now())
        raise Died


def test_each_item_is_a_transaction_of_its_own_and_the_tick_goes_on() -> None:
    clinic = Clinic(Cast())
    ids = [clinic.denied(number) for number in range(1, 5)]
    order = clinic.order()
    with every_tenant():
        items = list(ErasureItem.objects.filter(order=order).order_by("id"))
        erase_one(order, items[0].id, timezone.now())
        with pytest.raises(Died):
            _dies_after(order, items[1])
    assert [attempt(one).erased_at is not None for one in ids] == [True, False, False, False]
    assert [state for state, _ in results(order)] == ["done", "waiting", "waiting", "waiting"]
    with every_tenant():
        assert erasures_due() == []
        ErasureOrder.objects.update(resume_at=timezone.now())
        assert erasures_due() == [order.id]
    erasures_resume_task()
    assert [attempt(one).erased_at is not None for one in ids] == [True] * 4
    with every_tenant():
        assert ErasureOrder.objects.get().finished_at is not None
        assert LedgerEntry.objects.filter(action="erasure.done").count() == 4
        assert LedgerEntry.objects.filter(action="erasure.finished").count() == 1
        assert erasures_due() == []


def test_copies_elsewhere_are_let_go_in_the_same_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    clinic = Clinic(Cast())
    first, second = clinic.denied(1), clinic.denied(2)
    told = []

    def handler(item: ErasureItem, actor: Actor, at: datetime) -> None:
        told.append((item.kind, item.organization_id, item.subject_id))
        if item.subject_id == second:
            raise RuntimeError("the copy could not be let go")

    monkeypatch.setattr(erasure, "_erased", [handler])
    order = clinic.order()
    with every_tenant():
        erasure.erasure_work(order_id=order.id, now=timezone.now)
    assert told == [("attempt", clinic.organization.id, first), ("attempt", clinic.organization.id, second)]
    assert results(order) == [("done", ""), ("refused", "enforcement_exception")]
    assert attempt(second).erased_at is None


def test_batches_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    clinic = Clinic(Cast())
    for number in range(1, 6):
        clinic.denied(number)
    order = clinic.order()
    monkeypatch.setattr(erasure, "BATCH", 2)
    seen = []
    with every_tenant():
        while worked := erasure.erasure_work(order_id=order.id, now=timezone.now):
            seen.append(worked)
    assert seen == [2, 2, 1]


def test_the_clock_orders_nothing() -> None:
    clinic = Clinic(Cast())
    first = clinic.denied()
    erasures_resume_task()
    with every_tenant():
        assert not ErasureOrder.objects.exists()
    assert attempt(first).erased_at is None
