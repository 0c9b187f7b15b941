"""The story of a module, and the savepoint of a test that adds to it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.conformance.story import Story
from tests.worlds import kept_for_the_module


@pytest.fixture(scope="module")
def told_once(django_db_setup: None, django_db_blocker: Any) -> Iterator[Story]:
    with kept_for_the_module(django_db_blocker) as world:
        with world:
            story = Story(Cast()).tell()
        yield story


@pytest.fixture
def story(told_once: Story, db: None) -> Story:
    return told_once


@pytest.fixture
def target(settings: Any) -> Iterator[CountingTarget]:
    """A receiver for the contract `sent`, which answers as it is told."""
    found = CountingTarget()
    settings.HOLDPOINT_HTTP_TARGETS = {f"clinic/{slug}": found.url for slug in ("sent", "safe")}
    settings.HOLDPOINT_HTTP_ALLOW_PRIVATE = [found.host]
    yield found
    found.stop()
