"""Intake: every row of the design's table, over HTTP."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from attempts.intake.models import IdempotencyRecord
from attempts.intake.services.rows import answer_kept
from attempts.lifecycle.models import Attempt, AttemptTransition, Slot
from attempts.lifecycle.sql import ALLOWED_FORM
from attempts.reviews.models import Review
from governance.contracts.rules.documents import default_documents
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.services import decision_replay
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governed import AT, DENY, HOLD, open_contract

URL = "/api/v1/execution/close-case/1/attempts"


def body(**changes: Any) -> dict[str, Any]:
    action = {
        "connector": "external",
        "operation": "case.close",
        "target_ref": "case-0001",
        "risk_tier": "low",
        "payload_ref": "payload-0001",
        "payload_sha256": "ab" * 32,
        "fields": ["status"],
    } | changes.pop("action", {})
    return {
        "patient_context_ref": "ctx-0001",
        "runtime_mode": "client_driven",
        "action": action,
        "metadata": {},
    } | changes


def post(client: Any, payload: Any, key: str | None = "key-00000001", url: str = URL, **headers: Any) -> Any:
    if key is not None:
        headers["HTTP_IDEMPOTENCY_KEY"] = key
    return client.post(url, payload, format="json", **headers)


@pytest.fixture
def caller(cast: Cast) -> Any:
    return cast.api("attempts:create")


def test_an_allowed_request_is_201_and_everything_is_on_record(cast: Cast, caller: Any) -> None:
    open_contract(cast)
    answer = post(caller, body())
    assert answer.status_code == 201, answer.content
    assert answer.json()["state"] == "approved-for-execution"
    with every_tenant():
        attempt = Attempt.objects.get(id=answer.json()["id"])
        moves = list(AttemptTransition.objects.filter(attempt=attempt).values_list("from_state", "to_state"))
        actions = [move.action for move in LedgerEntry.objects.get(subject_id=attempt.id).moves]
        assert moves == [("received", "deduplicated"), ("deduplicated", "approved-for-execution")]
        assert actions == ["attempt.received", "attempt.deduplicated", "attempt.approved"]
        assert EnforcementDecision.objects.get(id=attempt.decision_id).verdict == "allow"
        assert Slot.objects.filter(attempt=attempt).count() == 1


def test_a_held_request_is_202_with_its_review(cast: Cast, caller: Any) -> None:
    open_contract(cast, rules=HOLD)
    answer = post(caller, body())
    assert answer.status_code == 202, answer.content
    assert answer.json()["state"] == "review-required"
    assert answer.headers["Retry-After"]
    assert answer.headers["Location"].endswith(answer.json()["id"])
    with every_tenant():
        assert str(Review.objects.get().id) == answer.json()["review"]["id"]


def test_a_denied_request_is_403_and_stored_as_preflight_denied(cast: Cast, caller: Any) -> None:
    open_contract(cast, rules=DENY)
    answer = post(caller, body())
    assert answer.status_code == 403
    assert answer["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"].endswith("/problems/attempt-denied")
    assert problem["reason_code"] == "policy_denied"
    with every_tenant():
        attempt = Attempt.objects.get(id=problem["attempt_id"])
        assert attempt.state == "preflight-denied"
        assert not Slot.objects.exists()


@pytest.mark.parametrize("rules", [None, HOLD, DENY], ids=["allowed", "held", "denied"])
def test_the_same_key_gets_the_first_answer_byte_by_byte(cast: Cast, caller: Any, rules: Any) -> None:
    open_contract(cast, rules=rules)
    first, again = post(caller, body()), post(caller, body())
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Attempt-State" in again.headers
    with every_tenant():
        assert Attempt.objects.count() == 1
        assert LedgerEntry.objects.filter(action="attempt.replayed").count() == 1


def test_an_allowed_answer_is_kept_as_its_form_and_any_other_whole(cast: Cast, caller: Any) -> None:
    """The form gives it again from the attempt's row; a later program that answers more stores it whole."""
    open_contract(cast)
    first = post(caller, body())
    with every_tenant():
        attempt, record = Attempt.objects.get(), IdempotencyRecord.objects.get()
        assert record.body == ALLOWED_FORM
        assert answer_kept(attempt, first.content.decode()) == ALLOWED_FORM
        more = json.dumps(first.json() | {"note": "new"})
        assert answer_kept(attempt, more) == more


def test_the_same_key_for_something_else_is_422_and_names_the_parts(cast: Cast, caller: Any) -> None:
    open_contract(cast)
    post(caller, body())
    answer = post(caller, body(action={"target_ref": "case-0002"}, patient_context_ref="ctx-0002"))
    assert answer.status_code == 422
    assert answer.json()["type"].endswith("/idempotency-conflict")
    assert {error["pointer"] for error in answer.json()["errors"]} == {"/action", "/patient_context_ref"}
    assert "case-0002" not in answer.content.decode()


def test_an_expired_key_is_410_and_nothing_happens_again(cast: Cast, caller: Any, time_machine: Any) -> None:
    open_contract(cast)
    time_machine.move_to(AT)
    post(caller, body())
    time_machine.move_to(AT + timedelta(days=1, seconds=1))
    answer = post(caller, body())
    assert answer.status_code == 410
    with every_tenant():
        assert Attempt.objects.count() == 1


def test_a_policy_may_let_an_expired_key_start_anew(cast: Cast, caller: Any, time_machine: Any) -> None:
    documents = default_documents()
    documents["idempotency_key_policy"]["on_expired"] = "new"
    open_contract(cast, documents=documents)
    time_machine.move_to(AT)
    assert post(caller, body(runtime_mode="shadow")).status_code == 201
    time_machine.move_to(AT + timedelta(days=1, seconds=1))
    assert post(caller, body(runtime_mode="shadow")).status_code == 201
    with every_tenant():
        assert list(IdempotencyRecord.objects.order_by("id").values_list("generation", flat=True)) == [1, 2]


def test_timeline_mode_keeps_the_key_as_a_reference_and_decides_each_call(cast: Cast, caller: Any) -> None:
    documents = default_documents()
    documents["idempotency_key_policy"]["mode"] = "timeline"
    documents["concurrency_and_locks"]["limits"] |= {"per_context": None}
    open_contract(cast, documents=documents)
    first, second = post(caller, body()), post(caller, body())
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] != second.json()["id"]
    assert first.json()["decision_id"] != second.json()["decision_id"]
    with every_tenant():
        assert not IdempotencyRecord.objects.exists()
        assert set(Attempt.objects.values_list("idempotency_key", flat=True)) == {"key-00000001"}


@pytest.mark.parametrize(
    ("key", "problem"),
    [(None, "idempotency-key-missing"), ("short", "idempotency-key-invalid"), ("ä" * 20, "idempotency-key-invalid")],
)
def test_a_missing_or_malformed_key_is_400(cast: Cast, caller: Any, key: str | None, problem: str) -> None:
    open_contract(cast)
    answer = post(caller, body(), key=key)
    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[1]) == (400, problem)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"[]",
        b'{"action": 3}',
        b'{"acton": {}}',
        b'{"action": {}, "extra": 1}',
        b"\xff\xfe",
        b'{"a":1,"a":2}',
    ],
)
def test_an_unreadable_body_is_400_once_on_the_ledger_and_keeps_the_key_free(
    cast: Cast, caller: Any, raw: bytes
) -> None:
    open_contract(cast)
    answer = caller.post(URL, raw, content_type="application/json", HTTP_IDEMPOTENCY_KEY="key-00000001")
    assert answer.status_code == 400
    assert answer.json()["reason_code"] == "invalid_input"
    with every_tenant():
        assert not Attempt.objects.exists()
        assert LedgerEntry.objects.filter(action="attempt.refused", reason_code="invalid_input").count() == 1
    assert post(caller, body()).status_code == 201


def test_forbidden_metadata_is_422_with_pointers_and_the_value_is_nowhere(cast: Cast, caller: Any) -> None:
    documents = default_documents()
    documents["metadata_boundary"]["schema"]["properties"] = {"source": {"type": "string", "maxLength": 80}}
    open_contract(cast, documents=documents)
    marker = "jane.canary@example.com"
    answer = post(caller, body(metadata={"source": marker}))
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["rule"]) == ("/metadata/source", "email")
    assert error["message"].startswith("`source` looks like an e-mail address; ")
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}" AS t WHERE t::text LIKE %s', [f"%{marker}%"])  # noqa: S608
            assert cursor.fetchone() == (0,), table
    with every_tenant():
        row = EnforcementDecision.objects.get(verdict="deny")
        assert decision_replay(row=row).agrees
    assert post(caller, body(metadata={"source": "clinic-app"})).status_code == 201


def test_over_a_throttle_is_429_with_retry_after_and_the_key_stays_free(cast: Cast, caller: Any) -> None:
    documents = default_documents()
    for limit in documents["throttles_and_misuse"]["limits"]:
        if limit["per"] == "context":
            limit["limit"] = 1
    documents["concurrency_and_locks"]["limits"] |= {"per_context": None}
    contract = open_contract(cast, documents=documents, slug="throttled-case")
    url = f"/api/v1/execution/{contract.slug}/1/attempts"
    context = f"ctx-{contract.id}"
    first = post(caller, body(patient_context_ref=context), url=url)
    assert first.status_code == 201, first.content
    assert "RateLimit-Policy" in first.headers
    second = post(caller, body(patient_context_ref=context), key="key-00000002", url=url)
    assert (second.status_code, second.json()["reason_code"]) == (429, "rate_limited")
    assert int(second.headers["Retry-After"]) > 0
    with every_tenant():
        assert not IdempotencyRecord.objects.filter(key="key-00000002").exists()


def test_a_full_cap_is_429_and_the_next_place_is_free_again_after_a_denial(cast: Cast, caller: Any) -> None:
    open_contract(cast)
    assert post(caller, body()).status_code == 201
    busy = post(caller, body(), key="key-00000002")
    assert (busy.status_code, busy.json()["reason_code"]) == (429, "concurrency_limit")
    other = post(caller, body(patient_context_ref="ctx-0002"), key="key-00000003")
    assert other.status_code == 201


def test_a_shadow_attempt_takes_no_place(cast: Cast, caller: Any) -> None:
    open_contract(cast)
    assert post(caller, body(runtime_mode="shadow")).status_code == 201
    with every_tenant():
        assert not Slot.objects.exists()


def test_another_organizations_contract_does_not_exist(cast: Cast) -> None:
    open_contract(cast)
    stranger = cast.api("attempts:create", organization=cast.other)
    answer = post(stranger, body())
    assert answer.status_code == 403
    assert answer.json()["type"].endswith("/attempt-creation-disabled")


def test_an_allowed_intake_is_one_commit_and_at_most_six_statements(
    cast: Cast, caller: Any, django_assert_max_num_queries: Any
) -> None:
    open_contract(cast)
    post(caller, body())
    with django_assert_max_num_queries(8) as captured:  # two of them are the savepoint of the test's own transaction
        answer = post(caller, body(patient_context_ref="ctx-0002"), key="key-00000002")
    assert answer.status_code == 201
    statements = [query["sql"] for query in captured.captured_queries if "SAVEPOINT" not in query["sql"]]
    assert len(statements) <= 6, statements


def test_every_stored_decision_re_evaluates_to_the_same(cast: Cast, caller: Any) -> None:
    open_contract(cast, rules=HOLD)
    for number in range(5):
        post(caller, body(patient_context_ref=f"ctx-{number}"), key=f"key-0000000{number}")
    with every_tenant():
        rows = list(EnforcementDecision.objects.all())
        assert len(rows) == 5
        assert all(decision_replay(row=row).agrees for row in rows)
    json.dumps([row.results for row in rows])
