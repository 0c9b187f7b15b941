"""Logs are one JSON object per line and carry no row value, no argument, no exception text."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
import structlog
from django.db import IntegrityError, connection, transaction

from attempts.execution.tasks import attempt_dispatch_task
from config.log_arguments import RoutineTicks
from config.logs import logging_settings
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.base.trace import lines_about
from tests.cast import Cast
from tests.workflows.world import World, ago, brief
from workflows.runs.models import WorkflowStep

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


def received(task: str, **changes: Any) -> None:
    """As Celery's worker says it."""
    context = {"name": task, "id": str(UUID(int=7)), "args": "()", "kwargs": "{}", "eta": None} | changes
    logging.getLogger("celery.worker.strategy").info("Task %(name)s[%(id)s] received", context)


@pytest.mark.unit
def test_celerys_lines_keep_the_tasks_name_and_id_and_nothing_of_its_arguments(lines: Any) -> None:
    received("attempts.tasks.execution.attempt_dispatch", args=f"({SECRET!r},)")
    failed = {"name": "a.task", "id": "7", "runtime": 0.25, "exc": SECRET, "traceback": SECRET, "description": "raised"}
    text = "Task %(name)s[%(id)s] %(description)s after %(runtime)ss: %(exc)s\n%(traceback)s"
    logging.getLogger("celery.app.trace").error(text, failed)
    said = [line["event"] for line in lines()]
    task = f"attempts.tasks.execution.attempt_dispatch[{UUID(int=7)}]"
    assert said == [f"Task {task} received", "Task a.task[7] … after 0.25s: …\n…"]


@pytest.mark.unit
@pytest.mark.parametrize("name", [f"a task {SECRET} of mine", "x" * 121, "with\nline", {"key": SECRET}, None])
def test_what_is_no_name_is_left_out_even_where_a_name_belongs(lines: Any, name: Any) -> None:
    received(name, args="(1,)")
    assert [line["event"] for line in lines()] == [f"Task …[{UUID(int=7)}] received"]


@pytest.mark.unit
def test_the_web_servers_own_values_are_shown_and_a_callers_are_not(lines: Any) -> None:
    server = logging.getLogger("gunicorn.error")
    server.info("Listening at: %s (%s)", "http://127.0.0.1:8000", 4711)
    server.info("Booting worker with pid: %s", 4712)
    server.info("Booting worker with pid: %s", f"a text {SECRET}")
    server.warning("Invalid request from ip=%s: %s", "10.0.0.1", SECRET)
    assert [line["event"] for line in lines()] == [
        "Listening at: http://127.0.0.1:8000 (4711)",
        "Booting worker with pid: 4712",
        "Booting worker with pid: %s",
        "Invalid request",
    ]


@pytest.mark.unit
@pytest.mark.parametrize(("level", "shown"), [("INFO", 1), ("DEBUG", 2)])
def test_ticks_are_received_at_debug_and_everything_else_at_info(level: str, shown: int) -> None:
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    handler.addFilter(RoutineTicks())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level)
    try:
        received("config.tasks.heartbeat")
        received("attempts.tasks.execution.attempt_dispatch", args="('7',)")
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    assert len(found) == shown


def test_every_line_about_an_attempt_names_it(cast: Cast, lines: Any) -> None:
    attempt_id = uuid4()
    cast.api("attempts:create").get(f"/api/v1/attempts/{attempt_id}")
    attempt_dispatch_task.apply(args=[str(attempt_id)])
    attempt_dispatch_task.apply(args=[SECRET], throw=False)
    about = [line for line in lines() if line.get("attempt_id") == str(attempt_id)]
    assert any(line.get("route", "").startswith("api/v1/attempts/") for line in about)
    assert all(line["trace_id"] for line in about)


def test_every_line_about_a_run_names_it_and_its_step(cast: Cast, lines: Any) -> None:
    world = World(cast, brief(timeout_seconds=60))
    instance = world.start(at=ago(600))
    step = world.current(instance)
    with every_tenant():
        WorkflowStep.objects.filter(instance=instance).update(governed_attempt=uuid4())
    world.tick("steps_time_out")
    (failed,) = [line for line in lines() if line["event"] == "tick_row_failed"]
    assert failed["row_id"] == str(step.id)
    with lines_about(instance_id=instance.id, correlation_id=step.id):
        structlog.get_logger("holdpoint.test").warning("inside")
    structlog.get_logger("holdpoint.test").warning("outside")
    inside, outside = lines()[-2:]
    assert (inside["instance_id"], inside["correlation_id"]) == (str(instance.id), str(step.id))
    assert "instance_id" not in outside
