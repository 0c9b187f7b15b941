"""Shared set-up: a clean tenant scope, an emptying that may delete the record, and a cast of people and keys."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import TransactionTestCase
from time_machine import travel

from reasoncodes.tenancy import leave_scope
from tests.cast import Cast
from tests.emptying import empty_database, remember_pristine

pytest_plugins = ["tests.replay_plugin", "tests.properties"]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a running stack stay together: those of a file, and those of all browser files."""
    for item in items:
        folder = item.path.parent.name
        if folder == "browser" or item.get_closest_marker("stack"):
            item.add_marker(pytest.mark.xdist_group(folder if folder == "browser" else item.path.stem))


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


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Tests with real transactions end with an empty database: see tests.emptying."""
    with django_db_blocker.unblock():
        remember_pristine()
    TransactionTestCase._fixture_teardown = lambda self: empty_database()


@pytest.fixture
def cast(db: None) -> Cast:
    """Two organizations, their people and their keys; see tests.cast."""
    return Cast()
