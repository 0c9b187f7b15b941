"""A counting target on loopback that an operator has allow-listed, and the clients of a caller and an executor."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from tests.attempts.execution.support import ROUTE
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast


@pytest.fixture
def target(settings: Any) -> Iterator[CountingTarget]:
    found = CountingTarget()
    settings.HOLDPOINT_HTTP_TARGETS = {ROUTE: found.url}
    settings.HOLDPOINT_HTTP_ALLOW_PRIVATE = [found.host]
    yield found
    found.stop()


@pytest.fixture
def caller(cast: Cast) -> Any:
    return cast.api("attempts:create")


@pytest.fixture
def executor(cast: Cast) -> Any:
    return cast.api("attempts:execute")


@pytest.fixture
def disabled_guard() -> Any:
    """Somebody with the owner's rights in the database, and bad intentions."""

    @contextmanager
    def lifted() -> Iterator[None]:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE attempts_attempt DISABLE TRIGGER legal_moves")
            yield
            cursor.execute("ALTER TABLE attempts_attempt ENABLE ALWAYS TRIGGER legal_moves")

    return lifted
