"""Violations: each refused attempt to break a rule of the record is on record once, and only auditors read them."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from governance.outside.valkey import valkey
from governance.throttles.services import STRIKES
from governance.violations.errors import RecordImmutable
from governance.violations.models import GovernanceViolation
from governance.violations.services import violation_record
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import RATIONALE, intake, problem, violations
from tests.governed import AT, make_contract, open_contract

URL = "/api/v1/violations"
METHODS = ["put", "patch", "delete"]


def strikes_of(client: Any) -> int:
    """Strikes of the service behind the client; there is only one with this many."""
    with every_tenant():
        row = GovernanceViolation.objects.filter(actor_kind="service").order_by("-id").first()
    assert row is not None
    return sum(int(valkey().get(key) or 0) for key in valkey().scan_iter(f"{STRIKES}{row.actor_ref}:*"))


def record_of(cast: Cast, caller: Any, kind: str) -> tuple[str, Any]:
    """The address of a row of the record, and the row."""
    open_contract(cast)
    decision_id = intake(caller).json()["decision_id"]
    with every_tenant():
        if kind == "decision":
            return f"/api/v1/decisions/{decision_id}", EnforcementDecision.objects.get(id=decision_id)
        entry = LedgerEntry.objects.filter(action="attempt.approved").get()
        return f"/api/v1/ledger/entries/{entry.id}", entry


@pytest.mark.parametrize("kind", ["decision", "ledger entry"])
@pytest.mark.parametrize("method", METHODS)
def test_changing_the_record_over_http_is_refused_and_itself_on_record(
    cast: Cast, operator: Any, caller: Any, kind: str, method: str
) -> None:
    url, row = record_of(cast, caller, kind)
    key = cast.api("governance:read", "ledger:read")
    for number, client in enumerate((operator, cast.session(cast.auditor), key), start=1):
        before = client.get(url).json()
        assert problem(getattr(client, method)(url, {"verdict": "allow"})) == (409, "record-immutable")
        assert client.get(url).json() == before
        assert violations(cast.organization) == ["record_mutation"] * number
    assert strikes_of(key) == 1
    with every_tenant():
        violation = GovernanceViolation.objects.order_by("-id").first()
    assert violation is not None
    assert violation.subject_id == row.id


@pytest.mark.parametrize("kind", ["decision", "ledger entry"])
@pytest.mark.parametrize("method", METHODS)
def test_who_may_not_read_a_row_learns_nothing_by_changing_it(
    cast: Cast, stranger: Any, caller: Any, kind: str, method: str
) -> None:
    url, _ = record_of(cast, caller, kind)
    assert problem(getattr(APIClient(), method)(url, {})) == (401, "credential-missing")
    assert problem(getattr(cast.session(cast.nobody), method)(url, {})) == (403, "scope-missing")
    assert problem(getattr(caller, method)(url, {})) == (403, "scope-missing")
    assert violations() == []
    assert problem(getattr(stranger, method)(url, {})) == (404, "not-found")
    assert violations(cast.other) == ["cross_tenant"]


@pytest.mark.parametrize("path", ["decisions", "ledger/entries", "violations", "regions"])
@pytest.mark.parametrize("method", ["post", *METHODS])
def test_lists_of_the_record_know_no_method_but_reading(cast: Cast, operator: Any, path: str, method: str) -> None:
    answer = getattr(operator, method)(f"/api/v1/{path}", {})
    assert problem(answer) == (405, "method-not-allowed")


def broken_rules(cast: Cast) -> None:
    """One violation of each kind that can be committed so far, by people of Clinic, except the stranger's."""
    contract = open_contract(cast)
    operator = cast.session(cast.operator)
    url = f"/api/v1/contracts/{contract.id}"
    cast.session(cast.other_operator).get(url)
    operator.patch(url, {"title": "Other"})
    operator.post(f"{url}/readiness/metadata_boundary/revoke", RATIONALE)
    draft = make_contract(cast, slug="draft")
    alice = cast.session(cast.person("alice", "owner:privacy", exception=True))
    alice.post(f"/api/v1/contracts/{draft.id}/readiness/metadata_boundary/approve", RATIONALE)
    shutdown = operator.post(
        "/api/v1/shutdowns",
        {"scope": "contract", "target": "close-case", "reason_code": "operator_shutdown", "note": "Incident 17"},
    ).json()
    operator.post(f"/api/v1/shutdowns/{shutdown['id']}/release", {})


OF_CLINIC = ["record_mutation", "unauthorized_decision", "own_work_approved", "second_person_missing"]


def test_each_kind_is_recorded_once_where_whoever_tried_belongs(cast: Cast) -> None:
    broken_rules(cast)
    assert violations(cast.organization) == OF_CLINIC
    assert violations(cast.other) == ["cross_tenant"]


def test_auditors_operators_and_keys_for_the_ledger_read_them(cast: Cast, stranger: Any) -> None:
    broken_rules(cast)
    for client in (cast.session(cast.auditor), cast.session(cast.operator), cast.api("ledger:read")):
        rows = client.get(URL).json()["results"]
        assert [row["kind"] for row in rows] == OF_CLINIC[::-1]
        assert all(row["detail"] and row["actor_ref"] for row in rows)
        filtered = client.get(f"{URL}?kind=own_work_approved").json()["results"]
        assert [row["kind"] for row in filtered] == ["own_work_approved"]
    assert [row["kind"] for row in stranger.get(URL).json()["results"]] == ["cross_tenant"]


def test_nobody_else_reads_them(cast: Cast) -> None:
    for client in (
        cast.session(cast.reviewer),
        cast.session(cast.person("priya", "owner:privacy")),
        cast.session(cast.nobody),
        cast.api("governance:read", "governance:write"),
    ):
        assert problem(client.get(URL)) == (403, "scope-missing")
    assert problem(APIClient().get(URL)) == (401, "credential-missing")


def test_unknown_filters_and_kinds_are_400(cast: Cast, operator: Any) -> None:
    assert problem(operator.get(f"{URL}?colour=red")) == (400, "unknown-parameter")
    assert problem(operator.get(f"{URL}?kind=rudeness")) == (400, "invalid-input")


def test_a_refusal_that_passes_two_doors_is_recorded_once(cast: Cast) -> None:
    actor = cast.actor(cast.operator, [cast.organization])
    broken = RecordImmutable(subject_type="contract", subject_id=cast.organization.id)
    for _ in range(2):
        violation_record(actor=actor, at=AT, broken=broken)
    assert violations() == ["record_mutation"]


def test_naming_another_organization_in_the_query_is_404_and_on_record(cast: Cast, stranger: Any) -> None:
    answer = stranger.get(f"/api/v1/contracts?org_id={cast.organization.id}")
    assert problem(answer) == (404, "not-found")
    assert violations(cast.other) == ["cross_tenant"]
