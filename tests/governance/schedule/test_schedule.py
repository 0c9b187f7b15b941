"""The clock cannot be switched off unseen: whatever happens to a scheduled task's row, somebody is told."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from attempts.reviews.tasks import reviews_expire_task
from config.celery import SCHEDULE, SCHEDULE_WORDS
from config.clock import note_begin, note_end, note_failure, note_start
from config.heartbeat import heartbeat_beat
from governance.ledger.models import LedgerEntry
from governance.outside.valkey import valkey
from governance.schedule import adapters
from governance.schedule.hooks import scheduled_tasks
from governance.schedule.models import ScheduleChange
from governance.schedule.rules import RunMarks, ScheduledTask, overdue_seconds
from governance.schedule.selectors import PREFIX, foreign_tasks, intervals_in_force, schedule_standing
from governance.schedule.services import schedule_change, schedule_synchronise
from reasoncodes.base.errors import DomainError, InvalidInput, ScopeMissing, WrongState
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
EXPIRE = "reviews-expire"
DISABLE = "UPDATE django_celery_beat_periodictask SET enabled = false WHERE name = 'holdpoint: reviews-expire'"


@pytest.fixture(autouse=True)
def written(db: None) -> Iterator[None]:
    schedule_synchronise()
    valkey().flushdb()
    yield
    valkey().flushdb()


def troubles() -> list[str]:
    return [one.trouble for one in schedule_standing(at=timezone.now(), grace=60) if one.trouble]


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_every_scheduled_task_is_explained_to_people() -> None:
    assert set(SCHEDULE_WORDS) == set(SCHEDULE)
    assert set(scheduled_tasks()) == set(SCHEDULE)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE django_celery_beat_periodictask SET enabled = false", "is disabled"),
        ("DELETE FROM django_celery_beat_periodictask", "is missing"),
        ("UPDATE django_celery_beat_periodictask SET task = 'config.tasks.heartbeat'", "was changed"),
        ("UPDATE django_celery_beat_periodictask SET queue = 'nowhere'", "was changed"),
        ("UPDATE django_celery_beat_periodictask SET one_off = true", "was changed"),
        ("UPDATE django_celery_beat_periodictask SET start_time = '2099-01-01Z'", "was changed"),
        ("UPDATE django_celery_beat_periodictask SET expires = '2020-01-01Z'", "was changed"),
        ("UPDATE django_celery_beat_periodictask SET args = '[1]'", "was changed"),
        ("UPDATE django_celery_beat_periodictask SET expire_seconds = NULL", "was changed"),
        ("UPDATE django_celery_beat_periodictask SET interval_id = NULL", "has another interval than 5 s"),
    ],
)
def test_a_row_that_was_changed_with_sql_is_named(change: str, said: str) -> None:
    assert troubles() == []
    sql(f"{change} WHERE name = '{PREFIX}{EXPIRE}'")
    assert troubles() == [f"{EXPIRE} {said}"]
    schedule_synchronise()
    assert troubles() == []


def test_an_interval_that_was_changed_for_several_tasks_names_each_of_them() -> None:
    sql("UPDATE django_celery_beat_intervalschedule SET every = 900000 WHERE every = 5")
    named = {one.split()[0] for one in troubles()}
    assert named == {name for name, (_, seconds) in SCHEDULE.items() if seconds == 5}
    schedule_synchronise()
    assert troubles() == []


def test_a_task_that_somebody_added_is_noticed_and_removed_by_the_next_migrate(cast: Cast) -> None:
    assert foreign_tasks() == []
    PeriodicTask.objects.create(name="mine", task="os.system", interval_id=PeriodicTask.objects.all()[0].interval_id)
    assert foreign_tasks() == ["mine"]
    check = Client().get("/health/ready").json()["checks"]["clock"]
    assert check["note"] == "scheduled tasks that are not built in: 1"
    assert "mine</code>" in cast.console(cast.administrator).get("/admin/schedule/").content.decode()
    page = cast.console(cast.operator).get("/admin/schedule/").content.decode()
    assert "not built in" in page
    assert "mine</code>" not in page
    schedule_synchronise()
    assert foreign_tasks() == []


@pytest.mark.parametrize(
    ("marks", "late"),
    [
        (RunMarks(), 930.0),  # has never run since the clock started
        (RunMarks(began=NOON - timedelta(seconds=5), ended=NOON - timedelta(seconds=5)), None),
        (RunMarks(began=NOON - timedelta(seconds=70), ended=NOON - timedelta(seconds=70)), None),
        (RunMarks(began=NOON - timedelta(seconds=71), ended=NOON - timedelta(seconds=71)), 1.0),
        (RunMarks(began=NOON - timedelta(seconds=5), ended=NOON - timedelta(seconds=900)), None),  # runs now
        (
            RunMarks(
                began=NOON - timedelta(seconds=5),
                failed=NOON - timedelta(seconds=4),
                ended=NOON - timedelta(seconds=100),
            ),
            30.0,
        ),  # runs, but fails every time
    ],
)
def test_a_task_is_overdue_after_two_intervals_and_the_grace(marks: RunMarks, late: float | None) -> None:
    since = NOON - timedelta(seconds=1000)
    assert overdue_seconds(marks, seconds=5, since=since, grace=60, at=NOON) == late
    assert overdue_seconds(marks, seconds=5, since=NOON, grace=60, at=NOON) is None  # the clock has just started


def test_workers_note_what_ran_and_readiness_names_what_did_not() -> None:
    task = reviews_expire_task
    adapters.clock_started(at=timezone.now() - timedelta(hours=1))
    assert f"{EXPIRE} is overdue" in " ".join(troubles())
    note_begin(task=task)
    note_end(sender=task)
    assert not any(one.startswith(EXPIRE) for one in troubles())
    note_failure(sender=task)
    note_begin(task=object())  # a task that is not scheduled is not noted
    _, marks = adapters.runs_marked()
    assert set(marks) == {EXPIRE}
    assert marks[EXPIRE].failed is not None
    note_start()
    assert troubles() == []


@pytest.mark.django_db(transaction=True)
def test_readiness_and_metrics_name_a_disabled_task() -> None:
    heartbeat_beat(at=timezone.now())
    seal_all()
    assert Client().get("/health/ready").status_code == 200
    sql(DISABLE)
    answer = Client().get("/health/ready")
    assert (answer.status_code, answer.json()["checks"]["clock"]) == (
        503,
        answer.json()["checks"]["clock"] | {"status": "failing", "detail": f"scheduled tasks: {EXPIRE} is disabled"},
    )
    text = Client().get("/metrics").content.decode()
    assert f'holdpoint_scheduled_task_altered{{task="{EXPIRE}"}} 1.0' in text
    assert 'holdpoint_scheduled_task_altered{task="ledger-seal"} 0.0' in text
    assert f'holdpoint_scheduled_task_overdue_seconds{{task="{EXPIRE}"}} 0.0' in text


def test_the_page_shows_every_task_and_offers_no_way_to_change_one(cast: Cast) -> None:
    console = cast.console(cast.operator)
    text = console.get("/admin/schedule/").content.decode()
    assert f"All {len(SCHEDULE)} tasks are as they should be" in text
    for name, words in SCHEDULE_WORDS.items():
        assert name in text
        assert words[1:].replace("'", "&#x27;") in text
    main = text[text.index('class="hp"') : text.index("Read at")]
    assert "<form" not in main
    assert "<button" not in main
    sql(DISABLE)
    assert "1 of" in console.get("/admin/schedule/").content.decode()
    assert ">disabled<" in console.get("/admin/schedule/").content.decode()
    assert console.post("/admin/schedule/").status_code == 405
    assert cast.console(cast.nobody).get("/admin/schedule/").status_code == 403
    assert Client().get("/admin/schedule/").status_code == 302


@pytest.mark.parametrize("page", ["periodictask", "intervalschedule", "crontabschedule", "clockedschedule"])
def test_the_raw_pages_are_gone_for_everybody(cast: Cast, page: str) -> None:
    for path in ("", "add/", "1/change/", "1/delete/"):
        assert cast.console(cast.administrator).get(f"/admin/django_celery_beat/{page}/{path}").status_code == 404


def change(cast: Cast, **values: Any) -> ScheduleChange:
    given = {"name": EXPIRE, "seconds": 20, "installation": True} | values
    with every_tenant():
        return schedule_change(actor=cast.actor(cast.administrator, []), at=timezone.now(), **given)


def test_an_interval_is_changed_by_a_service_and_stands_on_the_ledger(cast: Cast) -> None:
    made = change(cast)
    assert intervals_in_force()[EXPIRE] == 20
    assert troubles() == []  # a change that was recorded is no trouble
    row = PeriodicTask.objects.get(name=PREFIX + EXPIRE)
    assert (row.interval.every, row.interval.period, row.expire_seconds) == (20, "seconds", 40)
    with every_tenant():
        entry = LedgerEntry.objects.get(action="schedule.changed")
    assert (entry.subject_id, entry.organization_id) == (made.id, None)
    assert entry.payload == {"name": EXPIRE, "seconds": 20, "before": 5, "built_in": 5}
    schedule_synchronise()  # a migrate keeps what people decided
    assert PeriodicTask.objects.get(name=PREFIX + EXPIRE).interval.every == 20
    assert "built in: 5 s" in cast.console(cast.operator).get("/admin/schedule/").content.decode()


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"seconds": 0}, InvalidInput),
        ({"seconds": 51}, InvalidInput),
        ({"seconds": 86_400}, InvalidInput),
        ({"seconds": True}, InvalidInput),
        ({"seconds": 5}, WrongState),
        ({"name": "mine"}, InvalidInput),
        ({"name": "celery.backend_cleanup"}, InvalidInput),
        ({"installation": False}, ScopeMissing),
    ],
)
def test_other_changes_are_refused_and_change_nothing(
    cast: Cast, values: dict[str, Any], refusal: type[DomainError]
) -> None:
    with pytest.raises(refusal):
        change(cast, **values)
    assert intervals_in_force()[EXPIRE] == 5
    assert not ScheduleChange.objects.exists()


def test_bounds_follow_from_the_built_in_interval() -> None:
    def bounds(seconds: int) -> tuple[int, int]:
        one = ScheduledTask("a", "b", seconds, "")
        return one.shortest, one.longest

    assert [bounds(seconds) for seconds in (1, 5, 60, 1800, 7200)] == [
        (1, 10),
        (1, 50),
        (6, 600),
        (180, 3600),
        (720, 7200),
    ]


def test_two_people_of_the_home_organization_change_an_interval(cast: Cast) -> None:
    url, body = "/api/v1/authority-changes", {"kind": "schedule.change", "subject": EXPIRE, "details": {"seconds": 20}}
    first, second = cast.session(cast.operator), cast.session(cast.second_operator)
    for wrong, pointer in (
        ({"subject": "mine"}, "/subject"),
        ({"details": {"seconds": 51}}, "/details/seconds"),
        ({"details": {}}, "/details/seconds"),
        ({"details": {"seconds": 20, "enabled": False}}, "/details"),
    ):
        refused = first.post(url, body | wrong, format="json")
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, pointer)
    proposed = first.post(url, body, format="json")
    assert proposed.status_code == 201, proposed.content
    assert (proposed.json()["before"]["seconds"], proposed.json()["after"]["seconds"]) == (5, 20)
    assert proposed.json()["loosens"] is True  # what runs less often ends things later
    assert intervals_in_force()[EXPIRE] == 5
    change_url = f"{url}/{proposed.json()['id']}/confirm"
    assert cast.fresh(first).post(change_url, {}, format="json").status_code == 403
    assert cast.fresh(second).post(change_url, {}, format="json").json()["state"] == "in_force"
    assert intervals_in_force()[EXPIRE] == 20
    assert troubles() == []
    refused = cast.session(cast.other_operator).post(url, body, format="json")
    assert refused.status_code == 403


def test_the_console_proposes_and_changes_nothing(cast: Cast) -> None:
    page, form = "/admin/schedule/propose/", {"task": EXPIRE, "seconds": "20", "note": "Incident 17"}
    _ = cast.second_operator
    console = cast.console(cast.operator)
    assert page in console.get("/admin/schedule/").content.decode()
    assert console.get(page).status_code == 200
    assert console.post(page, form | {"seconds": "51"}).status_code == 400
    assert console.post(page, form | {"seconds": "no"}).status_code == 200
    assert console.post(page, form | {"task": "mine"}).status_code == 200
    answer = console.post(page, form)
    assert (answer.status_code, "/authoritychange/" in answer["Location"]) == (302, True)
    assert "seconds" in console.get(answer["Location"]).content.decode()
    assert intervals_in_force()[EXPIRE] == 5
    for person in (cast.auditor, cast.other_operator, cast.nobody):
        assert cast.console(person).get(page).status_code == 403
        assert cast.console(person).post(page, form).status_code == 403
    assert page not in cast.console(cast.auditor).get("/admin/schedule/").content.decode()
