"""Shared set-up: a clean tenant scope, a flush that may truncate the record, and a cast of people and keys."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db.backends.base.operations import BaseDatabaseOperations
from time_machine import travel

from governance.models.append_only import append_only_tables
from reasoncodes.tenancy import leave_scope
from tests.cast import Cast

pytest_plugins = ["tests.replay_plugin", "tests.properties"]


@pytest.fixture(autouse=True)
def no_scope_left_over() -> Iterator[None]:
    leave_scope()
    yield
    leave_scope()


@pytest.fixture
def time_machine() -> Iterator[Any]:
    """`move_to(moment, tick=False)`; the clock is the real one again after the test."""
    moves: list[Any] = []

    class Mover:
        @staticmethod
        def move_to(moment: str, *, tick: bool = False) -> None:
            while moves:
                moves.pop().stop()
            traveller = travel(moment, tick=tick)
            traveller.start()
            moves.append(traveller)

    yield Mover
    while moves:
        moves.pop().stop()


@pytest.fixture(autouse=True, scope="session")
def flush_lifts_the_truncate_triggers() -> Iterator[None]:
    """Tests with real transactions end with TRUNCATE, which the record refuses. Only here, only as the owner."""
    original = BaseDatabaseOperations.execute_sql_flush

    def execute_sql_flush(self: Any, sql_list: list[str]) -> None:
        tables = append_only_tables(list(apps.get_models()))
        lift = [f"ALTER TABLE {table} DISABLE TRIGGER append_only_table" for table in tables]
        restore = [f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only_table" for table in tables]
        original(self, [*lift, *sql_list, *restore])

    BaseDatabaseOperations.execute_sql_flush = execute_sql_flush  # type: ignore[method-assign]
    yield
    BaseDatabaseOperations.execute_sql_flush = original  # type: ignore[method-assign]


@pytest.fixture
def cast(db: None) -> Cast:
    """Two organizations, their people and their keys; see tests.cast."""
    return Cast()
