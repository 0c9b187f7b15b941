"""The world of the contract and permission tests: committed once, emptied after the last of them.

No transaction around it all, as `db` elsewhere: held open for as long as these tests last, it would keep other workers'
ledgers from being sealed.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.world import World
from tests.emptying import empty_database
from tests.replay_plugin import forget_the_database


@pytest.fixture(scope="package")
def db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        forget_the_database()
        try:
            yield
        finally:
            empty_database()


@pytest.fixture(scope="package")
def world(db: None, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("demo"))
