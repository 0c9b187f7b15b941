"""The world of the contract and permission tests: committed once per module, emptied after it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.world import World
from tests.emptying import empty_database


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with django_db_blocker.unblock():
        try:
            yield World(tmp_path_factory.mktemp("demo"))
        finally:
            empty_database()
