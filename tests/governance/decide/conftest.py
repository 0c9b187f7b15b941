"""Set-up of these tests: the process forgets what an earlier test's database held."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cast import Cast
from tests.replay_plugin import forget_the_database


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    forget_the_database()
    yield
    forget_the_database()


@pytest.fixture
def operator(cast: Cast) -> Any:
    """Alice, signed in."""
    return cast.session(cast.operator)


@pytest.fixture
def stranger(cast: Cast) -> Any:
    """Oscar, who operates another organization."""
    return cast.session(cast.other_operator)


@pytest.fixture
def caller(cast: Cast) -> Any:
    """A service that asks for actions."""
    return cast.api("attempts:create")
