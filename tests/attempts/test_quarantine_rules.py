"""What may follow in a case: every combination of what is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts.quarantine.rules import CaseFacts, how_to_ask, next_acts, not_yet

pytestmark = pytest.mark.unit

FACTS = st.builds(
    CaseFacts,
    resolved=st.booleans(),
    finding=st.sampled_from(["", "happened", "did_not_happen"]),
    incident_ref=st.sampled_from(["", "INC-1"]),
    incident_required=st.booleans(),
    contract_open=st.booleans(),
    repeatable=st.booleans(),
    compensation=st.sampled_from(["", "undo/1"]),
    compensation_open=st.booleans(),
    own=st.booleans(),
)


@given(facts=FACTS)
def test_an_act_is_offered_only_if_it_can_succeed(facts: CaseFacts) -> None:
    verbs = [act.verb for act in next_acts(facts)]
    blocked = facts.resolved or (facts.incident_required and not facts.incident_ref)
    retry = facts.contract_open and facts.repeatable and facts.finding != "happened" and not facts.own
    undo = bool(facts.compensation) and facts.compensation_open and facts.finding != "did_not_happen"
    compensate = undo and not facts.own
    assert ("authorize-retry" in verbs) is (not blocked and retry)
    assert ("compensate" in verbs) is (not blocked and compensate)
    assert ("accept" in verbs) is (not blocked)
    assert ("hand-over" in verbs) is (not facts.resolved and facts.incident_ref != "")
    assert ("link-incident" in verbs) is (not facts.resolved)


@given(facts=FACTS)
def test_an_open_case_always_has_a_next_act_and_a_resolved_one_none(facts: CaseFacts) -> None:
    assert bool(next_acts(facts)) is (not facts.resolved)
    assert not facts.resolved or not_yet(facts) == []


@given(facts=FACTS)
def test_a_retry_says_that_it_did_not_happen_and_a_compensation_that_it_did(facts: CaseFacts) -> None:
    said = {act.verb: act.finding for act in next_acts(facts)}
    assert said.get("authorize-retry", "did_not_happen") == "did_not_happen"
    assert said.get("compensate", "happened") == "happened"


def test_the_receiver_is_asked_by_the_key_that_it_got() -> None:
    (sentence, elsewhere) = how_to_ask(connector="http", target_ref="order-1", keys=["hp-1", "hp-1"], executors=["w"])
    assert "order-1" in sentence
    assert sentence.count("hp-1") == 1
    assert "evidence" in elsewhere
    (asked,) = how_to_ask(connector="external", target_ref="", keys=["hp-1"], executors=["desk"])
    assert "executor (desk)" in asked
    (nothing,) = how_to_ask(connector="http", target_ref="order-1", keys=[], executors=[])
    assert "Nothing was sent" in nothing
