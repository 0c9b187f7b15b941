"""The simulated modules' decisions: they fit the catalogue, follow their seed, and behave as they were told."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from sdk.simulator.answers import ANSWERS, replies
from sdk.simulator.behaviour import MODULES, Behaviour, modules_named, requests_of
from workflows.events.rules import envelope_problems

pytestmark = pytest.mark.unit

AT = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
ASKED: dict[str, dict[str, Any]] = {
    "consent.check.requested": {"types": ["ai_analysis"], "patient_id": "pat-1"},
    "case.images_check.requested": {"min_count": 3},
    "case.set_status.requested": {"status": "closed"},
    "ai_review.requested": {"images": [], "product_id": str(UUID(int=7))},
    "human_review.requested": {"tier": "sa_qa", "context_snapshot": {}},
}
ALL = range(400)


def request(name: str, number: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "event_id": str(UUID(int=1000 + number)),
        "event_type": name,
        "schema_version": "v1",
        "occurred_at": "2026-11-16T12:00:00Z",
        "correlation_id": str(UUID(int=5000 + number)),
        "case_id": str(UUID(int=2)),
        "org_id": str(UUID(int=3)),
        "product_id": str(UUID(int=4)),
        "payload": ASKED.get(name, {}),
    } | changes


def answers(name: str, **behaviour: Any) -> list[dict[str, Any]]:
    """To four hundred requests, the first answer of each."""
    chosen = Behaviour(**behaviour)
    return [replies(request(name, number), chosen, at=AT)[0].envelope for number in ALL]


def share(found: list[bool]) -> float:
    return sum(found) / len(found)


@pytest.mark.parametrize("name", sorted(ANSWERS))
@pytest.mark.parametrize("failure_rate", [0.0, 0.5, 1.0])
def test_every_answer_fits_its_schema_and_echoes_the_request(name: str, failure_rate: float) -> None:
    behaviour = Behaviour(failure_rate=failure_rate, duplicate_rate=0.5)
    for number in ALL:
        asked = request(name, number)
        for reply in replies(asked, behaviour, at=AT):
            assert envelope_problems(reply.envelope) == []
            assert reply.envelope["causation_id"] == asked["event_id"]
            for field in ("correlation_id", "case_id", "org_id", "product_id"):
                assert reply.envelope[field] == asked[field]


def test_the_four_modules_listen_to_every_request_that_has_an_answer_and_to_the_final_result() -> None:
    assert set(requests_of(frozenset(MODULES))) == {*ANSWERS, "case.workflow.completed"}
    assert requests_of(modules_named("ai-review")) == ("ai_review.requested",)
    assert modules_named("") == frozenset(MODULES)
    with pytest.raises(ValueError, match="no such module: ai-revue"):
        modules_named("ai-revue, consent")


def test_the_final_result_is_taken_without_an_answer() -> None:
    assert replies(request("case.workflow.completed"), Behaviour(), at=AT) == []


def test_the_same_seed_answers_the_same_at_any_time_and_another_seed_differently() -> None:
    behaviour = Behaviour(failure_rate=0.3, duplicate_rate=0.3, reorder_rate=0.3)
    asked = [request("ai_review.requested", number) for number in ALL]
    first = [replies(one, behaviour, at=AT) for one in asked]
    later = [replies(one, behaviour, at=AT + timedelta(hours=1)) for one in reversed(asked)][::-1]

    def shown(found: list[Any]) -> list[Any]:
        kept = ("event_id", "event_type", "payload")
        return [[(reply.after, *(reply.envelope[key] for key in kept)) for reply in one] for one in found]

    assert shown(first) == shown(later)
    other = Behaviour(failure_rate=0.3, duplicate_rate=0.3, reorder_rate=0.3, seed=1)
    assert shown(first) != shown([replies(one, other, at=AT) for one in asked])


def test_nothing_fails_unless_it_is_told_to() -> None:
    assert all(one["payload"]["granted"] for one in answers("consent.check.requested"))
    assert all(one["payload"]["passed"] for one in answers("case.images_check.requested"))
    assert {one["event_type"] for one in answers("ai_review.requested")} == {"ai_review.completed"}


def test_failures_and_those_that_may_be_tried_again_come_in_the_shares_asked_for() -> None:
    found = answers("ai_review.requested", failure_rate=0.5, retryable_share=0.25)
    failed = [one for one in found if one["event_type"] == "ai_review.failed"]
    assert 0.4 < len(failed) / len(found) < 0.6
    assert 0.15 < share([one["payload"]["retryable"] for one in failed]) < 0.35
    refused = answers("consent.check.requested", failure_rate=1.0)
    assert {tuple(one["payload"]["missing_types"]) for one in refused} == {("ai_analysis",)}


@pytest.mark.parametrize(("confidence", "lowest", "highest"), [("low", 0, 0.7), ("high", 0.7, 1), ("random", 0.3, 1)])
def test_confidence_is_on_the_side_of_the_branch_that_was_asked_for(
    confidence: str, lowest: float, highest: float
) -> None:
    found = [one["payload"]["confidence"] for one in answers("ai_review.requested", confidence=confidence)]
    assert lowest <= min(found) <= max(found) <= highest
    if confidence == "low":
        assert max(found) < 0.7
    if confidence == "random":
        assert 0.4 < share([value < 0.7 for value in found]) < 0.6


def test_some_duplicates_are_the_same_event_and_some_claim_to_be_new() -> None:
    behaviour = Behaviour(duplicate_rate=1.0)
    pairs = [replies(request("consent.check.requested", number), behaviour, at=AT) for number in ALL]
    same = [one.envelope["event_id"] == two.envelope["event_id"] for one, two in pairs]
    assert 0.4 < share(same) < 0.6
    assert all(one.after <= two.after for one, two in pairs)
    assert all(one.envelope["payload"] == two.envelope["payload"] for one, two in pairs)


def test_latency_spreads_around_its_mean_and_late_ones_come_after_the_timeout() -> None:
    quick = Behaviour(latency_ms=100, jitter=0.5)
    times = [replies(request("consent.check.requested", number), quick, at=AT)[0].after for number in ALL]
    assert 0.05 <= min(times) < max(times) <= 0.15
    late = Behaviour(latency_ms=100, late_rate=1.0, late_seconds=90)
    assert all(replies(request("consent.check.requested", n), late, at=AT)[0].after > 90 for n in ALL)
    slow = Behaviour(latency_ms=100, jitter=0, reorder_rate=1.0)
    held = [replies(request("consent.check.requested", number), slow, at=AT)[0].after for number in ALL]
    assert 0.2 <= min(held) < max(held) <= 1.0


@pytest.mark.parametrize(
    "wrong", [{"failure_rate": 1.5}, {"jitter": -0.1}, {"confidence": "medium"}, {"latency_ms": -1}]
)
def test_a_behaviour_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Behaviour(**wrong)
