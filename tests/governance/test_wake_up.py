"""The bell of work that finds its rows itself: one message is enough until somebody has come to the door."""

from typing import Any

import pytest
from django.db import transaction

from governance.outside.valkey import valkey
from governance.outside.wake_up import WAKE_UP_FLAG, wake_up_once, wake_up_received

TASK = "tests.nobody"


@pytest.fixture
def sent(monkeypatch: Any) -> Any:
    """The broker is replaced, not our code: what would be sent is what counts."""
    messages: list[str] = []
    monkeypatch.setattr("celery.current_app.send_task", lambda name, **_: messages.append(name))
    valkey().delete(WAKE_UP_FLAG + TASK)
    yield messages
    valkey().delete(WAKE_UP_FLAG + TASK)


@pytest.mark.django_db(transaction=True)
def test_it_rings_once_until_it_is_heard_and_again_after_that(sent: list[str]) -> None:
    for _ in range(3):
        with transaction.atomic():
            wake_up_once(TASK)
            wake_up_once(TASK)
            assert len(sent) < 2
    assert sent == [TASK]
    wake_up_received(TASK)  # whoever commits now may be too late for what is being read
    with transaction.atomic():
        wake_up_once(TASK)
    assert sent == [TASK, TASK]
    assert 0 < int(valkey().pttl(WAKE_UP_FLAG + TASK)) <= 500  # a message that was lost is made up for  # type: ignore[arg-type]


@pytest.mark.django_db(transaction=True)
def test_a_ring_that_was_undone_is_none(sent: list[str]) -> None:
    with transaction.atomic():
        wake_up_once(TASK)
        transaction.set_rollback(True)
    assert sent == []
    assert not valkey().exists(WAKE_UP_FLAG + TASK)
