"""Loosening is found in every case in which some request comes out weaker; in doubt it is assumed."""

from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.conditions import ConditionError, EvaluationScope, compile_condition
from governance.policies.rules.loosening import rules_loosening, weaker

pytestmark = pytest.mark.unit

CONDITIONS = (
    "true",
    "false",
    'action.risk_tier == "low"',
    'action.risk_tier == "high"',
    "metadata.amount > 5",
    "metadata.amount > 50",
    'metadata.amount > 5 || action.risk_tier == "low"',
    "sample(0.5)",
)
# `amount` is missing in some: a condition that reads it fails then, and the request is denied.
REQUESTS = [
    {"action": {"risk_tier": tier}, "metadata": {} if amount is None else {"amount": amount}}
    for tier, amount in product(("low", "medium", "high"), (None, 1, 10, 100))
]
DENIED = {"verdict": "deny"}


def hold(tier: str = "clinician", people: int = 1, seconds: int = 3600, **more: Any) -> dict[str, Any]:
    approval = {"tier": tier, "approvals_required": people, "expires_in_seconds": seconds}
    return {"id": "hold", "when": "true", "verdict": "needs_approval", **approval, **more}


def rule(verdict: str, when: str = "true", id_: str = "one") -> dict[str, Any]:
    return {"id": id_, "when": when, "verdict": verdict}


def outcome(rules: list[dict[str, Any]], request: dict[str, Any], *, version: int) -> dict[str, Any]:
    """What the evaluator does, written again: the first match decides, an error denies, no match denies."""
    scope = EvaluationScope(now=datetime(2026, 1, 1, tzinfo=UTC), case_id="case", definition_id=f"policy:{version}")
    try:
        for one in rules:
            if compile_condition(one["when"]).evaluate(request, scope=scope):
                return one
    except ConditionError:
        return DENIED
    return DENIED


def numbered(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one | {"id": f"rule-{number}"} for number, one in enumerate(rules)]


whens = st.sampled_from(CONDITIONS)
held = st.builds(
    hold, tier=st.sampled_from(["clinician", "lead"]), people=st.integers(1, 3), seconds=st.sampled_from([60, 3600])
)
parts = st.lists(
    st.fixed_dictionaries({"tier": st.sampled_from(["clinician", "lead"]), "approvals_required": st.integers(1, 2)}),
    min_size=1,
    max_size=2,
    unique_by=lambda part: part["tier"],
)
in_buckets = st.builds(
    lambda buckets, seconds: {"verdict": "needs_approval", "buckets": buckets, "expires_in_seconds": seconds},
    parts,
    st.sampled_from([60, 3600]),
)
ends = st.one_of(st.sampled_from([{"verdict": "allow"}, {"verdict": "deny"}]), held, in_buckets)
rule_lists = st.lists(st.builds(lambda end, when: end | {"when": when}, ends, whens), max_size=5).map(numbered)


@st.composite
def edited(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A list and an edit of it: rules added, removed, moved or changed. Most real changes are such edits."""
    before = draw(rule_lists)
    after = [one for one in before if draw(st.integers(0, 4))]
    for _ in range(draw(st.integers(0, 2))):
        after.insert(draw(st.integers(0, len(after))), draw(ends) | {"when": draw(whens)})
    if after and draw(st.booleans()):
        place = draw(st.integers(0, len(after) - 1))
        after[place] = {"when": after[place]["when"]} | draw(ends)
    return before, numbered(after)


@given(st.one_of(edited(), st.tuples(rule_lists, rule_lists)))
def test_whatever_comes_out_weaker_is_found(lists: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    before, after = lists
    found = rules_loosening(before, after)
    for request in REQUESTS:
        was, now = outcome(before, request, version=1), outcome(after, request, version=2)
        if weaker(was, now):
            assert now["id"] in found


@given(rule_lists)
def test_the_same_rules_loosen_nothing_unless_they_draw_a_sample(rules: list[dict[str, Any]]) -> None:
    stable = [one for one in rules if "sample" not in one["when"]]
    assert rules_loosening(stable, stable) == {}


LOW = 'action.risk_tier == "low"'
TIGHTER = [
    ([rule("allow")], [hold()]),
    ([rule("allow")], [rule("deny")]),
    ([hold()], [hold(people=2)]),
    ([hold(seconds=3600)], [hold(seconds=60)]),
    ([hold()], [rule("deny", LOW), hold()]),
    ([hold()], [hold(buckets=[{"tier": t, "approvals_required": 1} for t in ("clinician", "lead")])]),
    ([rule("deny")], []),
    ([], [rule("deny")]),
]
LOOSER = [
    ([], [rule("allow")]),
    ([], [hold()]),
    ([hold()], [rule("allow", LOW), hold()]),
    ([rule("deny", LOW), hold()], [hold()]),
    ([hold(people=2)], [hold()]),
    ([hold(seconds=60)], [hold(seconds=3600)]),
    ([hold(tier="lead")], [hold(tier="clinician")]),
    ([rule("deny", LOW), rule("allow")], [rule("allow"), rule("deny", LOW)]),
    ([rule("allow", "sample(0.1)"), hold()], [rule("allow", "sample(0.1)"), hold()]),
]


@pytest.mark.parametrize(("before", "after"), TIGHTER)
def test_what_only_tightens_is_not_marked(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    assert rules_loosening(before, numbered(after)) == {}


@pytest.mark.parametrize(("before", "after"), LOOSER)
def test_what_loosens_is_marked_with_the_rule(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    assert rules_loosening(before, numbered(after))
