"""Logs are one JSON object per line and carry no row value, no argument, no exception text."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import structlog
from django.db import IntegrityError, connection, transaction

from config.logs import logging_settings
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

SECRET = "hp_0123456789_zx81marker"


@pytest.fixture
def lines() -> Iterator[Any]:
    """Everything logged, through the formatter that production uses."""
    stream = io.StringIO()
    settings = logging_settings(level="INFO")
    spec = dict(settings["formatters"]["json"])
    handler = logging.StreamHandler(stream)
    handler.setFormatter(spec.pop("()")(**spec))
    root = logging.getLogger()
    root.addHandler(handler)

    def read() -> list[dict[str, Any]]:
        assert SECRET not in stream.getvalue()
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    yield read
    root.removeHandler(handler)


@contextmanager
def log_and_raise() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        structlog.get_logger("holdpoint.api").error("unhandled_error", exc_info=error)
        logging.getLogger("some.library").exception("it failed")
        raise


def test_a_violated_constraint_is_named_but_the_row_is_not_shown(cast: Cast, lines: Any) -> None:
    row = Organization(slug="clinic", name=SECRET)
    assert cast.organization.slug == "clinic"
    with pytest.raises(IntegrityError, match=r"\(clinic\)"), every_tenant(), log_and_raise(), transaction.atomic():
        row.save(force_insert=True)  # PostgreSQL's DETAIL prints the value
    ours, theirs = lines()
    assert ours["error"] == theirs["error"] == "IntegrityError"
    assert ours["constraint"] == theirs["constraint"] == "governance_organization_slug_key"
    assert "(clinic)" not in json.dumps([ours, theirs])
    assert any("test_logs.py" in place for place in ours["at"])


@pytest.mark.unit
@pytest.mark.parametrize("how", ["ours", "ours_true", "library", "library_argument", "chained", "group"])
def test_the_text_and_arguments_of_an_exception_stay_out(lines: Any, how: str) -> None:
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as inner:
            if how == "group":
                raise ExceptionGroup(SECRET, [ValueError(SECRET)]) from inner
            raise RuntimeError(f"failed for {SECRET}", {"key": SECRET}) from (inner if how == "chained" else None)
    except Exception as error:
        if how == "ours":
            structlog.get_logger("holdpoint.api").error("unhandled_error", exc_info=error)
        elif how == "ours_true":
            structlog.get_logger("holdpoint.api").exception("unhandled_error")
        elif how == "library_argument":
            logging.getLogger("some.library").error("failed: %s", error)
        else:
            logging.getLogger("some.library").exception("failed: %r", error)
    (line,) = lines()
    assert line["level"] == "error"
    assert line.get("error", "RuntimeError") in {"RuntimeError", "ExceptionGroup"}


@pytest.mark.unit
@pytest.mark.parametrize(
    ("template", "arguments"),
    [
        ("received %s", (SECRET,)),
        ("received %(key)s", ({"key": SECRET},)),
        ("%d of %s", (3, SECRET)),
    ],
)
def test_a_librarys_line_keeps_its_template_and_loses_its_arguments(
    lines: Any, template: str, arguments: tuple[Any, ...]
) -> None:
    logging.getLogger("some.library").warning(template, *arguments)
    (line,) = lines()
    assert line["event"] == template
    assert line["logger"] == "some.library"
    assert line["level"] == "warning"
    assert line["timestamp"].endswith("Z")


@pytest.mark.unit
def test_a_line_is_one_line_whatever_it_says(lines: Any) -> None:
    structlog.get_logger("holdpoint.api").info("first\nsecond", count=3)
    logging.getLogger("some.library").warning("first\nsecond\r\n", extra={"secret": SECRET}, stack_info=False)
    assert [line["event"] for line in lines()] == ["first\nsecond", "first\nsecond\r\n"]


def test_a_request_logs_its_route_and_never_what_the_caller_wrote(cast: Cast, lines: Any) -> None:
    api = cast.api("orchestrator:read", "orchestrator:write", "attempts:create")
    api.get(f"/api/v1/reason-codes?{SECRET}={SECRET}", headers={"referer": SECRET, "user-agent": SECRET})
    api.post("/api/v1/reason-codes", {"label": SECRET, SECRET: SECRET})
    api.post(f"/api/v1/execution/{SECRET}/1/attempts", {"metadata": SECRET})
    api.get(f"/{SECRET}")
    api.generic(SECRET.replace("_", "").upper(), "/health")
    api.post("/admin/login/", {"username": SECRET, "password": SECRET}, format="multipart")
    found = lines()
    assert "api/v1/reason-codes" in {line.get("route") for line in found}
    assert SECRET.replace("_", "").upper() not in json.dumps(found)


def test_a_slow_or_failing_statement_is_not_logged_with_its_parameters(cast: Cast, lines: Any) -> None:
    with connection.execute_wrapper(lambda run, sql, params, many, context: run(sql, params, many, context)):
        cast.api("orchestrator:read").get("/api/v1/reason-codes")
    assert not [line for line in lines() if line["logger"].startswith("django.db")]
