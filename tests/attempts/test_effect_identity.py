"""A key names the side effect: the same effect under two keys is recognised, held or refused, and reviewers see it."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from attempts.intake.models import EffectAsk
from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.services import decision_replay
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.attempts.execution.test_races import together
from tests.attempts.reviews.support import do
from tests.cast import Cast
from tests.governed import ALLOW, HOLD, make_policy

RECOGNISE = {"on_repeat": "recognise", "tier": None}
HOLDS = {"on_repeat": "hold", "tier": "sa_qa"}
REFUSES = {"on_repeat": "refuse", "tier": None}
ASKED_TWICE = [
    {"id": "twice", "when": "effect.asked_before > 0", "verdict": "deny", "reason_code": "policy_denied"},
    *ALLOW,
]


def open_with(cast: Cast, identity: dict[str, Any] | None, **kwargs: Any) -> None:
    changes = {"idempotency_key_policy": {"effect_identity": identity}} if identity else {}
    contract(cast, adapter="external", changes=changes, **kwargs)


def again(client: Any, number: int, **changes: Any) -> Any:
    """The same effect as request 1, under another key and for another context."""
    action = {
        "connector": "external",
        "operation": "case.close",
        "target_ref": "case-0001",
        "risk_tier": "low",
        "payload_sha256": "ab" * 32,
    }
    return ask(client, number, action=action | changes)


def repeated(answer: Any) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["reason_code"]


@pytest.fixture
def caller(cast: Cast) -> Any:
    return cast.api("attempts:create")


# --- what the contract asks for --------------------------------------------------------------------------------------


def test_a_contract_that_does_not_ask_for_it_recognises_nothing(cast: Cast, caller: Any) -> None:
    open_with(cast, None)
    assert [again(caller, number).status_code for number in (1, 2)] == [201, 201]
    with every_tenant():
        assert not EffectAsk.objects.exists()
        assert all("effect" not in row.environment for row in EnforcementDecision.objects.all())


def test_a_contract_that_refuses_denies_the_second_key(cast: Cast, caller: Any) -> None:
    open_with(cast, REFUSES)
    assert repeated(again(caller, 1)) == (201, None)
    assert repeated(again(caller, 2)) == (403, "effect_repeated")
    with every_tenant():
        denied = EnforcementDecision.objects.get(verdict="deny")
        assert denied.environment["effect"] == {"asked_before": 1}
        assert decision_replay(row=denied).agrees


@pytest.mark.parametrize("policy", [ALLOW, HOLD], ids=["allowed by the rules", "held by the rules"])
def test_a_contract_that_holds_asks_its_tier_too(cast: Cast, caller: Any, policy: list[dict[str, Any]]) -> None:
    open_with(cast, HOLDS, rules=policy)
    first = again(caller, 1)
    assert first.status_code == (201 if policy is ALLOW else 202)
    second = again(caller, 2)
    assert second.status_code == 202
    with every_tenant():
        review = Review.objects.select_related("decision").get(id=second.json()["review"]["id"])
        assert review.decision is not None
        assert decision_replay(row=review.decision).agrees
    own = [{"tier": "sa_qa", "approvals_required": 1}]
    rule = [{"tier": "customer_clinician", "approvals_required": 1}]
    assert review.parts == (own if policy is ALLOW else rule + own)
    assert review.approvals_required == len(review.parts)


def test_a_rule_can_read_how_often_it_was_asked_for(cast: Cast, caller: Any) -> None:
    open_with(cast, RECOGNISE, rules=ASKED_TWICE)
    assert again(caller, 1).status_code == 201
    assert repeated(again(caller, 2)) == (403, "policy_denied")


def test_a_rule_that_reads_it_under_a_contract_that_does_not_ask_finds_none(cast: Cast, caller: Any) -> None:
    open_with(cast, None, rules=ASKED_TWICE)
    assert [again(caller, number).status_code for number in (1, 2)] == [201, 201]


# --- what is the same effect -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [{"operation": "case.open"}, {"target_ref": "case-0002"}, {"payload_sha256": "cd" * 32}],
    ids=["operation", "target", "payload"],
)
def test_another_operation_target_or_payload_is_another_effect(cast: Cast, caller: Any, other: dict[str, Any]) -> None:
    open_with(cast, REFUSES)
    assert again(caller, 1).status_code == 201
    assert again(caller, 2, **other).status_code == 201


def test_the_same_key_again_is_a_replay_and_no_second_asking(cast: Cast, caller: Any) -> None:
    open_with(cast, REFUSES)
    first, second = again(caller, 1), again(caller, 1)
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second["Idempotent-Replayed"] == "true"
    with every_tenant():
        assert EffectAsk.objects.count() == 1


def test_what_was_denied_before_had_no_effect_and_does_not_count(cast: Cast, caller: Any) -> None:
    open_with(cast, HOLDS, rules=HOLD)
    first = again(caller, 1).json()["id"]
    assert caller.post(f"/api/v1/attempts/{first}/cancel", {}, format="json").status_code == 200
    second = again(caller, 2).json()
    assert second["review"]["tier"] == "customer_clinician"
    assert "buckets" not in second["review"]
    with every_tenant():
        assert sorted(EffectAsk.objects.values_list("number", flat=True)) == [1, 2]


def test_when_keys_are_no_longer_remembered_it_is_a_new_effect(cast: Cast, caller: Any, time_machine: Any) -> None:
    open_with(cast, REFUSES)
    now = timezone.now()
    assert again(caller, 1).status_code == 201
    time_machine.move_to(now + timedelta(days=1, seconds=5))
    assert again(caller, 2).status_code == 201


def test_a_shadow_and_another_organization_are_not_asking_for_it(cast: Cast, caller: Any) -> None:
    open_with(cast, REFUSES)
    assert ask(caller, 1, connector="external", runtime_mode="shadow").status_code == 201
    with every_tenant():
        assert not EffectAsk.objects.exists()
    assert again(caller, 2).status_code == 201


# --- shown as asked twice --------------------------------------------------------------------------------------------


def test_the_reviewer_sees_that_it_was_asked_for_twice(cast: Cast, caller: Any) -> None:
    open_with(cast, HOLDS)
    first = again(caller, 1).json()["id"]
    second = again(caller, 2).json()
    quentin = cast.person("quentin", "reviewer:sa_qa")
    card = cast.session(quentin).get(f"/api/v1/reviews/{second['review']['id']}").json()
    (shown,) = card["asked_before"]
    assert (shown["attempt_id"], shown["state"]) == (first, "approved-for-execution")
    assert "under another key" in card["why_held"]["explanation"]
    page = cast.console(quentin).get(f"/review/{second['review']['id']}").content.decode()
    assert "Asked twice" in page
    assert first in page
    plain = caller.get(f"/api/v1/attempts/{second['id']}").json()
    assert [row["attempt_id"] for row in plain["asked_before"]] == [first]
    assert caller.get(f"/api/v1/attempts/{first}").json()["asked_before"] == []


def test_at_the_act_the_second_stays_the_second(cast: Cast, caller: Any) -> None:
    open_with(cast, RECOGNISE)
    attempts = [UUID(again(caller, number).json()["id"]) for number in (1, 2)]
    make_policy(cast, rules=ASKED_TWICE)
    executor = cast.api("attempts:execute")
    answers = [executor.post(f"/api/v1/attempts/{one}/lease", {}, format="json") for one in attempts]
    assert [answer.status_code for answer in answers] == [200, 409]
    with every_tenant():
        assert all(decision_replay(row=row).agrees for row in EnforcementDecision.objects.exclude(act=""))


def test_what_a_person_authorized_out_of_quarantine_is_not_asked_twice(cast: Cast, caller: Any) -> None:
    open_with(cast, REFUSES)
    first = again(caller, 1).json()["id"]
    executor = cast.api("attempts:execute")
    token = executor.post(f"/api/v1/attempts/{first}/lease", {}, format="json").json()["lease_token"]
    report = {"lease_token": token, "category": "adapter_failure", "retryable": False}
    assert executor.post(f"/api/v1/attempts/{first}/fail", report, format="json").status_code == 200
    alice = cast.session(cast.second_operator)  # Alice is responsible for the service
    (case,) = alice.get("/api/v1/quarantine-cases").json()["results"]
    finding = {"finding": "did_not_happen", "evidence_ref": "incident-17"}
    answer = alice.post(f"/api/v1/quarantine-cases/{case['id']}/authorize-retry", finding, format="json")
    assert answer.status_code == 201, answer.content


# --- exact under load ------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_many_that_ask_at_once_exactly_one_is_the_first(cast: Cast, caller: Any) -> None:
    open_with(cast, REFUSES)
    answers = together(16, lambda number: again(caller, number + 1).status_code)
    assert Counter(answers) == {201: 1, 403: 15}
    with every_tenant():
        assert sorted(EffectAsk.objects.values_list("number", flat=True)) == list(range(1, 17))
        assert Attempt.objects.filter(state="approved-for-execution").count() == 1


def test_the_database_refuses_two_that_are_both_the_first(cast: Cast, caller: Any) -> None:
    open_with(cast, RECOGNISE)
    again(caller, 1)
    other = UUID(again(caller, 2, target_ref="case-0002").json()["id"])
    with every_tenant():
        row = EffectAsk.objects.get(attempt_id=other)
        first = EffectAsk.objects.exclude(attempt_id=other).get()
        row.effect_sha256, row._state.adding, row.id = first.effect_sha256, True, UUID(int=1)
        with pytest.raises(IntegrityError), transaction.atomic():
            row.save(force_insert=True)


def test_a_second_hold_before_the_act_is_released_by_the_tier_of_the_contract(cast: Cast, caller: Any) -> None:
    open_with(cast, HOLDS)
    again(caller, 1)
    second = again(caller, 2).json()
    with every_tenant():
        review = Review.objects.get(id=second["review"]["id"])
    assert do(cast.session(cast.reviewer), review, "approve").status_code == 403
    assert do(cast.session(cast.person("quentin", "reviewer:sa_qa")), review, "approve").status_code == 200
    leased = cast.api("attempts:execute").post(f"/api/v1/attempts/{second['id']}/lease", {}, format="json")
    assert leased.status_code == 200
