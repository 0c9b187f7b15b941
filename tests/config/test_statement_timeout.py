"""A statement of a web process ends after its time limit: 503 that says what to do, and nothing half-written. Other
processes have no limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from django.test import Client

from config import startup
from config.middleware import database
from config.server import gunicorn
from governance.tenancy.models import Product
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governance.support import row_counts
from tests.governed import ALLOW, open_contract

pytestmark = pytest.mark.django_db(transaction=True)


def timeout_now() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


@pytest.fixture
def web(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process as if gunicorn had started it, with half a second."""
    settings.WEB_STATEMENT_SECONDS = 0.5
    monkeypatch.setattr(startup, "serving", lambda: None)
    gunicorn.post_worker_init(None)
    yield
    del connections.settings["default"]["STATEMENT_SECONDS"]
    connection.close()


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Somebody else's transaction holds the table."""
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


def written() -> dict[str, int]:
    """Without snapshots: the first request of a contract stores them under their hash, in a transaction before it."""
    return {table: count for table, count in row_counts().items() if table != "governance_snapshot"}


def test_only_web_processes_have_a_limit(web: None) -> None:
    assert timeout_now() == "500ms"
    del connections.settings["default"]["STATEMENT_SECONDS"]
    connection.close()
    assert timeout_now() == "0"
    connections.settings["default"]["STATEMENT_SECONDS"] = 0.5


def test_a_program_gets_503_and_nothing_is_half_written(cast: Cast, web: None) -> None:
    open_contract(cast, rules=ALLOW)
    api, before, outages = cast.api("attempts:create"), written(), database._outages
    with locked("governance_ledgerentry"):
        found = post(api, body())
    assert found.status_code == 503, found.content
    assert found["Content-Type"] == "application/problem+json"
    assert found["Retry-After"] == "5"
    assert found.json()["type"].endswith("/problems/took-too-long")
    assert found.json()["reason_code"] == "record_unavailable"
    assert written() == before
    assert database._outages == outages  # the connection is sound: nobody has to replace theirs
    assert post(api, body()).status_code == 201


def test_a_person_gets_a_page_that_says_what_to_do(cast: Cast, web: None) -> None:
    console = cast.console(cast.operator)
    assert console.get("/admin/governance/product/").status_code == 200
    with locked("governance_product"):
        found = console.get("/admin/governance/product/", headers={"Accept": "text/html"})
    assert (found.status_code, found["Retry-After"]) == (503, "5")
    text = found.content.decode()
    assert "<h1>The database took too long</h1>" in text
    assert "narrower filter" in text
    assert console.get("/admin/governance/product/").status_code == 200


def test_a_form_that_took_too_long_left_nothing(cast: Cast, web: None) -> None:
    console = cast.console(cast.administrator)
    form = {"organization": str(cast.organization.id), "slug": "late", "name": "Late"}
    with locked("governance_ledgerentry"):
        found = console.post("/admin/governance/product/add/", form)
    assert found.status_code == 503
    with every_tenant():
        assert not Product.objects.filter(slug="late").exists()
    assert console.post("/admin/governance/product/add/", form).status_code == 302


def test_the_help_page_is_there() -> None:
    assert "HOLDPOINT_WEB_STATEMENT_SECONDS" in Client().get("/problems/took-too-long").content.decode()
