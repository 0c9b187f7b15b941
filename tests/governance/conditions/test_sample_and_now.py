"""The two helpers that look outside the context: what they see is handed in, so an answer can be repeated."""

import math
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from governance.conditions import (
    ConditionLimitError,
    ConditionScopeError,
    ConditionTimeError,
    EvaluationScope,
    compile_condition,
)
from governance.conditions.scope import sample_number
from tests.governance.conditions.support import NOW, evaluate

pytestmark = pytest.mark.unit

# The same three vectors stand in docs/conditions.md.
VECTORS = [
    ("def-1", "case-1", 8754869646468353217, "0.47", "0.48"),
    (
        "0197a3c2-5b1e-7c40-9d3a-2f6b8e1a4c01",
        "0197a3c2-6f00-7a11-8b22-3c4d5e6f7081",
        5285040949681218032,
        "0.28",
        "0.29",
    ),
    ("définition", "案件-7", 767019452666244077, "0.04", "0.05"),
]


@pytest.mark.parametrize(("definition_id", "case_id", "number", "below", "above"), VECTORS)
def test_a_sample_can_be_reproduced_by_another_program(
    definition_id: str, case_id: str, number: int, below: str, above: str
) -> None:
    scope = EvaluationScope(now=NOW, case_id=case_id, definition_id=definition_id)
    assert sample_number(definition_id=definition_id, case_id=case_id) == number
    assert evaluate(f"sample({above})", scope=scope) is True
    assert evaluate(f"sample({below})", scope=scope) is False


@pytest.mark.parametrize(("definition_id", "case_id", "number", "below", "above"), VECTORS)
def test_a_sample_turns_exactly_at_its_number(
    definition_id: str, case_id: str, number: int, below: str, above: str
) -> None:
    scope = EvaluationScope(now=NOW, case_id=case_id, definition_id=definition_id)
    middle = number / 2**64
    shares = [math.nextafter(middle, 0), middle, math.nextafter(middle, 1)]
    answers = [evaluate("sample(a.share)", {"a": {"share": share}}, scope=scope) for share in shares]
    assert answers == [Fraction(number, 2**64) < Fraction(share) for share in shares]
    assert answers[0] is False
    assert answers[2] is True


def test_the_reference_page_shows_the_same_vectors() -> None:
    page = (Path(__file__).parents[3] / "docs" / "conditions.md").read_text(encoding="utf-8")
    for definition_id, case_id, number, _, _ in VECTORS:
        assert f"| `{definition_id}` | `{case_id}` | `{number:016x}` | {number} |" in page


def test_a_sample_is_the_same_in_every_call_and_at_every_time() -> None:
    condition = compile_condition("sample(0.5) == sample(0.5) && sample(0.5)")
    for hours in range(5):
        scope = EvaluationScope(now=NOW + timedelta(hours=hours), case_id="case-1", definition_id="def-1")
        assert condition.evaluate({}, scope=scope) is True


def test_all_cases_are_sampled_with_one_and_none_with_zero() -> None:
    for number in range(200):
        scope = EvaluationScope(now=NOW, case_id=f"case-{number}", definition_id="def-1")
        assert evaluate("sample(1) && sample(1.0) && !sample(0) && !sample(0.0)", scope=scope)


def test_a_share_of_the_cases_is_sampled() -> None:
    condition = compile_condition("sample(0.1)")
    scopes = (EvaluationScope(now=NOW, case_id=f"case-{n}", definition_id="def-1") for n in range(2000))
    assert 150 < sum(condition.evaluate({}, scope=scope) for scope in scopes) < 250


def test_another_definition_draws_other_cases() -> None:
    condition = compile_condition("sample(0.5)")

    def drawn(definition_id: str) -> list[bool]:
        return [
            condition.evaluate({}, scope=EvaluationScope(now=NOW, case_id=f"case-{n}", definition_id=definition_id))
            for n in range(64)
        ]

    assert drawn("def-1") != drawn("def-2")


@pytest.mark.parametrize("share", [-0.1, 1.1, 2, 10**400, -1])
def test_a_share_outside_zero_and_one_is_refused(share: float) -> None:
    with pytest.raises(ConditionLimitError):
        evaluate("sample(a.share)", {"a": {"share": share}})


@pytest.mark.parametrize("source", ["sample(1.1)", "true || sample(10)", "sample(-1)"])
def test_an_impossible_share_in_the_source_is_refused_before_anything_runs(source: str) -> None:
    with pytest.raises(ConditionLimitError, match="from 0 to 1"):
        compile_condition(source)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("now() == '2026-05-04T12:00:00Z'", True),
        ("now() == '2026-05-04T14:00:00+02:00'", True),
        ("'2026-05-04T12:00:00.000+00:00' == now()", True),
        ("now() < '2026-05-04T12:00:00.000001Z'", True),
        ("now() > '2026-05-04T13:59:59+02:00'", True),
        ("now() <= a.due", True),
        ("a.due < now()", False),
        ("now() == now()", True),
        ("coalesce(a.gone, now()) >= now()", True),
        ("coalesce(a.due, now()) > now()", True),
    ],
)
def test_now_is_compared_as_a_moment_whatever_the_offset(source: str, answer: bool) -> None:
    # 14:00 in UTC, two hours after now.
    assert evaluate(source, {"a": {"due": "2026-05-04T23:00:00+09:00"}}) is answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-05-04",
        "2026-05-04T12:00:00",
        "2026-05-04T12:00Z",
        "2026-05-04 12:00:00Z",
        "2026-05-04T12:00:00z",
        "2026-13-04T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-05-04T24:00:01Z",
        "2026-05-04T12:00:60Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-05-04T12:00:00+99:99",
        "２０２６-05-04T12:00:00Z",
        "2026-05-04T12:00:00Z\n",
        "2" * 5000,
    ],
)
def test_a_text_that_is_no_full_timestamp_is_not_compared_with_now(text: str) -> None:
    for symbol in ("<", "==", "!="):
        with pytest.raises(ConditionTimeError) as caught:
            evaluate(f"now() {symbol} a.x", {"a": {"x": text}})
        assert caught.value.code == "condition_time"


def test_a_datetime_in_the_context_does_not_pass_for_now() -> None:
    with pytest.raises(Exception, match="cannot compare"):
        evaluate("a.x == now()", {"a": {"x": NOW}})


def test_the_scope_keeps_its_moment_in_utc_and_cannot_be_changed() -> None:
    scope = EvaluationScope(
        now=datetime(2026, 5, 4, 14, tzinfo=timezone(timedelta(hours=2))), case_id="c", definition_id="d"
    )
    assert scope.now == NOW
    assert scope.now.tzinfo is UTC
    with pytest.raises(FrozenInstanceError):
        scope.case_id = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    "moment",
    [
        NOW.replace(tzinfo=None),
        "2026-05-04T12:00:00Z",
        None,
        datetime.min.replace(tzinfo=timezone(timedelta(hours=9))),
    ],
)
def test_a_scope_without_a_usable_moment_is_refused(moment: Any) -> None:
    with pytest.raises(ConditionTimeError):
        EvaluationScope(now=moment, case_id="c", definition_id="d")


@pytest.mark.parametrize("identifier", ["", "a\nb", "x" * 201, None, 7, "\ud800", "a\x00b"])
def test_a_scope_without_usable_identifiers_is_refused(identifier: Any) -> None:
    with pytest.raises(ConditionScopeError) as caught:
        EvaluationScope(now=NOW, case_id=identifier, definition_id="d")
    assert caught.value.code == "condition_scope"
    with pytest.raises(ConditionScopeError):
        EvaluationScope(now=NOW, case_id="c", definition_id=identifier)
