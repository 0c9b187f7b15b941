"""Processes of their own, for tests that kill one or ask another: forked from one that has loaded the application, so
that each begins to work at once. Their functions stand at the top of a module, which the new process loads."""

import multiprocessing
import os
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from typing import Any

from django.db import connection

SECONDS = 60
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.loaded"])


def start(
    work: Callable[..., Any],
    *arguments: Any,
    environment: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> BaseProcess:
    """`work(*arguments)` beside this process, on the test's database, with these variables and settings changed."""
    database = connection.settings_dict["NAME"]
    process = FORKED.Process(
        target=_work, args=(database, dict(environment or {}), dict(settings or {}), work, arguments), daemon=True
    )
    process.start()
    return process


def ended(process: BaseProcess) -> int:
    """Its exit code; the negative number of the signal that killed it."""
    process.join(SECONDS)
    assert process.exitcode is not None, f"still running after {SECONDS} s"
    return process.exitcode


def _work(
    database: str,
    environment: dict[str, str],
    settings: dict[str, Any],
    work: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    from django.conf import settings as django_settings

    os.environ |= environment
    for name, value in settings.items():
        setattr(django_settings, name, value)
    connection.settings_dict["NAME"] = database
    work(*arguments)
