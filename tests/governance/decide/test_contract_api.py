"""`/contracts` over HTTP: drafts, moves, refusals, and who may try."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from governance.boundary.models import Note
from governance.contracts.models import Contract, ContractDocument
from governance.contracts.rules.documents import AREAS, default_documents
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import actions, problem, violations
from tests.governed import approve, make_contract, make_policy, open_contract

URL = "/api/v1/contracts"
NEW = {
    "slug": "close-case",
    "title": "Close a case",
    "effect": "once",
    "risk_tier": "medium",
    "adapter": "external",
    "review_owner": "customer_clinician",
    "policy_slug": "standard",
}
MAINTENANCE = {"reason_code": "planned_maintenance"}


def stored(contract: Any) -> Contract:
    with every_tenant():
        return Contract.objects.get(id=contract if isinstance(contract, str) else contract.id)


def test_a_draft_is_created_read_changed_and_discarded(cast: Cast, operator: Any) -> None:
    created = operator.post(URL, NEW)
    assert created.status_code == 201, created.content
    draft = created.json()
    assert (draft["state"], draft["version"], draft["documents"]) == ("draft", 1, default_documents())
    one = f"{URL}/{draft['id']}"
    assert operator.get(one).json() == draft
    changed = operator.patch(one, {"title": "Close a case for good", "risk_tier": "low"})
    assert (changed.json()["title"], changed.json()["risk_tier"]) == ("Close a case for good", "low")
    assert operator.delete(one).status_code == 204
    assert problem(operator.get(one)) == (404, "not-found")
    assert actions(draft["id"]) == ["contract.created", "contract.changed", "contract.discarded"]


def test_documents_are_changed_one_by_one_and_the_ledger_names_the_areas(cast: Cast, operator: Any) -> None:
    contract = make_contract(cast)
    document = default_documents()["retry_and_replay"] | {"window_seconds": 60}
    answer = operator.patch(f"{URL}/{contract.id}", {"documents": {"retry_and_replay": document}})
    assert answer.json()["documents"]["retry_and_replay"]["window_seconds"] == 60
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=contract.id, action="contract.changed")
        row = ContractDocument.objects.get(contract=contract, area="retry_and_replay")
    assert entry.payload["areas"] == ["retry_and_replay"]
    assert row.written_by_id == cast.operator.id


def test_a_contract_opens_is_suspended_reopens_and_retires(cast: Cast, operator: Any) -> None:
    make_policy(cast)
    contract = make_contract(cast)
    approve(cast, contract)
    one = f"{URL}/{contract.id}"
    opened = operator.post(f"{one}/open")
    assert (opened.status_code, opened.json()["state"]) == (200, "open")
    assert len(opened.json()["snapshot_sha256"]) == 64
    suspended = operator.post(f"{one}/suspend", MAINTENANCE)
    assert (suspended.json()["state"], suspended.json()["closed_reason_code"]) == ("suspended", "planned_maintenance")
    assert operator.post(f"{one}/open").json()["closed_reason_code"] == ""
    assert operator.post(f"{one}/retire", MAINTENANCE).json()["state"] == "retired"
    moves = [action for action in actions(contract.id) if action.startswith("contract.")]
    assert moves == [f"contract.{verb}" for verb in ("created", "opened", "suspended", "opened", "retired")]


def test_opening_names_every_area_that_is_missing_and_its_owner(cast: Cast, operator: Any) -> None:
    contract = make_contract(cast)
    approve(cast, contract, *[area.name for area in AREAS[:7]])
    answer = operator.post(f"{URL}/{contract.id}/open")
    assert problem(answer) == (409, "readiness-incomplete")
    assert answer.json()["errors"] == [
        {"pointer": f"/{area.name}", "message": f"pending; owned by {area.owner_group}", "rule": "pending"}
        for area in AREAS[7:]
    ]
    assert stored(contract).state == "draft"


@pytest.mark.parametrize("verb", ["open", "suspend", "retire"])
def test_a_move_from_the_wrong_state_is_409(cast: Cast, operator: Any, verb: str) -> None:
    contract = open_contract(cast)
    one = f"{URL}/{contract.id}"
    if verb != "open":
        operator.post(f"{one}/retire", MAINTENANCE)
    answer = operator.post(f"{one}/{verb}", MAINTENANCE if verb != "open" else None)
    assert problem(answer) == (409, "wrong-state")


@pytest.mark.parametrize("method", ["patch", "delete"])
def test_a_contract_that_left_its_draft_cannot_be_changed_and_the_attempt_is_on_record(
    cast: Cast, operator: Any, method: str
) -> None:
    contract = open_contract(cast)
    answer = getattr(operator, method)(f"{URL}/{contract.id}", {"title": "Other"} if method == "patch" else None)
    assert problem(answer) == (409, "record-immutable")
    assert violations(cast.organization) == ["record_mutation"]
    assert stored(contract).title == contract.title


def test_a_draft_with_decisions_stays_because_decisions_stay(cast: Cast, operator: Any) -> None:
    contract = make_contract(cast)
    approve(cast, contract, "metadata_boundary")
    assert problem(operator.delete(f"{URL}/{contract.id}")) == (409, "wrong-state")
    assert stored(contract).state == "draft"


def test_a_new_version_is_a_draft_with_carried_approvals_and_only_one_at_a_time(cast: Cast, operator: Any) -> None:
    contract = open_contract(cast)
    answer = operator.post(f"{URL}/{contract.id}/new-version")
    assert (answer.status_code, answer.json()["version"], answer.json()["state"]) == (201, 2, "draft")
    found = actions(answer.json()["id"])
    assert found == ["contract.version_created", *["readiness.carried_over"] * 10]
    assert problem(operator.post(f"{URL}/{contract.id}/new-version")) == (409, "wrong-state")


def test_invalid_documents_are_400_with_a_pointer_for_every_place(cast: Cast, operator: Any) -> None:
    documents = {"retry_and_replay": {"automatic_retries": "always"}, "metadata_boundary": {"max_bytes": -1}}
    for answer in (
        operator.post(URL, NEW | {"documents": documents}),
        operator.patch(f"{URL}/{make_contract(cast, slug='other').id}", {"documents": documents}),
    ):
        assert problem(answer) == (400, "document-invalid")
        pointers = {error["pointer"].split("/")[1] for error in answer.json()["errors"]}
        assert pointers >= {"retry_and_replay", "metadata_boundary"}
        assert "always" not in answer.content.decode()


@pytest.mark.parametrize(
    "change",
    [
        {"colour": "red"},
        {"effect": "twice"},
        {"slug": "Has Spaces"},
        {"title": ""},
        {"title": "x" * 121},
        {"documents": {"no_such_area": {}}},
        {"documents": []},
        {"documents": {"metadata_boundary": None}},
        {"review_owner": None},
    ],
)
def test_a_body_of_the_wrong_shape_is_400_and_nothing_is_stored(cast: Cast, operator: Any, change: Any) -> None:
    answer = operator.post(URL, NEW | change)
    assert problem(answer) == (400, "invalid-input")
    assert answer.json()["errors"]
    with every_tenant():
        assert not Contract.objects.exists()


def test_an_unknown_field_in_a_change_is_400(cast: Cast, operator: Any) -> None:
    contract = make_contract(cast)
    for body in ({"slug": "other"}, {"state": "open"}, {"version": 7}, [1], "text"):
        assert problem(operator.patch(f"{URL}/{contract.id}", body))[0] == 400
    assert stored(contract).slug == "close-case"


def test_a_slug_is_used_once(cast: Cast, operator: Any) -> None:
    make_contract(cast)
    assert problem(operator.post(URL, NEW)) == (409, "already-exists")


@pytest.mark.parametrize("verb", ["suspend", "retire"])
def test_closing_needs_a_reason_code_that_exists_and_its_note(cast: Cast, operator: Any, verb: str) -> None:
    contract = open_contract(cast)
    url = f"{URL}/{contract.id}/{verb}"
    for body in ({}, {"reason_code": "because"}, {"reason_code": "incident_response"}):
        assert problem(operator.post(url, body)) == (400, "invalid-input")
    answer = operator.post(url, {"reason_code": "incident_response", "note": "Call John at john.doe@example.com"})
    assert problem(answer) == (422, "metadata-boundary")
    assert stored(contract).state == "open"
    assert operator.post(url, {"reason_code": "incident_response", "note": "Incident 17"}).status_code == 200
    with every_tenant():
        note = Note.objects.get()
        entry = LedgerEntry.objects.filter(subject_id=contract.id).order_by("-id").first()
    assert entry is not None
    assert entry.payload["note_sha256"] == note.sha256
    assert "Incident 17" not in str(entry.payload)


def test_lists_are_filtered_and_an_unknown_filter_is_400(cast: Cast, operator: Any) -> None:
    first, second = open_contract(cast), make_contract(cast, slug="other")

    def listed(query: str) -> set[str]:
        return {row["id"] for row in operator.get(f"{URL}?{query}").json()["results"]}

    assert listed("") == {str(first.id), str(second.id)}
    assert listed("state=open") == {str(first.id)}
    assert listed("slug=other") == {str(second.id)}
    assert listed("slug=other&state=open") == set()
    assert problem(operator.get(f"{URL}?colour=red")) == (400, "unknown-parameter")
    assert problem(operator.get(f"{URL}?state=ajar")) == (400, "invalid-input")


DOORS = [
    ("post", "", NEW),
    ("patch", "/{id}", {"title": "Other"}),
    ("delete", "/{id}", None),
    ("post", "/{id}/open", None),
    ("post", "/{id}/suspend", MAINTENANCE),
    ("post", "/{id}/retire", MAINTENANCE),
    ("post", "/{id}/new-version", None),
]


@pytest.mark.parametrize(("method", "path", "body"), DOORS)
def test_only_an_operator_or_a_key_that_may_write_passes_the_doors_that_change(
    cast: Cast, method: str, path: str, body: Any
) -> None:
    contract = make_contract(cast, slug="existing")
    url = URL + path.format(id=contract.id)
    refused = [
        cast.session(cast.auditor),
        cast.session(cast.reviewer),
        cast.session(cast.nobody),
        cast.session(cast.person("priya", "owner:privacy")),
        cast.api("governance:read", "ledger:read", "orchestrator:write"),
    ]
    for client in refused:
        assert problem(getattr(client, method)(url, body)) == (403, "scope-missing")
    assert problem(getattr(APIClient(), method)(url, body)) == (401, "credential-missing")
    assert actions(contract.id) == ["contract.created"]
    passed = getattr(cast.api("governance:write"), method)(url, body)
    assert passed.status_code in {200, 201, 204, 409}, passed.content


@pytest.mark.parametrize(("method", "path", "body"), [("get", "/{id}", None), *DOORS[1:]])
def test_a_stranger_finds_nothing_and_the_attempt_is_on_record_where_the_stranger_belongs(
    cast: Cast, stranger: Any, method: str, path: str, body: Any
) -> None:
    contract = make_contract(cast)
    service = cast.api("governance:read", "governance:write", organization=cast.other)
    for client in (stranger, service):
        assert problem(getattr(client, method)(URL + path.format(id=contract.id), body)) == (404, "not-found")
    assert violations(cast.other) == ["cross_tenant"] * 2
    assert violations(cast.organization) == []
    assert actions(contract.id)[1:] == ["violation.recorded"] * 2


def test_naming_another_organization_is_404_and_on_record(cast: Cast, stranger: Any) -> None:
    answer = stranger.post(URL, NEW | {"org_id": str(cast.organization.id)})
    assert problem(answer) == (404, "not-found")
    assert violations(cast.other) == ["cross_tenant"]


def test_an_id_that_nobody_has_is_no_violation(cast: Cast, operator: Any) -> None:
    assert problem(operator.get(f"{URL}/01900000-0000-7000-8000-000000000000")) == (404, "not-found")
    assert violations() == []


def test_everyone_of_the_organization_may_read_and_nobody_else(cast: Cast, stranger: Any) -> None:
    contract = make_contract(cast)
    for person in (cast.operator, cast.auditor, cast.reviewer):
        assert cast.session(person).get(f"{URL}/{contract.id}").status_code == 200
    assert cast.session(cast.nobody).get(URL).status_code == 403
    assert cast.api("attempts:create").get(URL).status_code == 403
    assert stranger.get(URL).json()["results"] == []
