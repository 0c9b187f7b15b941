"""A set-up that is made once for a whole module: each test runs in a savepoint of its transaction and leaves it
unchanged."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from django.db import transaction


@contextmanager
def kept_for_the_module(blocker: Any) -> Iterator[AbstractContextManager[None]]:
    """Within what it yields the database may be asked. Only for modules whose tests need no real transactions."""
    with blocker.unblock():
        world = transaction.atomic()
        world.__enter__()
    try:
        yield blocker.unblock()
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            world.__exit__(None, None, None)
