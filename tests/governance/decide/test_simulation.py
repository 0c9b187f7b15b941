"""Simulation: what a draft would have decided, over the organization's own record, in bounded memory."""

import gc
import io
import json
import time
import tracemalloc
from typing import Any

import psutil
import pytest
from django.core.management import CommandError, call_command

from bench.record import record
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.rules import decision_document, evaluate
from governance.enforcement.services import stored_environment
from governance.ledger.rules.entry import canonical_sha256
from governance.policies.models import Policy
from governance.policies.services import PROGRESS_EVERY, DecisionChange, DecisionTally, policy_simulate
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import intake, problem
from tests.governance.decide.volume import copies
from tests.governance.support import row_counts
from tests.governed import ALLOW, DENY, HOLD, make_policy, open_contract

URL = "/api/v1/policies"
NDJSON = "application/x-ndjson"
MIXED = [
    {"id": "high", "when": 'action.risk_tier == "high"', "verdict": "deny", "reason_code": "policy_denied"},
    {"id": "medium", "when": 'action.risk_tier == "medium"'} | {k: v for k, v in HOLD[0].items() if k not in "id when"},
    {"id": "rest", "when": "true", "verdict": "allow"},
]


def simulate(client: Any, policy: Policy, last: int = 1000, **headers: Any) -> Any:
    return client.post(f"{URL}/{policy.id}/simulate", {"last": last}, **headers)


def lines_of(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


@pytest.fixture
def recorded(cast: Cast, caller: Any) -> list[str]:
    """Six decisions, all allowed: three low, two medium and one high risk; their ids, newest first."""
    open_contract(cast)
    ids = []
    for number, tier in enumerate(["low", "low", "medium", "high", "medium", "low"]):
        answer = intake(caller, key=f"key-0000000{number}", action={"risk_tier": tier})
        assert answer.status_code == 201, answer.content
        ids.append(answer.json()["decision_id"])
    return ids[::-1]


def test_a_simulation_lists_what_would_change_by_move_and_rule(cast: Cast, operator: Any, recorded: list[str]) -> None:
    draft = make_policy(cast, rules=MIXED, publish=False)
    before = row_counts()
    answer = simulate(operator, draft).json()
    assert (answer["decided"], answer["changed"], answer["unreadable"]) == (6, 3, 0)
    assert answer["by_move"] == {"allow -> deny": 1, "allow -> needs_approval": 2}
    assert answer["by_rule"] == {"high": 1, "medium": 2}
    assert [change["decision_id"] for change in answer["changes"]] == [recorded[1], recorded[2], recorded[3]]
    assert answer["changes"][1] == {
        "decision_id": recorded[2],
        "before": "allow",
        "after": "deny",
        "rule_before": "all",
        "rule_after": "high",
        "reason_code": "policy_denied",
        "loosens": False,
    }
    assert row_counts() == before


def test_the_same_rules_change_nothing(cast: Cast, operator: Any, recorded: list[str]) -> None:
    answer = simulate(operator, make_policy(cast, rules=ALLOW, publish=False)).json()
    assert (answer["decided"], answer["changed"], answer["changes"]) == (6, 0, [])


def test_only_the_last_so_many_are_decided_again(cast: Cast, operator: Any, recorded: list[str]) -> None:
    answer = simulate(operator, make_policy(cast, rules=MIXED, publish=False), last=3).json()
    assert (answer["decided"], answer["by_move"]) == (3, {"allow -> deny": 1, "allow -> needs_approval": 1})


def test_what_another_evaluator_denied_stays_denied(cast: Cast, operator: Any, caller: Any) -> None:
    open_contract(cast, rules=DENY)
    assert intake(caller, metadata={"note": "john.doe@example.com"}).status_code == 422
    assert intake(caller, key="key-00000002").status_code == 403
    answer = simulate(operator, make_policy(cast, rules=ALLOW, publish=False)).json()
    assert (answer["decided"], answer["loosened"], answer["by_move"]) == (2, 1, {"deny -> allow": 1})


def test_who_must_release_it_is_part_of_what_would_change(cast: Cast, operator: Any, caller: Any) -> None:
    open_contract(cast, rules=HOLD)
    assert intake(caller).status_code == 202
    same = make_policy(cast, rules=HOLD, publish=False)
    assert simulate(operator, same).json()["changed"] == 0
    held = {name: value for name, value in HOLD[0].items() if name not in {"tier", "approvals_required"}}
    buckets = [{"tier": "customer_clinician"}, {"tier": "sa_qa"}]
    more = make_policy(cast, rules=[held | {"buckets": buckets}], publish=False)
    answer = simulate(operator, more).json()
    moves = {"needs_approval -> needs_approval": 1}
    assert (answer["changed"], answer["loosened"], answer["by_move"]) == (1, 0, moves)


def test_a_policy_that_ran_too_long_then_does_not_count_against_the_draft(
    cast: Cast, operator: Any, recorded: list[str]
) -> None:
    with every_tenant():
        row = EnforcementDecision.objects.get(id=recorded[0])
        facts = row.environment | {"failures": {"policy": "timeout"}}
        row.environment = facts
        decision = decision_document(evaluate(row.request, stored_environment(row)))
        assert (decision["verdict"], decision["reason_code"]) == ("deny", "enforcement_exception")
        row.pk, row._state.adding, row.environment_sha256 = uuid7(), True, canonical_sha256(facts)
        row.verdict, row.reason_code, row.rule_id = "deny", "enforcement_exception", ""
        row.results = decision["results"]
        row.save()
    answer = simulate(operator, make_policy(cast, rules=ALLOW, publish=False), last=1).json()
    assert answer["by_move"] == {"deny -> allow": 1}


def test_the_stream_shows_changes_progress_and_a_summary(
    cast: Cast, operator: Any, recorded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("governance.policies.services.PROGRESS_EVERY", 2)
    answer = simulate(operator, make_policy(cast, rules=MIXED, publish=False), HTTP_ACCEPT=NDJSON)
    assert (answer.status_code, answer["Content-Type"], answer["X-Accel-Buffering"]) == (200, NDJSON, "no")
    found = lines_of(answer)
    assert [line["type"] for line in found if line["type"] != "progress"] == ["change"] * 3 + ["summary"]
    assert [line["decided"] for line in found if line["type"] == "progress"][:3] == [2, 4, 6]
    assert found[-1] == {
        "type": "summary",
        "decided": 6,
        "changed": 3,
        "unreadable": 0,
        "loosened": 0,
        "by_move": {"allow -> deny": 1, "allow -> needs_approval": 2},
        "by_rule": {"high": 1, "medium": 2},
    }


@pytest.mark.parametrize("accept", ["application/json", NDJSON])
def test_a_draft_that_cannot_be_read_is_400_before_anything_is_streamed(
    cast: Cast, operator: Any, recorded: list[str], accept: str
) -> None:
    broken = [{"id": "low", "when": "action.risk_tier ==", "verdict": "allow"}]
    answer = simulate(operator, make_policy(cast, rules=broken, publish=False), HTTP_ACCEPT=accept)
    assert problem(answer) == (400, "policy-invalid")
    assert "^" in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize("last", [0, -1, 1_000_001, "many", None])
def test_the_number_must_be_one(cast: Cast, operator: Any, last: Any) -> None:
    answer = operator.post(f"{URL}/{make_policy(cast, publish=False).id}/simulate", {"last": last})
    assert problem(answer) == (400, "invalid-input")


@pytest.mark.parametrize("accept", ["application/json", NDJSON])
def test_only_the_policys_own_organization_is_simulated_even_for_who_operates_two(
    cast: Cast, operator: Any, recorded: list[str], accept: str
) -> None:
    other = Cast()
    other.organization = cast.other  # type: ignore[misc]
    other.operator = cast.other_operator  # type: ignore[misc]
    open_contract(other)
    assert intake(cast.api("attempts:create", organization=cast.other)).status_code == 201
    cast.person("alice", "operator", organization=cast.other)
    draft = make_policy(cast, rules=DENY, publish=False)
    answer = simulate(operator, draft, HTTP_ACCEPT=accept)
    decided = (lines_of(answer)[-1] if accept == NDJSON else answer.json())["decided"]
    assert decided == len(recorded)
    out = io.StringIO()
    call_command("simulate_policy", str(draft.id), "--json", stdout=out)
    assert json.loads(out.getvalue().splitlines()[-1])["decided"] == len(recorded)


def test_the_command_lists_changes_and_the_tally(cast: Cast, recorded: list[str]) -> None:
    draft = make_policy(cast, rules=MIXED, publish=False)
    out = io.StringIO()
    call_command("simulate_policy", str(draft.id), "--last", "3", stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0] == f"{recorded[1]}  allow -> needs_approval  by medium"
    assert json.loads("\n".join(lines[2:]))["decided"] == 3


def test_the_command_refuses_a_broken_draft_with_the_place(cast: Cast) -> None:
    broken = [{"id": "low", "when": "action.risk_tier ==", "verdict": "allow"}]
    draft = make_policy(cast, rules=broken, publish=False)
    with pytest.raises(CommandError, match=r"(?s)/rules/0/when.*\^") as refusal:
        call_command("simulate_policy", str(draft.id), stdout=io.StringIO())
    assert refusal.value.returncode == 1
    with pytest.raises(CommandError):
        call_command("simulate_policy", "01900000-0000-7000-8000-000000000000", stdout=io.StringIO())


def measured(policy: Policy, count: int) -> tuple[list[int], DecisionTally, float]:
    """Progress, the final tally and the seconds it took; changes are looked at and let go."""
    progress, tally, changes, started = [], DecisionTally(), 0, time.perf_counter()
    for item in policy_simulate(policy=policy, limit=count):
        if isinstance(item, DecisionChange):
            changes += 1
            continue
        tally = item
        progress.append(item.decided)
    assert changes == tally.changed
    return progress, tally, time.perf_counter() - started


def many(cast: Cast, caller: Any, count: int) -> Policy:
    open_contract(cast)
    first = intake(caller).json()["decision_id"]
    copies(of=first, count=count - 1)
    with every_tenant():
        assert EnforcementDecision.objects.count() == count
    return make_policy(cast, rules=HOLD, publish=False)


@pytest.mark.tampers  # copies of one decision: replaying each of them shows nothing new
def test_two_thousand_decisions_are_simulated_with_progress_and_little_memory(cast: Cast, caller: Any) -> None:
    draft = many(cast, caller, 2000)
    with every_tenant():
        measured(draft, PROGRESS_EVERY)  # caches filled
        gc.collect()
        tracemalloc.start()
        progress, tally, _ = measured(draft, 2000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert progress == [500, 1000, 1500, 2000, 2000]
    assert (tally.decided, tally.changed) == (2000, 2000)
    assert peak < 30_000_000, peak


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_hundred_thousand_decisions_are_simulated_in_bounded_memory(cast: Cast, caller: Any) -> None:
    draft = many(cast, caller, 100_000)
    process = psutil.Process()
    with every_tenant():
        measured(draft, PROGRESS_EVERY)
        gc.collect()
        before = process.memory_info().rss
        progress, tally, seconds = measured(draft, 100_000)
        grown = process.memory_info().rss - before
    figures = {"decisions": 100_000, "seconds": round(seconds, 1), "rss_growth_mb": round(grown / 1e6, 1)}
    record(name="soak policy simulation", figures=figures)
    assert progress[:200] == list(range(PROGRESS_EVERY, 100_001, PROGRESS_EVERY))
    assert (tally.decided, tally.changed) == (100_000, 100_000)
    assert grown < 100_000_000
