"""`/health` says that the process answers; `/health/ready` names each dependency and how it is."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from config.celery import app as celery_app
from config.heartbeat import heartbeat_beat
from config.tasks import heartbeat_task
from governance.outside.valkey import valkey
from tests.governance.ledger.sealing import seal_all


@pytest.fixture
def beating(transactional_db: None) -> Iterator[None]:
    seal_all()  # what the migrations wrote was written long ago; it may wait for other workers, so the beat comes later
    heartbeat_beat(at=timezone.now())
    yield
    valkey().flushdb()


def ready() -> tuple[int, dict[str, Any], Any]:
    answer = Client().get("/health/ready")
    return answer.status_code, answer.json()["checks"], answer


def failing(checks: dict[str, Any]) -> set[str]:
    return {name for name, check in checks.items() if check["status"] == "failing"}


def test_health_answers_without_asking_anybody() -> None:
    answer = Client().get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_everything_there_is_200_and_named(beating: None) -> None:
    status, checks, answer = ready()
    assert failing(checks) == set(), checks
    assert (status, answer.json()["status"]) == (200, "ready"), answer.json()
    assert {"database", "broker", "streams", "beat"} <= set(checks)
    assert answer["Cache-Control"] == "no-store"


def test_a_valkey_that_cannot_be_reached_is_503_naming_broker_and_streams(
    beating: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    valkey.cache_clear()
    broker = celery_app.conf.broker_url
    monkeypatch.setattr(celery_app.conf, "broker_url", "redis://127.0.0.1:1/0")
    try:
        status, checks, answer = ready()
    finally:
        valkey.cache_clear()
    assert status == 503
    assert failing(checks) == {"broker", "streams", "beat"}
    assert answer["Retry-After"] == "5"
    assert "127.0.0.1" not in answer.content.decode()
    monkeypatch.setattr(celery_app.conf, "broker_url", broker)
    settings.REDIS_URL = broker if not broker.startswith("redis+socket") else _socket(broker)
    assert ready()[0] == 200
    valkey.cache_clear()


def _socket(broker: str) -> str:
    return broker.replace("redis+socket://", "unix://").replace("?virtual_host=", "?db=")


def test_a_database_that_cannot_be_reached_is_503_naming_it_and_it_heals(beating: None) -> None:
    known = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(HOST="/nowhere", OPTIONS={"connect_timeout": 1})
    try:
        status, checks, answer = ready()
    finally:
        connection.close()
        connection.settings_dict.update(known)
    assert (status, failing(checks)) == (503, {"database"})
    assert "/nowhere" not in answer.content.decode()
    assert ready()[0] == 200


def test_an_unmigrated_database_is_not_ready(beating: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_migrations RENAME TO elsewhere")
        try:
            assert failing(ready()[1]) == {"database"}
        finally:
            connection.cursor().execute("ALTER TABLE elsewhere RENAME TO django_migrations")
    assert failing(ready()[1]) == set()


@pytest.mark.parametrize("age", [None, timedelta(minutes=2)])
def test_no_heartbeat_or_an_old_one_is_503_naming_beat(beating: None, age: timedelta | None) -> None:
    valkey().flushdb()
    if age is not None:
        heartbeat_beat(at=timezone.now() - age)
    status, checks, _ = ready()
    assert (status, failing(checks)) == (503, {"beat"})
    heartbeat_task()
    assert ready()[0] == 200
