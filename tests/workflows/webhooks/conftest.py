"""A receiver on loopback that an operator of the installation has listed."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.workflows.webhooks.support import Hooks


@pytest.fixture
def hooks(cast: Cast, settings: Any) -> Iterator[Hooks]:
    target = CountingTarget()
    settings.HOLDPOINT_WEBHOOK_ALLOW_PRIVATE = [target.host]
    yield Hooks(cast, target)
    target.stop()
