"""A request that is refused again and again by a full cap or throttle is one record with a count, and waits longer."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts.intake.models import RepeatedRefusal
from attempts.intake.rules import LONGEST_WAIT, refusal_backoff
from attempts.lifecycle.models import Attempt, Slot
from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import actions_of, ask, contract
from tests.attempts.test_attempt_open import opening
from tests.cast import Cast
from tests.governance.support import in_parallel
from tests.governed import HOLD


def full(cast: Cast, **caps: int) -> None:
    with every_tenant():
        Organization.objects.filter(id=cast.organization.id).update(**caps)


@pytest.mark.parametrize(
    ("requests", "times"), [(4, 80), pytest.param(50, 80, marks=pytest.mark.soak)], ids=["some", "four thousand"]
)
def test_a_storm_of_denials_is_one_attempt_per_request_with_a_count(cast: Cast, requests: int, times: int) -> None:
    """Fifty requests, eighty times each, as when fifty runs asked every few seconds for 20 minutes. What is stored
    depends on the number of requests; that each repetition adds nothing does not."""
    caller = cast.api("attempts:create")
    contract(cast, adapter="external")
    full(cast, max_concurrency=0)
    for _ in range(times):
        for number in range(1, requests + 1):
            assert ask(caller, number, connector="external").status_code == 429
    with every_tenant():
        assert Attempt.objects.count() == EnforcementDecision.objects.count() == requests
        assert set(RepeatedRefusal.objects.values_list("count", flat=True)) == {times}
        first = Attempt.objects.order_by("id")[0]
        counts = [
            row.payload["count"]
            for row in LedgerEntry.objects.filter(action="attempt.refused_again", subject_id=first.id).order_by("id")
        ]
    assert counts == [2, 4, 8, 16, 32, 64]
    assert actions_of(first.id).count("attempt.denied") == 1


def test_a_repetition_names_the_first_refusal_and_has_to_wait_longer(cast: Cast) -> None:
    caller = cast.api("attempts:create")
    contract(cast, adapter="external")
    full(cast, max_concurrency=0)
    answers = [ask(caller, 1, connector="external") for _ in range(4)]
    assert {answer.json()["attempt_id"] for answer in answers} == {answers[0].json()["attempt_id"]}
    assert {answer.json()["decision_id"] for answer in answers} == {answers[0].json()["decision_id"]}
    assert [answer.json().get("refused_times") for answer in answers] == [None, 2, 3, 4]
    waits = [int(answer["Retry-After"]) for answer in answers]
    assert waits[0] == 5
    assert all(later >= 2 * 5 * 2**number for number, later in enumerate(waits[1:]))
    full(cast, max_concurrency=1)
    assert ask(caller, 1, connector="external").status_code == 201


def test_another_request_another_reason_and_another_caller_are_refusals_of_their_own(cast: Cast) -> None:
    caller = cast.api("attempts:create")
    contract(cast, adapter="external")
    full(cast, max_concurrency=0)
    ask(caller, 1, connector="external")
    ask(caller, 2, connector="external")
    ask(cast.api("attempts:create"), 1, connector="external")
    with every_tenant():
        assert list(RepeatedRefusal.objects.values_list("count", flat=True)) == [1, 1, 1]


def test_a_refusal_by_a_cap_says_which_with_its_size_and_use(cast: Cast) -> None:
    caller = cast.api("attempts:create")
    contract(cast, adapter="external")
    contract(cast, slug="held", policy_slug="held", rules=HOLD, adapter="external")
    full(cast, max_concurrency=1, max_open_holds=1)
    assert ask(caller, 1, connector="external").status_code == 201
    assert ask(caller, 2, slug="held", connector="external").status_code == 202
    for number, slug, name, words in (
        (3, "close-case", "max_concurrency", "1 of 1 are under way"),
        (4, "held", "max_open_holds", "1 of 1 wait for people"),
    ):
        refused = ask(caller, number, slug=slug, connector="external")
        assert (refused.status_code, refused.json()["reason_code"]) == (429, "concurrency_limit")
        (error,) = refused.json()["errors"]
        assert (error["pointer"], error["rule"], error["message"]) == (f"/limits/caps/{name}", name, words)
        assert error["remedy"]
        assert refused["RateLimit-Policy"] == f'"{name}";q=1;qu="concurrent-requests"'
        assert refused["RateLimit"] == f'"{name}";r=0;t={refused["Retry-After"]}'
        decision = caller.get(f"/api/v1/attempts/{refused.json()['attempt_id']}/decision").json()
        said = next(row["explanation"] for row in decision["evaluators"] if row["evaluator"] == "concurrency")
        assert f"Limit: {name}, 1 of 1 used." in said


def test_a_throttled_step_asks_again_later_each_time_and_stores_one_attempt(cast: Cast) -> None:
    made = contract(cast, adapter="external")
    full(cast, max_open_holds=0)
    held = contract(cast, slug="held", policy_slug="held", rules=HOLD, adapter="external")
    assert opening(made).verdict == "allow"
    asked = [opening(held, idempotency_key="step-00000002") for _ in range(3)]
    assert {(one.verdict, one.reason_code) for one in asked} == {("deny", "concurrency_limit")}
    assert len({one.attempt.id for one in asked if one.attempt}) == 1
    waits = [one.retry_after or 0 for one in asked]
    assert waits[0] < waits[1] < waits[2]


@pytest.mark.django_db(transaction=True)
def test_the_same_refused_request_many_times_at_once_is_counted_and_stored_once(cast: Cast) -> None:
    contract(cast, adapter="external")
    full(cast, max_concurrency=0)
    key = cast.key("attempts:create")

    def some() -> list[int]:
        client = cast.with_key(key)
        return [ask(client, 1, connector="external").status_code for _ in range(5)]

    statuses = [status for answers in in_parallel(*[some] * 8) for status in answers]
    assert set(statuses) <= {429, 409}
    with every_tenant():
        assert Attempt.objects.count() == 1
        assert RepeatedRefusal.objects.get().count == statuses.count(429)
        assert not Slot.objects.exists()


@pytest.mark.unit
@given(base=st.integers(1, 3600), count=st.integers(1, 10_000), attempt=st.uuids())
def test_waits_grow_have_jitter_and_have_an_end(base: int, count: int, attempt: UUID) -> None:
    wait = refusal_backoff(base, count, attempt)
    assert base <= wait <= max(base, LONGEST_WAIT) * 1.2
    assert wait == refusal_backoff(base, count, attempt)
    if count > 1:
        assert wait >= min(2 * base, max(base, LONGEST_WAIT))
