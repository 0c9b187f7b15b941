"""What the answer of a module over HTTP means, and its silence; and what simulated modules answer."""

import json
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from governance.boundary.rules.schema import compile_schema
from sdk.simulator.answers import replies
from sdk.simulator.behaviour import Behaviour
from sdk.simulator.values import satisfying
from tests.workflows.modules.support import REFUND, SCORE, TEXT, closed
from workflows.kinds.base import bound_kind, output_problems
from workflows.kinds.registry import kinds
from workflows.modules.rules.answers import CallResult, result_of_answer, result_of_silence

pytestmark = pytest.mark.unit
EFFECTS = ("none", "idempotent", "once")


def answer(status: int, said: Any = None, *, effect: str = "once") -> CallResult:
    body = said if isinstance(said, bytes) or said is None else json.dumps(said).encode()
    return result_of_answer(effect=effect, status=status, body=body)


def told(result: CallResult) -> Any:
    return result.word, result.payload


@pytest.mark.parametrize("effect", EFFECTS)
def test_success_is_what_the_module_says(effect: str) -> None:
    assert told(answer(200, {"a": 1}, effect=effect)) == ("completed", {"result": {"a": 1}})
    assert told(answer(204, b"", effect=effect)) == ("completed", {"result": {}})
    assert told(answer(202, b"whatever", effect=effect)) == ("accepted", None)


@pytest.mark.parametrize("body", [None, b"nonsense", b"[]", b'"text"', b'{"a": NaN}', b"\xff", b"[" * 100_000])
def test_a_success_that_cannot_be_read_is_drift_and_no_failure(body: bytes | None) -> None:
    assert told(answer(200, body)) == ("drifted", None)


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("status", [301, 400, 404, 409, 429, 500, 503])
def test_a_problem_that_says_whether_to_retry_is_believed(effect: str, status: int) -> None:
    for retryable in (True, False):
        said = answer(status, {"reason_code": "busy", "retryable": retryable}, effect=effect)
        assert told(said) == ("failed", {"reason_code": "busy", "retryable": retryable})


def test_a_code_that_is_none_is_not_repeated() -> None:
    said = answer(409, {"reason_code": "Amina's card", "retryable": False})
    assert told(said) == ("failed", {"reason_code": "adapter_failed", "retryable": False})


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_broken_server_proves_nothing_about_what_happens_once(status: int) -> None:
    assert answer(status, b"<html>").word == "unknown"
    assert told(answer(status, b"", effect="idempotent")) == (
        "failed",
        {"reason_code": "adapter_failed", "retryable": True},
    )


def test_a_plain_refusal_is_final() -> None:
    assert told(answer(404, b"")) == ("failed", {"reason_code": "adapter_failed", "retryable": False})


def test_silence_after_sending_is_unknown_and_before_it_a_failure() -> None:
    for effect in EFFECTS:
        unsent = result_of_silence(effect=effect, sent=False, why="no_connection")
        assert told(unsent) == ("failed", {"reason_code": "adapter_failed", "retryable": True})
        refused = result_of_silence(effect=effect, sent=False, why="address_refused")
        assert told(refused) == ("failed", {"reason_code": "adapter_failed", "retryable": False})
    assert [result_of_silence(effect=one, sent=True, why="timeout").word for one in EFFECTS] == [
        "failed",
        "unknown",
        "unknown",
    ]


@given(st.sampled_from(EFFECTS), st.integers(100, 599), st.one_of(st.none(), st.binary(max_size=60)))
def test_no_answer_breaks_it_and_nothing_that_happens_once_is_called_retryable_by_a_guess(
    effect: str, status: int, body: bytes | None
) -> None:
    result = result_of_answer(effect=effect, status=status, body=body)
    assert result.word in {"completed", "failed", "accepted", "drifted", "unknown"}
    if effect == "once" and status >= 500 and result.payload is not None:
        assert b"retryable" in (body or b"") or b"reason_code" in (body or b"")


# -- the kind of the step ---------------------------------------------------------------------------------------------
def test_a_call_is_bound_to_what_its_params_name() -> None:
    params = {"module": "fraud-score", "operation": "score", "returns": SCORE["returns"]}
    kind = bound_kind(kinds()["call_service"], params)
    assert kind.request is not None
    assert (kind.request.name, kind.operation, kind.target) == (
        "module.fraud-score.score.requested",
        "fraud-score.score",
        "fraud-score",
    )
    assert (kind.effect, kind.is_governed, kind.call) == ("once", True, None)
    assert output_problems(kind, {"score": 0.5}) == []
    assert output_problems(kind, {"score": 2}) != []


def test_a_pinned_call_has_the_effect_and_the_way_of_its_operation() -> None:
    pinned = {"version": 3, "transport": "http", "effect": "none", "method": "GET", "path": "/score"}
    params = {"module": "fraud-score", "operation": "score", "returns": SCORE["returns"], "pinned": pinned}
    kind = bound_kind(kinds()["call_service"], params)
    assert not kind.is_governed
    assert kind.call == {
        "module": "fraud-score",
        "operation": "score",
        "version": 3,
        "method": "GET",
        "path": "/score",
        "effect": "none",
    }


@pytest.mark.parametrize(
    "params", [{}, {"module": "a"}, {"module": "A b", "operation": "x"}, {"module": 1, "operation": 2}]
)
def test_params_that_name_nothing_leave_the_kind_as_it_is(params: dict[str, Any]) -> None:
    assert bound_kind(kinds()["call_service"], params) is kinds()["call_service"]


# -- what simulated modules answer ------------------------------------------------------------------------------------
SCHEMAS = [
    REFUND["returns"],
    SCORE["returns"],
    closed(
        code={"type": "string", "pattern": "^[A-Z]{3}-(in|out)[0-9]+$"}, at={"type": "string", "format": "date-time"}
    ),
    closed(id={"type": "string", "format": "uuid"}, tags={"type": "array", "items": TEXT, "minItems": 2}),
    closed(kind={"enum": ["a", "b"]}, fixed={"const": 7}, none={"type": "null"}, flag={"type": "boolean"}),
    closed(whole={"type": "integer", "minimum": 3, "maximum": 4}, step={"type": "number", "multipleOf": 5}),
]


@given(st.sampled_from(SCHEMAS), st.integers(), st.booleans())
def test_a_simulated_answer_satisfies_the_schema(schema: dict[str, Any], seed: int, high: bool) -> None:
    assert compile_schema(schema).is_valid(satisfying(schema, Random(seed), high=high))


def test_a_request_to_a_registered_module_is_answered_the_same_way_every_time() -> None:
    request = {
        "event_id": str(uuid4()),
        "event_type": "module.payments.refund.requested",
        "correlation_id": str(uuid4()),
        "case_id": str(uuid4()),
        "org_id": str(uuid4()),
        "product_id": str(uuid4()),
        "payload": {"module": "payments", "operation": "refund", "send": {}},
    }
    known, at = {request["event_type"]: REFUND["returns"]}, timezone.now()
    first, again = (replies(request, Behaviour(), at=at, returns=known)[0].envelope for _ in range(2))
    assert first == again
    assert first["event_type"] == "module.payments.refund.completed"
    assert compile_schema(REFUND["returns"]).is_valid(first["payload"]["result"])
    failed = replies(request, Behaviour(failure_rate=1), at=at, returns=known)[0].envelope
    assert failed["event_type"] == "module.payments.refund.failed"
    assert replies(request, Behaviour(), at=at) == []
