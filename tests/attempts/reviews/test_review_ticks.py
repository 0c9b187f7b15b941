"""The clock: it ends reviews at their deadline and reminds before it. Twice at once, late, or with a bad row."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from attempts.lifecycle.models import Attempt, Slot
from attempts.reviews import tasks
from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.services import due as review_due
from attempts.reviews.services.clock import reviews_expire, reviews_remind
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import (
    Clinic,
    actions,
    at_once,
    do,
    last_move,
    set_deadline,
    set_state,
    status_of,
)
from tests.cast import Cast
from tests.plans import only_these_indexes

EXPIRED = ("expired", "preflight-denied", "review_expired")


def set_reminder(review: Review, *, seconds: float) -> Any:
    moment = database_now() + timedelta(seconds=seconds)
    with every_tenant():
        Review.objects.filter(id=review.id).update(remind_at=moment)
    return moment


def test_what_is_overdue_ends_at_its_deadline_by_the_clock_and_gives_its_places_back(clinic: Clinic) -> None:
    due, later = clinic.hold(), clinic.hold()
    deadline = set_deadline(due, seconds=-100)
    tasks.reviews_expire_task()
    assert status_of(due) == EXPIRED
    assert status_of(later)[0] == "requested"
    assert actions(due) == ["review.expired", "attempt.denied"]
    with every_tenant():
        entries = LedgerEntry.objects.filter(subject_id__in=[due.id, due.attempt_id], at=deadline, actor_kind="clock")
        assert entries.count() == 2
        assert not Slot.objects.filter(attempt_id=due.attempt_id).exists()
    assert (last_move(due).actor_kind, last_move(due).at) == ("clock", deadline)
    assert reviews_expire(at=timezone.now()) == 0


def test_the_databases_clock_decides_not_the_ticks(clinic: Clinic) -> None:
    review = clinic.hold()
    assert reviews_expire(at=timezone.now() + timedelta(days=30)) == 0
    assert status_of(review)[0] == "requested"


def test_a_bad_row_does_not_stop_the_others(clinic: Clinic) -> None:
    bad, good = clinic.hold(), clinic.hold()
    set_state(bad.attempt_id, "approved-for-execution", "completed")
    set_deadline(bad, seconds=-20)
    set_deadline(good, seconds=-10)
    for _ in range(2):
        reviews_expire(at=timezone.now())
        assert status_of(good) == EXPIRED
        assert status_of(bad)[:2] == ("requested", "completed")


def test_bad_rows_do_not_fill_the_batch_for_ever(clinic: Clinic, monkeypatch: Any) -> None:
    monkeypatch.setattr(review_due, "BATCH", 2)
    reviews = [clinic.hold() for _ in range(7)]
    for number, review in enumerate(reviews):
        set_deadline(review, seconds=-100 + number)
    for review in reviews[:4]:
        set_state(review.attempt_id, "approved-for-execution", "completed")
    assert reviews_expire(at=timezone.now()) == 3
    assert [status_of(review)[0] for review in reviews] == ["requested"] * 4 + ["expired"] * 3


def test_rows_with_the_same_deadline_are_all_seen_across_pages(clinic: Clinic, monkeypatch: Any) -> None:
    monkeypatch.setattr(review_due, "BATCH", 2)
    reviews = [clinic.hold() for _ in range(5)]
    with every_tenant():
        Review.objects.update(expires_at=database_now() - timedelta(seconds=1))
    assert reviews_expire(at=timezone.now()) == len(reviews)


def test_a_reminder_is_sent_once_when_it_is_due(
    cast: Cast, clinic: Clinic, rita: Any, django_capture_on_commit_callbacks: Any, monkeypatch: Any
) -> None:
    """The broker is replaced by calling the task that it would call."""
    monkeypatch.setattr("celery.current_app.send_task", lambda name, args, **_: tasks.review_reminder_send_task(*args))
    User.objects.filter(username__in=["rita", "boss", "alice"]).update(email="someone@clinic.invalid")
    review, later = clinic.hold(), clinic.hold()
    User.objects.filter(username__in=["rita", "boss"]).update(email="reviewer@clinic.invalid")
    do(rita, review, "claim")
    due = set_reminder(review, seconds=-30)
    set_reminder(later, seconds=300)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.reviews_remind_task()
    assert reviews_remind(at=timezone.now()) == 0
    assert actions(review) == ["review.claimed", "review.reminded"]
    assert actions(later) == []
    with every_tenant():
        entry = LedgerEntry.objects.get(action="review.reminded")
        assert (entry.actor_kind, entry.at) == ("clock", due)
        assert (entry.payload["reviewers"], entry.payload["escalated_to"]) == (1, 0)
    assert [message.to for message in mail.outbox] == [["reviewer@clinic.invalid"]]
    assert str(review.id) in mail.outbox[0].body
    assert "Target: case-0001" in mail.outbox[0].body


def test_a_reminder_escalates_to_the_operators_when_nobody_works_on_it(cast: Cast, clinic: Clinic, rita: Any) -> None:
    User.objects.filter(username="alice").update(email="operator@clinic.invalid")
    review = clinic.hold()
    set_reminder(review, seconds=-1)
    assert reviews_remind(at=timezone.now()) == 1
    with every_tenant():
        assert LedgerEntry.objects.get(action="review.reminded").payload["escalated_to"] == 1
    tasks.review_reminder_send_task(str(review.id))
    assert [message.to for message in mail.outbox] == [["operator@clinic.invalid"]]


def test_nobody_is_reminded_of_what_is_over_overdue_or_has_no_reminder(clinic: Clinic, rita: Any) -> None:
    over, overdue, never = clinic.hold(), clinic.hold(), clinic.hold()
    with every_tenant():
        Review.objects.filter(id=never.id).update(remind_at=None)
    for review in (over, overdue):
        set_reminder(review, seconds=-10)
    do(rita, over, "reject")
    set_deadline(overdue, seconds=-5)
    assert reviews_remind(at=timezone.now()) == 0
    tasks.review_reminder_send_task(str(over.id))
    assert mail.outbox == []


def plan(sql: str, *, index: str) -> str:
    only_these_indexes([index])
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql}")
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.mark.parametrize(("tick", "index"), [(reviews_expire, "review_due"), (reviews_remind, "review_reminder_due")])
def test_a_tick_finds_what_is_due_by_its_partial_index(db: None, tick: Any, index: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        tick(at=timezone.now())
    statements = [query["sql"] for query in captured.captured_queries if query["sql"].startswith("SELECT")]
    assert len(statements) == 1, "nothing is due, so nothing else is read"
    shown = plan(statements[0], index=index)
    assert f"using {index}" in shown or f"on {index}" in shown, shown
    assert "Index Cond" in shown


@pytest.mark.django_db(transaction=True)
def test_two_ticks_at_once_over_forty_overdue_rows_record_forty_expiries() -> None:
    clinic = Clinic(Cast())
    reviews = [clinic.hold() for _ in range(40)]
    with every_tenant():
        Review.objects.update(expires_at=database_now() - timedelta(seconds=1))

    def tick() -> int:
        return reviews_expire(at=timezone.now())

    done = at_once(tick, tick)
    while sum(done) < len(reviews):  # what each left to the other because it was locked
        again = tick()
        assert again, done
        done.append(again)
    with every_tenant():
        assert LedgerEntry.objects.filter(action="review.expired").count() == 40
        assert LedgerEntry.objects.filter(action="attempt.denied", reason_code="review_expired").count() == 40
        assert Review.objects.filter(status="expired").count() == 40
        assert Attempt.objects.filter(state="preflight-denied", reason_code="review_expired").count() == 40
