"""When a failure is tried again: only where it is safe and allowed, inside the window, reproducibly spread."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts.execution.rules import execution_backoff, jitter, retry_plan

pytestmark = pytest.mark.unit
AT = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
ID = UUID(int=7)
POLICY = {
    "automatic_retries": "when_safe",
    "max_attempts": 5,
    "backoff_seconds": [5, 30, 120, 600],
    "jitter_fraction": 0.2,
    "window_seconds": 3600,
}


def plan(policy: dict[str, Any] | None = None, **changes: Any) -> Any:
    facts = {"effect": "idempotent", "retryable": True, "tries": 1, "first_at": AT, "at": AT, "attempt_id": ID}
    return retry_plan(document=POLICY | (policy or {}), **facts | changes)


@pytest.mark.parametrize(("tries", "seconds"), [(1, 5), (2, 30), (3, 120), (4, 600), (5, 600), (9, 600)])
def test_waits_grow_as_the_contract_says_and_the_last_one_repeats(tries: int, seconds: int) -> None:
    assert execution_backoff([5, 30, 120, 600], tries) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("policy", "facts", "why"),
    [
        ({}, {"effect": "once"}, "effect_is_once"),
        ({}, {"effect": "something new"}, "effect_is_once"),
        ({"automatic_retries": "never"}, {}, "contract_forbids"),
        ({}, {"retryable": False}, "not_retryable"),
        ({}, {"tries": 5}, "tries_used_up"),
        ({"max_attempts": 1}, {}, "tries_used_up"),
        ({"window_seconds": 4}, {}, "window_passed"),
        ({}, {"at": AT + timedelta(seconds=3596)}, "window_passed"),
    ],
)
def test_what_forbids_a_retry_is_named(policy: dict[str, Any], facts: dict[str, Any], why: str) -> None:
    found = plan(policy, **facts)
    assert (found.due_at, found.why) == (None, why)


def test_jitter_is_cut_at_the_end_of_the_window() -> None:
    found = plan({"jitter_fraction": 1.0, "window_seconds": 5})
    assert found.due_at == AT + timedelta(seconds=5)


policies = st.fixed_dictionaries(
    {
        "automatic_retries": st.sampled_from(["never", "when_safe"]),
        "max_attempts": st.integers(1, 10),
        "backoff_seconds": st.lists(st.integers(1, 86_400), min_size=1, max_size=10),
        "jitter_fraction": st.floats(0, 1),
        "window_seconds": st.integers(1, 604_800),
    }
)


@given(
    policy=policies,
    effect=st.sampled_from(["none", "idempotent", "once"]),
    retryable=st.booleans(),
    tries=st.integers(1, 12),
    late=st.integers(0, 700_000),
    attempt_id=st.uuids(),
)
def test_a_retry_is_always_safe_allowed_and_inside_its_bounds(
    policy: dict[str, Any], effect: str, retryable: bool, tries: int, late: int, attempt_id: UUID
) -> None:
    at = AT + timedelta(seconds=late)
    facts = {"effect": effect, "retryable": retryable, "tries": tries, "at": at, "attempt_id": attempt_id}
    found = plan(policy, **facts)
    assert plan(policy, **facts) == found
    if found.due_at is None:
        return
    assert effect != "once"
    assert retryable
    assert policy["automatic_retries"] == "when_safe"
    assert tries < policy["max_attempts"]
    wait = execution_backoff(policy["backoff_seconds"], tries)
    assert at + wait <= found.due_at <= at + wait * (1 + policy["jitter_fraction"]) + timedelta(microseconds=1)
    assert found.due_at <= AT + timedelta(seconds=policy["window_seconds"])


@given(attempt_id=st.uuids(), tries=st.integers(1, 10))
def test_jitter_is_from_nought_up_to_one_and_repeatable(attempt_id: UUID, tries: int) -> None:
    assert 0 <= jitter(attempt_id, tries) < 1
    assert jitter(attempt_id, tries) == jitter(attempt_id, tries)


def test_jitter_spreads_attempts_that_failed_together() -> None:
    values = [jitter(UUID(int=number), 1) for number in range(1000)]
    assert all(60 < sum(low <= value < low + 0.1 for value in values) < 140 for low in [n / 10 for n in range(10)])
