"""Identifiers that stand in the record for ever: names are found in them without spaces too."""

from typing import Any

import pytest

from attempts.lifecycle.models import Attempt
from governance.boundary.rules import inspect_handle
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governance.support import row_counts
from tests.governed import ALLOW, open_contract

NAMES = [
    "amina-yusuf-1984",
    "Amina_Yusuf",
    "AminaYusuf",
    "jane.doe",
    "doe-jane-000001",
    "order-for-john-smith",
    "JOHN-SMITH-17",
    "case:fatima/al-mansoori",
    "يوسف-إبراهيم",
]
OTHERS = ["jane-doe@example.org", "123-45-6789", "+254712345678", "mrn-00412345"]
HARMLESS = [
    "0190a0b0-1234-7abc-8def-0123456789ab",
    "0190A0B0-1234-7ABC-8DEF-0123456789AB",
    "01HZX3V8Q7J6M4N2K1P0R9S8T7",
    "tour-allow-1",
    "key-00000001",
    "order-1234567",
    "close-case-2026-11-18",
    "invoice_17:retry-2",
    "3f786850e387550fdab836ed7e6dc881de23001b",
    "amina-17",
    "req.abc123.def456",
    "Zk3vQ8tR1m",
]


@pytest.mark.unit
@pytest.mark.parametrize("value", NAMES)
def test_a_name_is_found_without_spaces(value: str) -> None:
    assert "person_name" in {one.rule for one in inspect_handle(value, pointer="/x")}


@pytest.mark.unit
@pytest.mark.parametrize("value", OTHERS)
def test_the_other_detectors_look_at_it_too(value: str) -> None:
    assert inspect_handle(value, pointer="/x")


@pytest.mark.unit
@pytest.mark.parametrize("value", HARMLESS)
def test_what_callers_usually_send_passes(value: str) -> None:
    assert inspect_handle(value, pointer="/x") == ()


@pytest.mark.parametrize("key", ["amina-yusuf-1984", "JaneDoe-000001", "order.for.john.smith"])
def test_a_key_with_a_name_is_400_and_leaves_nothing(cast: Cast, key: str) -> None:
    open_contract(cast, rules=ALLOW)
    api = cast.api("attempts:create")
    before = row_counts()
    answer = post(api, body(), key=key)
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (400, "idempotency-key-invalid")
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["rule"]) == ("/headers/Idempotency-Key", "person_name")
    assert "UUID" in error["message"]
    assert key not in answer.content.decode()
    with every_tenant():
        assert not Attempt.objects.exists()
        assert not any(key in str(row) for row in LedgerEntry.objects.values())
    assert row_counts().get("attempts_attempt") == before.get("attempts_attempt")


def test_a_request_id_with_a_name_is_replaced_and_the_request_goes_on(cast: Cast) -> None:
    open_contract(cast, rules=ALLOW)
    answer = post(cast.api("attempts:create"), body(), headers={"X-Request-ID": "amina-yusuf-1984"})
    assert answer.status_code == 201
    assert "amina" not in answer["X-Request-ID"]
    with every_tenant():
        assert not LedgerEntry.objects.filter(request_id__contains="amina").exists()
        assert LedgerEntry.objects.filter(request_id=answer["X-Request-ID"]).exists()
    kept = post(cast.api("attempts:create"), body(), key="key-2", headers={"X-Request-ID": "req-17"})
    assert kept["X-Request-ID"] == "req-17"


@pytest.mark.parametrize(
    ("page", "form"),
    [
        ("product", {"slug": "product-a", "name": "Record of Amina Yusuf"}),
        ("product", {"slug": "amina-yusuf", "name": "Record"}),
        ("serviceaccount", {"slug": "caller-a", "description": "belongs to Amina Yusuf"}),
        ("serviceaccount", {"slug": "caller-a", "description": "mail jane.doe@example.org"}),
        ("serviceaccount", {"slug": "amina-yusuf", "description": ""}),
    ],
)
def test_names_of_products_and_accounts_are_checked(cast: Cast, page: str, form: dict[str, Any]) -> None:
    given = form | {"organization": str(cast.organization.id), "responsible": str(cast.operator.id)}
    console, before = cast.console(cast.operator), row_counts()
    assert console.post(f"/admin/governance/{page}/add/", given).status_code == 422
    assert row_counts() == before


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/patients/amina-yusuf/hook", "person_name"),
        ("/hook?for=Amina%20Yusuf", "person_name"),
        ("/hook/jane.doe%40example.org", "email"),
        ("/hook/123-45-6789", "national_id"),
    ],
)
def test_paths_of_webhooks_are_checked(cast: Cast, path: str, rule: str) -> None:
    api = cast.api("orchestrator:publish", "orchestrator:read")
    given = {"url": f"https://hooks.example.com{path}", "events": ["*"]}
    answer = api.post("/api/v1/webhook-endpoints", given, format="json")
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (422, "metadata-boundary")
    assert ("/url", rule) in {(one["pointer"], one["rule"]) for one in answer.json()["errors"]}
    assert path not in answer.content.decode()
    good = given | {"url": "https://hooks.example.com/services/T024BE7LD/B0/holdpoint?v=1"}
    assert api.post("/api/v1/webhook-endpoints", good, format="json").status_code == 201
