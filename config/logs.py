"""JSON logs. A line says what happened and to which id; never a submitted value, a row's value or a secret.

Exceptions are reduced to class, constraint name and place, because PostgreSQL's DETAIL and an exception's text contain
the values that must not leave the database.
"""

import logging
import logging.config
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from config.log_arguments import RoutineTicks, shown

FRAMES_KEPT = 12
# gunicorn formats these before logging, with the text that it could not parse.
ALREADY_FILLED_IN = ("Invalid request from ip=",)


def _describe_exception(error: BaseException) -> dict[str, Any]:
    """An exception as log fields: its class, the violated constraint, where it was raised. Not its text."""
    diag = getattr(error.__cause__ or error, "diag", None)
    frames = list(traceback.extract_tb(error.__traceback__))
    # Frames of libraries would push out the place in our own code that leads to the cause; the last frame is enough.
    frames = [frame for frame in frames[:-1] if "site-packages" not in frame.filename][-FRAMES_KEPT:] + frames[-1:]
    fields: dict[str, Any] = {
        "error": type(error).__name__,
        "at": [f"{frame.filename.rsplit('/', 2)[-1]}:{frame.lineno} {frame.name}" for frame in frames],
    }
    if diag is not None and diag.constraint_name:
        fields["constraint"] = diag.constraint_name
    return fields


Tracker = Callable[[BaseException, Mapping[str, Any]], None]
_trackers: list[Tracker] = []


def report_exceptions_to(tracker: Tracker) -> None:
    """Wiring: also reports exceptions that are logged as errors to this tracker."""
    _trackers[:] = [tracker]


def _reduce_exceptions(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """structlog processor: replaces exc_info by its description."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    error = info[1] if isinstance(info, tuple) else info
    if isinstance(error, BaseException):
        if event.get("level") in {"error", "critical"}:
            _report(error, event)
        event.update(_describe_exception(error))
    return event


def _report(error: BaseException, event: EventDict) -> None:
    for tracker in _trackers:
        try:
            tracker(error, event)
        except Exception as failed:  # the log line must be written even if the tracker fails
            event["not_reported"] = type(failed).__name__


SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    _reduce_exceptions,
]


class TemplateOnlyFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats records of libraries by their template, so that a `%s` argument reaches a log file only if
    `log_arguments` knows it."""

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.msg, str) and record.msg.startswith(ALREADY_FILLED_IN):
            record = logging.makeLogRecord(record.__dict__ | {"msg": record.msg.split(" from ")[0], "args": None})
        return super().format(shown(record))


def logging_settings(*, level: str) -> dict[str, Any]:
    """The dictConfig for the standard library's side."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": TemplateOnlyFormatter,
                "foreign_pre_chain": SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.JSONRenderer(),
                ],
            }
        },
        "filters": {"routine": {"()": RoutineTicks}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["routine"]}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django's request logger prints the path, which may contain what a caller put there.
            "django.request": {"level": "CRITICAL"},
            "django.security": {"level": "CRITICAL"},
            "django.server": {"level": "ERROR"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            # Formats headers into the message itself, where our formatter cannot remove them.
            "httpcore": {"level": "WARNING"},
            "gunicorn.error": {"level": "INFO", "handlers": [], "propagate": True},
            "gunicorn.access": {"level": "CRITICAL", "handlers": [], "propagate": False},
        },
    }


def configure_logging(*, level: str) -> None:
    """Both parts: structlog for our own lines, dictConfig for all others."""
    logging.config.dictConfig(logging_settings(level=level))
    # Do not look up what no line shows: a third of the cost of a line (see "Optimization" in Python's logging HOWTO).
    logging._srcfile = None  # type: ignore[attr-defined]
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
