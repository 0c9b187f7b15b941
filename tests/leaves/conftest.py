"""The clients of a caller and an executor."""

from typing import Any

import pytest

from tests.cast import Cast


@pytest.fixture
def caller(cast: Cast) -> Any:
    return cast.api("attempts:create")


@pytest.fixture
def executor(cast: Cast) -> Any:
    return cast.api("attempts:execute")
