"""Settings of attempt_identity_envelope and idempotency_key_policy, each changed alone."""

from datetime import timedelta
from typing import Any

import pytest

from governance.contracts.rules.documents import ENVELOPE_FIELDS, default_documents
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governed import AT, HOLD
from tests.leaves.support import ask, attempt_of, changed, inner, opened, said


def test_a_required_patient_context_that_is_missing_denies_and_one_that_is_not_required_does_not(
    cast: Cast, caller: Any
) -> None:
    opened(cast, with_patient())
    assert said(ask(caller, patient_context_ref=None)) == (403, "envelope_incomplete")
    opened(cast, default_documents(), slug="no-patient")
    answer = ask(caller, 2, slug="no-patient", patient_context_ref=None)
    assert answer.status_code == 201
    assert caller_sees(cast, answer)["patient_context"] == "absent"


def test_where_a_patient_context_is_not_applicable_none_may_be_given_and_every_attempt_says_so(
    cast: Cast, caller: Any
) -> None:
    opened(cast, changed("attempt_identity_envelope", patient_context="not_applicable"))
    refused = ask(caller)
    assert said(refused) == (403, "envelope_incomplete")
    (error,) = refused.json()["errors"]
    assert (error["pointer"], error["rule"], error["remedy"]) == (
        "/patient_context_ref",
        "not_applicable",
        "Leave it out.",
    )
    admitted = ask(caller, 2, patient_context_ref=None)
    assert admitted.status_code == 201
    assert caller_sees(cast, admitted)["patient_context"] == "not_applicable"


def with_patient() -> dict[str, Any]:
    return changed("attempt_identity_envelope", required=list(ENVELOPE_FIELDS))


def caller_sees(cast: Cast, answer: Any) -> Any:
    return cast.session(cast.operator).get(f"/api/v1/attempts/{answer.json()['id']}").json()


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        ("patient_context_ref", {"format": "uuid", "max_length": 128}),
        ("patient_context_ref", {"format": "opaque_ref", "max_length": 7}),
        ("request_trace_id", {"format": "urn", "max_length": 128}),
        ("request_trace_id", {"format": "opaque_ref", "max_length": 31}),
    ],
    ids=["context-format", "context-length", "trace-format", "trace-length"],
)
def test_a_reference_of_another_shape_denies(cast: Cast, caller: Any, field: str, shape: dict[str, Any]) -> None:
    opened(cast, inner("attempt_identity_envelope", "formats", **{field: shape}))
    answer = ask(caller)
    assert said(answer) == (403, "envelope_incomplete")
    results = {row["evaluator"]: row for row in attempt_of(answer).decision.results}
    assert results["envelope"]["inputs"]["malformed"] == [field]


@pytest.mark.parametrize("mode", ["active", "client_driven", "shadow"])
def test_a_runtime_mode_that_is_not_listed_denies(cast: Cast, caller: Any, mode: str) -> None:
    others = [name for name in ("active", "client_driven", "shadow") if name != mode]
    opened(cast, changed("attempt_identity_envelope", runtime_modes=others))
    assert said(ask(caller, runtime_mode=mode)) == (403, "runtime_mode_not_allowed")


def test_where_votes_are_signed_a_vote_without_a_signature_decides_nothing(cast: Cast, caller: Any) -> None:
    opened(cast, changed("attempt_identity_envelope", signature="passkey"), rules=HOLD)
    held = ask(caller).json()
    vote = {"action_digest": held["action_digest"]}
    answer = cast.session(cast.reviewer).post(f"/api/v1/reviews/{held['review']['id']}/approve", vote, format="json")
    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[1]) == (403, "signature-needed")


def test_a_key_that_is_not_required_may_be_missing(cast: Cast, caller: Any) -> None:
    documents = changed("idempotency_key_policy", required=False, required_headers=[])
    documents["attempt_identity_envelope"]["required"].remove("idempotency_key")
    opened(cast, documents, effect="none")
    assert ask(caller, key="").status_code == 201


@pytest.mark.parametrize(
    "shape", [{"min_length": 13}, {"max_length": 11}, {"charset": "hex"}], ids=["min_length", "max_length", "charset"]
)
def test_a_key_of_another_shape_is_refused(cast: Cast, caller: Any, shape: dict[str, Any]) -> None:
    opened(cast, inner("idempotency_key_policy", "key", **shape))
    answer = ask(caller)
    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[1]) == (400, "idempotency-key-invalid")


def test_where_keys_are_each_callers_own_two_callers_may_use_the_same(cast: Cast, caller: Any) -> None:
    opened(cast, changed("idempotency_key_policy", scope="caller"))
    first, second = ask(caller, key="key-00000001"), ask(cast.api("attempts:create"), 2, key="key-00000001")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] != second.json()["id"]


def test_a_key_ends_after_its_time(cast: Cast, caller: Any, time_machine: Any) -> None:
    opened(cast, changed("idempotency_key_policy", ttl_seconds=60))
    time_machine.move_to(AT)
    assert ask(caller).status_code == 201
    time_machine.move_to(AT + timedelta(seconds=61))
    assert ask(caller).status_code == 410


@pytest.mark.parametrize("header", ["traceparent", "X-Request-ID"])
def test_a_request_without_a_required_header_is_refused(cast: Cast, caller: Any, header: str) -> None:
    opened(cast, changed("idempotency_key_policy", required_headers=["Idempotency-Key", header]))
    answer = ask(caller)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, f"/headers/{header}")
    value = f"00-{'a' * 32}-{'b' * 16}-01" if header == "traceparent" else "request-1"
    assert ask(caller, **{f"HTTP_{header.upper().replace('-', '_')}": value}).status_code == 201
    with every_tenant():
        assert attempt_of(ask(caller, **{f"HTTP_{header.upper().replace('-', '_')}": value})).tries == 0
