"""Typed facts on their way: stated, judged by rules, seen by reviewers, bound to the approval, sent, verified."""

from typing import Any

import pytest
from django.utils import timezone

from attempts.execution.models import DispatchIntent
from attempts.execution.services.dispatch import attempt_dispatch
from governance.contracts.rules.documents import default_documents
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import attempt, change
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import HOLD, open_contract

FACTS = [
    {"name": "refund", "type": "amount", "label": "Refund", "required": True, "currency_from": "currency"},
    {"name": "currency", "type": "currency", "label": "Currency", "required": True, "values": ["EUR", "USD"]},
    {"name": "source", "type": "code", "label": "Source", "required": False},
]
SMALL = {"id": "small", "when": 'facts.refund <= 49.99 && facts.currency == "EUR"', "verdict": "allow"}
BIG = HOLD[0] | {"id": "big", "description": "Finance looks at refunds above 49.99 EUR."}


def refund(amount: Any = "149.00", **changes: Any) -> dict[str, Any]:
    return body(metadata={"refund": amount, "currency": "EUR"} | changes)


@pytest.fixture
def caller(cast: Cast) -> Any:
    documents = default_documents()
    documents["metadata_boundary"]["facts"] = FACTS
    documents["concurrency_and_locks"]["limits"]["per_context"] = None
    open_contract(cast, rules=[SMALL, BIG], documents=documents)
    return cast.api("attempts:create")


def test_a_policy_decides_by_the_amount(cast: Cast, caller: Any) -> None:
    assert post(caller, refund("49.99"), "key-00000001").status_code == 201
    assert post(caller, refund("50.00"), "key-00000002").status_code == 202
    assert post(caller, refund("5.00", currency="USD"), "key-00000003").status_code == 202


@pytest.mark.parametrize(
    ("changes", "pointer", "rule"),
    [
        ({"refund": "149.0"}, "/metadata/refund", "fact_amount"),
        ({"refund": 149}, "/metadata/refund", "fact_amount"),
        ({"currency": "GBP"}, "/metadata/currency", "fact_currency"),
        ({"other": "x"}, "/metadata/other", "not_in_schema"),
    ],
)
def test_a_fact_in_another_form_is_422_with_pointer_and_rule(
    caller: Any, changes: dict[str, Any], pointer: str, rule: str
) -> None:
    answer = post(caller, body(metadata={"refund": "149.00", "currency": "EUR"} | changes))
    assert answer.status_code == 422
    assert (pointer, rule) in [(one["pointer"], one.get("rule")) for one in answer.json()["errors"]]


def test_the_reviewer_sees_the_amount_first_and_signs_exactly_it(cast: Cast, caller: Any) -> None:
    ids = [post(caller, refund(amount), f"key-{amount}").json()["review"]["id"] for amount in ("149.00", "149.01")]
    reviewer = cast.session(cast.reviewer)
    first, second = (reviewer.get(f"/api/v1/reviews/{one}").json() for one in ids)
    assert [(fact["label"], fact["text"]) for fact in first["asked"]["facts"]] == [("Refund", "149.00 EUR")]
    assert first["why_held"]["rationale"] == BIG["description"]
    assert first["asked"]["reversibility"] == "The contract names no compensation, so treat the action as final."
    assert first["action_digest"] != second["action_digest"]
    stale = reviewer.post(f"/api/v1/reviews/{ids[1]}/approve", {"action_digest": first["action_digest"]}, format="json")
    assert stale.status_code == 412
    page = cast.console(cast.reviewer).get(f"/review/{ids[0]}").content.decode()
    assert page.index("149.00 EUR") < page.index("Fields written")
    assert "Finance looks at refunds" in page


def test_an_attempt_says_its_ten_identity_fields_and_its_audit_link_is_its_ledger_entry(
    cast: Cast, caller: Any
) -> None:
    made = post(caller, refund()).json()
    shown = caller.get(f"/api/v1/attempts/{made['id']}").json()
    assert [fact["text"] for fact in shown["facts"]] == ["149.00 EUR"]
    identity = shown["identity"]
    assert len(identity) == 10
    assert all(value for value in identity.values())
    assert identity["tenant_ref"] == str(cast.organization.id)
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=made["id"])
    assert identity["audit_event_link"] == f"/api/v1/ledger/entries/{entry.id}"
    read = cast.api("ledger:read").get(identity["audit_event_link"])
    assert (read.status_code, read.json()["subject_id"]) == (200, made["id"])
    assert read.json()["moves"][0]["action"] == "attempt.received"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("words", ['{"refund": "1490.00", "currency": "EUR"}', "{}"])
def test_an_amount_that_was_changed_in_the_database_is_not_sent(cast: Cast, words: str, disabled_guard: Any) -> None:
    documents = default_documents()
    documents["metadata_boundary"]["facts"] = FACTS
    open_contract(cast, documents=documents, adapter="http")
    payload = refund() | {"runtime_mode": "active"}
    payload["action"]["connector"] = "http"
    made = post(cast.api("attempts:create"), payload).json()
    with disabled_guard():
        change(made["id"], f"metadata = '{words}'::jsonb")
    assert attempt_dispatch(attempt_id=made["id"], now=timezone.now) is None
    assert (attempt(made["id"]).state, attempt(made["id"]).reason_code) == ("preflight-denied", "effect_mismatch")
    with every_tenant():
        assert not DispatchIntent.objects.exists()
