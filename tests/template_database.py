"""The migrations run once for all parallel workers, and begin while the workers still load the tests: each worker's
database is a copy of theirs. A run without workers migrates its own database.

A lock that the migrating process holds tells the workers when to copy. It also ends with a process that died: then the
first worker migrates, and shows why it failed.
"""

import fcntl
import multiprocessing
import os
import tempfile
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from psycopg import sql
from pytest_django.plugin import blocking_manager_key

LOCK = "HOLDPOINT_TEST_TEMPLATE"
APPLICATION_ROLE = "holdpoint_tests_application"  # what tests act with that ask what the application's role may do
WITHOUT = "unit-tests-have-no-database"  # config.settings.test


def _name() -> str:
    return Path(os.environ[LOCK]).name


def pytest_configure(config: pytest.Config) -> None:
    """In the process that distributes the tests, before it starts the workers."""
    if not config.getoption("numprocesses", None) or connection.settings_dict["NAME"] == WITHOUT:
        return
    handle, os.environ[LOCK] = tempfile.mkstemp(prefix="hp-template-")
    fcntl.flock(handle, fcntl.LOCK_EX)
    # Forked: it has loaded the application, and the lock stays until both have closed it.
    multiprocessing.get_context("fork").Process(target=_begin_template, args=(config,), daemon=True).start()
    os.close(handle)


def pytest_unconfigure(config: pytest.Config) -> None:
    if LOCK in os.environ and not hasattr(config, "workerinput"):
        Path(os.environ.pop(LOCK)).unlink()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None, django_db_blocker: Any) -> None:
    """Before the worker's database is made."""
    with django_db_blocker.unblock():
        if LOCK in os.environ:
            _use_template()
        else:
            make_application_role()


def _begin_template(config: pytest.Config) -> None:
    with config.stash[blocking_manager_key].unblock():
        _make_template()


def _use_template() -> None:
    with Path(os.environ[LOCK]).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _exists(_name()):
            _make_template()
    connection.settings_dict["TEST"]["TEMPLATE"] = _name()


def _make_template() -> None:
    """Under another name until it is whole."""
    make_application_role()
    name, draft = _name(), f"{_name()}_draft"
    _statement("DROP DATABASE IF EXISTS {}", draft)
    _statement("CREATE DATABASE {}", draft)
    first, connection.settings_dict["NAME"] = connection.settings_dict["NAME"], draft
    try:
        call_command("migrate", verbosity=0)
    finally:
        connection.close()
        connection.settings_dict["NAME"] = first
    _statement("ALTER DATABASE {} RENAME TO {}", draft, name)


def make_application_role() -> None:
    """Before the migrations: which roles the owner is in belongs to the manifest of guards, and roles are the server's.
    A test that gave and took one would make the databases of all other workers look changed."""
    owner = sql.Identifier(connection.settings_dict["USER"])
    with psycopg.connect(**superuser(), autocommit=True) as server:
        if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [APPLICATION_ROLE]).fetchone():
            server.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(APPLICATION_ROLE)))
            server.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(APPLICATION_ROLE), owner))
            server.execute(sql.SQL("GRANT SET ON PARAMETER session_replication_role TO {}").format(owner))


def superuser() -> dict[str, Any]:
    """The parameters of a connection with the server's own account."""
    return connection.get_connection_params() | {"user": "postgres", "dbname": "postgres", "cursor_factory": None}


def _statement(text: str, *names: str) -> list[Any]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as owner:
        cursor = owner.execute(sql.SQL(text).format(*(sql.Identifier(name) for name in names)))
        return cursor.fetchall() if cursor.description else []


def _exists(name: str) -> bool:
    return (name,) in _statement("SELECT datname::text FROM pg_database")
