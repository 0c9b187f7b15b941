"""Decided at the act: before each lease and each retry enforcement runs again with what is in force then, with a
decision of its own. A deny wins over an earlier approval; a higher demand opens a new hold."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.dispatch import attempt_dispatch
from attempts.execution.services.lease_expire import leases_expire
from attempts.lifecycle.models import AttemptTransition
from attempts.lifecycle.services.hold import review_build
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from attempts.reviews.services.clock import reviews_expire
from governance.console.models import IntakeMinute
from governance.console.services import minutes_count
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.selectors import intake_by_verdict
from governance.enforcement.services import decision_replay
from governance.ledger.models import LedgerEntry
from governance.people.services.accounts import service_account_reinstate, service_account_suspend
from governance.policies.services import policy_archive
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import (
    actions_of,
    ask,
    asked,
    attempt,
    change,
    contract,
    retry_becomes_due,
)
from tests.attempts.execution.target import CountingTarget
from tests.attempts.reviews.support import do, set_deadline
from tests.cast import Cast
from tests.governed import ALLOW, DENY, HOLD, make_policy

TWO = [HOLD[0] | {"approvals_required": 2}]
OTHER_TIER = [HOLD[0] | {"tier": "sa_qa"}]
BOTH = [
    {name: value for name, value in HOLD[0].items() if name not in {"tier", "approvals_required"}}
    | {"buckets": [{"tier": "customer_clinician"}, {"tier": "sa_qa"}]}
]
CLIENT = {"connector": "external", "runtime_mode": "client_driven"}


def dispatch(attempt_id: UUID) -> str | None:
    return attempt_dispatch(attempt_id=attempt_id, now=timezone.now)


def lease(client: Any, attempt_id: UUID) -> Any:
    return client.post(f"/api/v1/attempts/{attempt_id}/lease", {}, format="json")


def at_act(attempt_id: UUID) -> list[EnforcementDecision]:
    """The decisions before its acts; each agrees when it is evaluated again."""
    with every_tenant():
        rows = list(EnforcementDecision.objects.filter(subject_id=attempt_id).order_by("id"))
        assert all(decision_replay(row=row).agrees for row in rows)
        return rows


def reviews_of(attempt_id: UUID) -> list[Review]:
    with every_tenant():
        return list(Review.objects.filter(attempt_id=attempt_id).order_by("id"))


def told(attempt_id: UUID, action: str) -> dict[str, Any]:
    with every_tenant():
        entries = LedgerEntry.objects.filter(subject_id=attempt_id).order_by("id")
        moves = [move for entry in entries for move in entry.moves]
        return next(move.facts or {} for move in moves if move.action == action)


@pytest.fixture
def rita(cast: Cast) -> Any:
    return cast.session(cast.reviewer)


@pytest.fixture
def quentin(cast: Cast) -> Any:
    return cast.session(cast.person("quentin", "reviewer:sa_qa"))


def released(cast: Cast, caller: Any, rita: Any, **changes: Any) -> UUID:
    """Held by one reviewer's rule, and approved."""
    contract(cast, adapter="external", effect="idempotent", rules=HOLD, **changes)
    found = UUID(ask(caller, **CLIENT).json()["id"])
    assert do(rita, reviews_of(found)[0], "approve").status_code == 200
    return found


def held_again(cast: Cast, caller: Any, executor: Any, rita: Any, rules: list[dict[str, Any]]) -> UUID:
    found = released(cast, caller, rita)
    make_policy(cast, rules=rules)
    refused = lease(executor, found)
    assert (refused.status_code, refused.json()["reason_code"]) == (409, "review_required")
    return found


def failed_once(cast: Cast, caller: Any, executor: Any, **changes: Any) -> UUID:
    """Allowed, tried, failed, and due again."""
    contract(cast, adapter="external", effect="idempotent", **changes)
    found = asked(caller, **CLIENT)
    token = lease(executor, found).json()["lease_token"]
    report = {"lease_token": token, "category": "adapter_failure", "retryable": True}
    assert executor.post(f"/api/v1/attempts/{found}/fail", report, format="json").status_code == 200
    retry_becomes_due(found)
    return found


# --- a decision of its own -------------------------------------------------------------------------------------------


def test_every_act_has_a_decision_that_its_intent_names(cast: Cast, caller: Any, executor: Any) -> None:
    found = failed_once(cast, caller, executor)
    assert lease(executor, found).status_code == 200
    first, second = at_act(found)
    assert [(row.act, row.verdict) for row in (first, second)] == [("lease", "allow"), ("retry", "allow")]
    with every_tenant():
        named = list(DispatchIntent.objects.order_by("number").values_list("decision_id", flat=True))
        intake = EnforcementDecision.objects.get(id=attempt(found).decision_id)
    assert named == [first.id, second.id]
    assert (intake.act, intake.subject_id) == ("", None)
    assert [row.request_sha256 for row in (first, second)] == [intake.request_sha256] * 2
    assert told(found, "attempt.dispatched")["decided"] == str(first.id)
    assert told(found, "attempt.decided")["environment_sha256"] == first.environment_sha256


def test_all_nine_evaluators_run_again_and_what_was_counted_is_not_counted_twice(
    cast: Cast, caller: Any, executor: Any
) -> None:
    found = failed_once(cast, caller, executor)
    facts, results = at_act(found)[0].environment, at_act(found)[0].results
    assert (facts["throttle"], facts["concurrency"], facts["act"]) == (
        {"status": "taken"},
        {"status": "taken"},
        "lease",
    )
    assert [row["evaluator"] for row in results] == [
        *("contract_open", "shutdown", "envelope", "metadata_boundary", "region", "authorization", "throttle"),
        *("concurrency", "policy"),
    ]
    assert {row["verdict"] for row in results} == {"allow"}
    assert facts["caller"]["scopes"] == ["attempts:create"]


def test_the_figures_of_intake_count_each_request_once(cast: Cast, caller: Any, executor: Any) -> None:
    failed_once(cast, caller, executor)
    now = timezone.now()
    with every_tenant():
        assert intake_by_verdict(at=now).totals["allow"] == 1
        minutes_count(at=now + timedelta(minutes=10))
        assert sum(IntakeMinute.objects.values_list("decisions", flat=True)) == 1


def test_the_api_shows_the_decisions_before_the_acts(cast: Cast, caller: Any, executor: Any) -> None:
    found = failed_once(cast, caller, executor)
    make_policy(cast, rules=DENY)
    assert lease(executor, found).status_code == 409
    shown = caller.get(f"/api/v1/attempts/{found}/decision").json()
    assert shown["verdict"] == "allow"
    assert [(row["act"], row["verdict"], row["reason_code"]) for row in shown["acts"]] == [
        ("lease", "allow", ""),
        ("retry", "deny", "policy_denied"),
    ]
    assert cast.api("attempts:create", organization=cast.other).get(
        f"/api/v1/attempts/{found}/decision"
    ).status_code in {403, 404}


# --- a deny wins -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approved", [False, True], ids=["allowed at intake", "approved by a person"])
def test_a_policy_that_denies_by_then_stops_the_lease_and_says_why(
    cast: Cast, caller: Any, executor: Any, rita: Any, approved: bool
) -> None:
    if approved:
        found = released(cast, caller, rita)
    else:
        contract(cast, adapter="external")
        found = asked(caller, **CLIENT)
    make_policy(cast, rules=DENY)
    refused = lease(executor, found)
    assert (refused.status_code, refused.json()["reason_code"]) == (409, "policy_denied")
    row, (decision,) = attempt(found), at_act(found)
    assert (row.state, row.reason_code, row.tries, row.lease_token) == ("preflight-denied", "policy_denied", 0, 0)
    assert (decision.act, decision.verdict, decision.policy_version) == ("lease", "deny", 2)
    assert actions_of(found)[-2:] == ["attempt.decided", "attempt.denied"]
    with every_tenant():
        assert not DispatchIntent.objects.exists()


def test_a_policy_that_denies_by_then_stops_our_worker(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast)
    found = asked(caller)
    make_policy(cast, rules=DENY)
    assert dispatch(found) is None
    assert (attempt(found).state, attempt(found).reason_code) == ("preflight-denied", "policy_denied")
    assert not target.requests


def test_without_an_active_policy_nothing_is_sent(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast)
    found, policy = asked(caller), make_policy(cast)
    with every_tenant():
        policy_archive(actor=cast.actor(cast.operator, [cast.organization]), at=timezone.now(), policy_id=policy.id)
    assert dispatch(found) is None
    assert (attempt(found).reason_code, at_act(found)[0].reason_code) == ("no_active_policy", "no_active_policy")


def test_a_region_that_is_no_longer_allowed_stops_the_act(
    cast: Cast, caller: Any, target: CountingTarget, settings: Any
) -> None:
    contract(cast)
    found = asked(caller)
    settings.DEPLOYMENT_REGION = "ZA"
    assert dispatch(found) is None
    assert attempt(found).reason_code == at_act(found)[0].reason_code == "residency_violation"


def test_a_retry_that_is_denied_by_then_goes_to_a_person(cast: Cast, caller: Any, executor: Any) -> None:
    found = failed_once(cast, caller, executor)
    make_policy(cast, rules=DENY)
    assert lease(executor, found).status_code == 409
    assert [(row.act, row.verdict) for row in at_act(found)] == [("lease", "allow"), ("retry", "deny")]
    assert attempt(found).state == "failed-quarantined"
    assert told(found, "attempt.quarantined")["refused"] == "policy_denied"
    with every_tenant():
        assert DispatchIntent.objects.count() == 1
        assert QuarantineCase.objects.count() == 1


def test_a_caller_that_is_suspended_by_then_waits_and_nothing_is_decided(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast)
    found = asked(caller)
    account, actor = attempt(found).caller_id, cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        service_account_suspend(
            actor=actor, at=timezone.now(), service_account_id=account, reason_code="misuse_suspended"
        )
    assert dispatch(found) is None
    assert (attempt(found).state, at_act(found)) == ("approved-for-execution", [])
    with every_tenant():
        service_account_reinstate(actor=actor, at=timezone.now(), service_account_id=account)
    retry_becomes_due(found)
    assert dispatch(found) == "completed"


# --- the retry window ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("late", "leased"), [(5, True), (60, False)])
def test_the_retry_window_is_checked_when_the_retry_runs(
    cast: Cast, caller: Any, executor: Any, time_machine: Any, late: int, leased: bool
) -> None:
    began = timezone.now()
    found = failed_once(cast, caller, executor)
    window = 3600
    time_machine.move_to(began + timedelta(seconds=window + late))
    assert (lease(executor, found).status_code == 200) is leased
    if not leased:
        assert attempt(found).state == "failed-quarantined"
        assert told(found, "attempt.quarantined")["refused"] == "retry_window_passed"
        assert len(at_act(found)) == 1


# --- the same or a lower demand --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [HOLD, ALLOW], ids=["the same", "nobody"])
def test_an_approval_satisfies_the_same_or_a_lower_demand(
    cast: Cast, caller: Any, executor: Any, rita: Any, rules: list[dict[str, Any]]
) -> None:
    found = released(cast, caller, rita)
    make_policy(cast, rules=rules)
    assert lease(executor, found).status_code == 200
    assert at_act(found)[0].verdict == rules[0]["verdict"]
    assert len(reviews_of(found)) == 1


# --- a higher demand -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [TWO, OTHER_TIER, BOTH], ids=["more people", "another tier", "one more tier"])
def test_a_higher_demand_opens_a_new_hold_bound_to_the_new_decision(
    cast: Cast, caller: Any, executor: Any, rita: Any, quentin: Any, rules: list[dict[str, Any]]
) -> None:
    found = held_again(cast, caller, executor, rita, rules)
    (first, second), (decision,) = reviews_of(found), at_act(found)
    assert (second.status, second.decision_id, second.action_digest) == ("requested", decision.id, first.action_digest)
    assert first.decision_id == attempt(found).decision_id
    row = attempt(found)
    assert (row.state, row.next_eligible_at, row.tries) == ("approved-for-execution", None, 0)
    assert actions_of(found)[-2:] == ["attempt.decided", "attempt.held_again"]
    explained = caller.get(f"/api/v1/attempts/{found}/explain").json()["obstacles"]
    assert [one["kind"] for one in explained] == ["review"]
    assert caller.get(f"/api/v1/attempts/{found}").json()["review"]["id"] == str(second.id)
    sam = cast.session(cast.person("sam", "reviewer:customer_clinician"))
    for client in [rita, sam] if rules is TWO else [rita, quentin] if rules is BOTH else [quentin]:
        assert lease(executor, found).status_code == 409
        assert do(client, second, "approve").status_code == 200
    assert lease(executor, found).status_code == 200
    assert actions_of(found)[-4:] == [
        "attempt.released_again",
        "attempt.decided",
        "attempt.leased",
        "attempt.dispatched",
    ]
    with every_tenant():
        rows = AttemptTransition.objects.filter(attempt_id=found).order_by("id")
        states = list(rows.values_list("to_state", flat=True))
    assert states == ["deduplicated", "review-required", "approved-for-execution"]


def test_what_was_allowed_is_held_if_people_are_asked_by_then(
    cast: Cast, caller: Any, target: CountingTarget, rita: Any
) -> None:
    contract(cast)
    found = asked(caller)
    make_policy(cast, rules=HOLD)
    assert dispatch(found) is None
    (review,) = reviews_of(found)
    assert rita.get(f"/api/v1/reviews/{review.id}").status_code == 200
    assert rita.get("/api/v1/reviews", {"status": "requested"}).json()["results"][0]["id"] == str(review.id)
    assert do(rita, review, "approve").status_code == 200
    assert dispatch(found) == "completed"


def test_the_card_says_that_it_was_released_before_and_by_whom(
    cast: Cast, caller: Any, executor: Any, rita: Any, quentin: Any
) -> None:
    found = held_again(cast, caller, executor, rita, OTHER_TIER)
    first, second = reviews_of(found)
    page = cast.console(cast.person("quentin", "reviewer:sa_qa"))
    shown = " ".join(page.get(f"/review/{second.id}").content.decode().split())
    assert "Held again" in shown
    assert "by 1 of customer clinician. Nothing was sent yet." in shown
    assert "Held again" not in cast.console(cast.reviewer).get(f"/review/{first.id}").content.decode()
    card = quentin.get(f"/api/v1/reviews/{second.id}").json()
    assert (card["why_held"]["decision_id"], card["why_held"]["policy_version"]) == (str(second.decision_id), 2)


@pytest.mark.parametrize("tried", [False, True], ids=["before the first lease", "before a retry"])
@pytest.mark.parametrize("how", ["rejected", "expired"])
def test_who_refuses_the_new_hold_ends_the_attempt(
    cast: Cast, caller: Any, executor: Any, rita: Any, tried: bool, how: str
) -> None:
    if tried:
        found = failed_once(cast, caller, executor)
    else:
        contract(cast, adapter="external")
        found = asked(caller, **CLIENT)
    make_policy(cast, rules=HOLD)
    assert lease(executor, found).status_code == 409
    (review,) = reviews_of(found)
    if how == "rejected":
        assert do(rita, review, "reject").status_code == 200
    else:
        set_deadline(review, seconds=-1)
        assert reviews_expire(at=timezone.now()) == 1
    row, reason = attempt(found), f"review_{how}"
    if tried:  # something was sent before: a denial would say that nothing was
        assert (row.state, told(found, "attempt.quarantined")["refused"]) == ("failed-quarantined", reason)
    else:
        assert (row.state, row.reason_code) == ("preflight-denied", reason)
    assert lease(executor, found).status_code == 409


def test_the_caller_can_withdraw_an_attempt_that_is_held_again(
    cast: Cast, caller: Any, executor: Any, rita: Any
) -> None:
    found = held_again(cast, caller, executor, rita, TWO)
    assert caller.post(f"/api/v1/attempts/{found}/cancel", {}, format="json").status_code == 200
    assert (attempt(found).state, reviews_of(found)[1].status) == ("preflight-denied", "canceled")
    assert do(rita, reviews_of(found)[1], "approve").status_code == 409


def test_a_contradiction_about_an_attempt_that_is_held_again_ends_its_review(
    cast: Cast, caller: Any, executor: Any
) -> None:
    contract(cast, adapter="external", effect="idempotent")
    found = asked(caller, **CLIENT)
    token = lease(executor, found).json()["lease_token"]
    failed = {"lease_token": token, "category": "adapter_failure", "retryable": True}
    assert executor.post(f"/api/v1/attempts/{found}/fail", failed, format="json").status_code == 200
    retry_becomes_due(found)
    make_policy(cast, rules=HOLD)
    assert lease(executor, found).json()["reason_code"] == "review_required"
    late = executor.post(f"/api/v1/attempts/{found}/complete", {"lease_token": token}, format="json")
    assert late.status_code == 409
    assert (attempt(found).state, reviews_of(found)[0].status) == ("failed-quarantined", "canceled")


def test_a_held_attempt_that_somebody_makes_due_is_not_sent_and_not_held_twice(
    cast: Cast, caller: Any, executor: Any, rita: Any
) -> None:
    found = held_again(cast, caller, executor, rita, TWO)
    change(found, "next_eligible_at = now() - interval '1 second'")
    assert lease(executor, found).status_code == 409
    assert (len(reviews_of(found)), attempt(found).next_eligible_at) == (2, None)
    with every_tenant():
        assert not DispatchIntent.objects.exists()


def test_an_attempt_has_one_open_review_at_most(cast: Cast, caller: Any, executor: Any, rita: Any) -> None:
    found = held_again(cast, caller, executor, rita, TWO)
    (decision,) = at_act(found)
    another = review_build(attempt(found), decision, timezone.now())
    assert another is not None
    with every_tenant(), pytest.raises(IntegrityError, match="review_one_open_per_attempt"), transaction.atomic():
        another.save(force_insert=True)


def test_the_first_approval_alone_does_not_release_what_is_held_again(
    cast: Cast, caller: Any, executor: Any, rita: Any
) -> None:
    """The vote in the old review is over; the same person votes again, under the new decision."""
    found = held_again(cast, caller, executor, rita, TWO)
    old, new = reviews_of(found)
    assert do(rita, old, "approve").status_code in {403, 409}
    assert do(rita, new, "approve").status_code == 200
    assert reviews_of(found)[1].status == "requested"


def test_an_approval_of_an_earlier_hold_counts_again_when_the_demand_is_lower_again(
    cast: Cast, caller: Any, executor: Any, rita: Any, quentin: Any
) -> None:
    found = held_again(cast, caller, executor, rita, OTHER_TIER)
    assert do(quentin, reviews_of(found)[1], "approve").status_code == 200
    make_policy(cast, rules=HOLD)
    assert lease(executor, found).status_code == 200


# --- the batch, and what survives a rollback --------------------------------------------------------------------------


def test_one_of_a_batch_is_denied_and_the_others_are_leased(cast: Cast, caller: Any, executor: Any) -> None:
    contract(cast, adapter="external")
    found = [asked(caller, number, **CLIENT) for number in (1, 2, 3)]
    make_policy(cast, rules=[DENY[0] | {"when": 'action.target_ref == "case-0002"'}, *ALLOW])
    leased = executor.post("/api/v1/attempts/lease", {"limit": 10}, format="json").json()["results"]
    assert [row["attempt"]["id"] for row in leased] == [str(found[0]), str(found[2])]
    assert [at_act(one)[0].verdict for one in found] == ["allow", "deny", "allow"]
    assert attempt(found[1]).state == "preflight-denied"


def test_the_database_refuses_a_decision_at_an_act_without_its_attempt(cast: Cast, caller: Any, executor: Any) -> None:
    found = failed_once(cast, caller, executor)
    (row,) = at_act(found)
    row.pk, row._state.adding, row.subject_id = UUID(int=1), True, None
    with every_tenant(), pytest.raises(IntegrityError, match="decision_act_has_subject"), transaction.atomic():
        row.save(force_insert=True)


def test_an_expired_lease_needs_no_new_decision(cast: Cast, caller: Any, executor: Any) -> None:
    contract(cast, adapter="external")
    found = asked(caller, **CLIENT)
    assert lease(executor, found).status_code == 200
    change(found, "lease_expires_at = clock_timestamp() - interval '1 second'")
    with every_tenant():
        assert leases_expire() == 1
        assert not Receipt.objects.exists()
    assert len(at_act(found)) == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM governance_enforcementdecision")
        assert cursor.fetchone() == (2,)
