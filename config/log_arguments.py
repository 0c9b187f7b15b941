"""Which arguments of libraries' log lines may be shown. Everything else may be what a caller wrote, so a line keeps its
template and loses them: an argument is shown if its library, its place and its form are known."""

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

# Names, numbers, signals, addresses that we listen on. No blanks: no sentence passes.
HARMLESS: Final = re.compile(r"[A-Za-z0-9_.,:/@\[\]-]{1,120}")
LEFT_OUT: Final = "…"
# Celery's lines about tasks have named arguments. Its own `args`, `kwargs`, `exc`, `return_value` and `traceback` are
# not here: they are values.
NAMED: Final[Mapping[str, frozenset[str]]] = {
    "celery.worker.strategy": frozenset({"name", "id"}),
    "celery.app.trace": frozenset({"name", "id", "runtime"}),
}
# Templates of which every argument is the program's own: process ids, signals, versions, our addresses.
WHOLE: Final[Mapping[str, frozenset[str]]] = {
    "gunicorn.error": frozenset(
        {
            "Starting gunicorn %s",
            "Listening at: %s (%s)",
            "Listening at: %s",
            "Using worker: %s",
            "Booting worker with pid: %s",
            "Worker exiting (pid: %s)",
            "Handling signal: %s",
            "Shutting down: %s",
            "Worker (pid:%s) exited with code %s.",
            "Worker (pid:%s) was sent %s!",
            "WORKER TIMEOUT (pid:%s)",
        }
    ),
    "celery.apps.worker": frozenset({"%s ready."}),
}
TICK: Final = ("()", "{}")


def shown(record: logging.LogRecord) -> logging.LogRecord:
    """The record with the arguments that may be shown filled in, and without all others."""
    if isinstance(record.msg, dict) or not record.args:
        return record
    args: Any = record.args
    if isinstance(args, Mapping):
        return _named(record, args)
    whole = record.msg in WHOLE.get(record.name, ())
    if whole and all(_is_harmless(one) for one in args):
        return logging.makeLogRecord(record.__dict__ | {"msg": record.msg % tuple(args), "args": None})
    return logging.makeLogRecord(record.__dict__ | {"args": None})


def _named(record: logging.LogRecord, args: Mapping[str, Any]) -> logging.LogRecord:
    kept = NAMED.get(record.name, frozenset())
    if not kept:
        return logging.makeLogRecord(record.__dict__ | {"args": None})
    values = _Shown({name: args[name] for name in kept if name in args and _is_harmless(args[name])})
    return logging.makeLogRecord(record.__dict__ | {"msg": str(record.msg) % values, "args": None})


class _Shown(dict[str, Any]):
    def __missing__(self, _: str) -> str:
        return LEFT_OUT


def _is_harmless(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and HARMLESS.fullmatch(value) is not None)


class RoutineTicks(logging.Filter):
    """Leaves out that a task without arguments was received: a tick or a wake-up, many in a second. At level DEBUG they
    are shown."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name != "celery.worker.strategy" or record.levelno != logging.INFO:
            return True
        args: Any = record.args
        routine = isinstance(args, Mapping) and (args.get("args"), args.get("kwargs")) == TICK
        return not routine or logging.getLogger().isEnabledFor(logging.DEBUG)
