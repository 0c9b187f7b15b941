"""When the one sender looks again, and what its calls say about a receiver."""

import pytest

from attempts.receivers.rules import Bulkheads
from workflows.webhooks.services.sender import SenderBell

pytestmark = pytest.mark.unit


def test_who_rings_while_a_sender_runs_makes_it_look_again() -> None:
    bell = SenderBell()
    assert bell.begin()
    assert not bell.begin()
    assert not bell.end_unless_rung()
    assert bell.end_unless_rung()
    assert bell.begin()
    bell.ring()
    bell.ending = True
    assert bell.end_unless_rung(), "a process that ends begins nothing new"


def test_a_call_that_was_not_made_says_nothing_about_its_receiver() -> None:
    places = Bulkheads(32, small=2)
    places.begin("a", now=0.0)
    places.end("a", began=0.0, now=0.1, good=True)
    assert (places.room("a", now=1.0), places.is_quick("a", now=1.0)) == (3, True)
    places.begin("a", now=1.0)
    places.begin("b", now=1.0)
    places.withdraw("a", began=1.0)
    places.withdraw("b", began=1.0)
    assert places.known() == ["a"]
    assert (places.room("a", now=2.0), places.room("b", now=2.0)) == (3, 2)
    assert places.is_quick("a", now=2.0)
    assert not places.is_quick("b", now=2.0)
