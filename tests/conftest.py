"""Shared set-up: a clean tenant scope, the emptying of the database after real transactions, and people with keys."""

import gc
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.test import TransactionTestCase
from time_machine import travel
from xdist.scheduler import LoadScopeScheduling

from governance.outside.valkey import valkey
from reasoncodes.base.tenancy import leave_scope
from tests.cast import Cast
from tests.emptying import empty_database, remember_pristine

pytest_plugins = ["tests.replay_plugin", "tests.properties", "tests.stack.homes", "tests.template_database"]


class TogetherScheduling(LoadScopeScheduling):
    """Keeps tests together that share a running stack: those of one file, and those of all browser files. (xdist's own
    groups do not work with pytest 9.2, which removed the field that they use.)"""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "browser" if file.startswith("tests/browser/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> TogetherScheduling | None:
    return TogetherScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The contract tests first, otherwise in the random order: one of them takes half a minute, for which the other
    worker would have nothing left to do at the end. And the first worker gets all of them, so that their world is made
    once."""
    items.sort(key=lambda item: "tests/contract/" not in item.path.as_posix())


gc.disable()  # until everything is loaded


def pytest_collection_finish() -> None:
    """What is loaded now stays until the end, so the garbage collector need not look at it again and again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


DATABASE_FIXTURES = {"db", "transactional_db"}


@pytest.fixture(autouse=True)
def nothing_left_over(request: pytest.FixtureRequest) -> Iterator[None]:
    """No scope, and nothing in Valkey: marks of tasks that an earlier test ran would be minutes old, and readiness
    would rightly call their schedule overdue."""
    leave_scope()
    if not DATABASE_FIXTURES.isdisjoint(request.fixturenames) and not request.node.get_closest_marker("stack"):
        valkey().flushdb()
    yield
    leave_scope()


@pytest.fixture
def time_machine() -> Iterator[Any]:
    """`move_to(moment, tick=False)`; the clock is the real one again after the test."""
    moves: list[Any] = []

    class Mover:
        @staticmethod
        def move_to(moment: datetime, *, tick: bool = False) -> None:
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
