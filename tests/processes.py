"""Separate processes, for tests that kill one or ask another one. They are forked from a process that has loaded the
application, so that each starts at once. Their functions must be at the top level of a module."""

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
    """Runs `work(*arguments)` in another process, on the test's database, with these variables and settings changed."""
    database = connection.settings_dict["NAME"]
    process = FORKED.Process(
        target=_work, args=(database, dict(environment or {}), dict(settings or {}), work, arguments), daemon=True
    )
    process.start()
    return process


def ended(process: BaseProcess) -> int:
    """Its exit code; negative if a signal killed it."""
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
