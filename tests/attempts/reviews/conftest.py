"""Set-up of the review tests."""

from typing import Any

import pytest

from tests.attempts.reviews.support import REVIEWER, Clinic
from tests.cast import Cast


@pytest.fixture
def clinic(cast: Cast) -> Clinic:
    """One approval is enough."""
    return Clinic(cast)


@pytest.fixture
def two(cast: Cast) -> Clinic:
    """Two different people must approve."""
    return Clinic(cast, approvals=2)


@pytest.fixture
def rita(cast: Cast) -> Any:
    """A reviewer of the tier, signed in."""
    return cast.session(cast.reviewer)


@pytest.fixture
def sam(cast: Cast) -> Any:
    """Another one."""
    return cast.session(cast.person("sam", REVIEWER))
