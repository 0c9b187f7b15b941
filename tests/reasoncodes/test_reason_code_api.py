"""`/api/v1/reason-codes`, tried by its owner, a stranger, the wrong role and nobody."""

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from governance.ledger.models import LedgerEntry
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.models import ReasonCode
from reasoncodes.services import reason_code_create
from tests.cast import Cast
from tests.config.test_problems import check
from tests.governance.support import row_counts

URL = "/api/v1/reason-codes"
BODY = {"scope": "human_decline", "code": "needs_dermoscopy", "label": "Needs dermoscopy"}


@pytest.fixture
def own(cast: Cast) -> ReasonCode:
    with every_tenant():
        return reason_code_create(
            actor=SYSTEM,
            at=timezone.now(),
            organization_id=cast.organization.id,
            scope="halt",
            code="ours",
            label="Ours",
        )


@pytest.fixture
def theirs(cast: Cast) -> ReasonCode:
    with every_tenant():
        return reason_code_create(
            actor=SYSTEM, at=timezone.now(), organization_id=cast.other.id, scope="halt", code="theirs", label="Theirs"
        )


def codes(answer: Any) -> set[str]:
    return {row["code"] for row in answer.json()["results"]}


def test_the_list_has_the_systems_codes_and_ones_own(cast: Cast, own: ReasonCode, theirs: ReasonCode) -> None:
    for client in (cast.api("orchestrator:read"), cast.session(cast.operator), cast.session(cast.reviewer)):
        found = codes(client.get(URL, {"page_size": 200}))
        assert {"ours", "policy_denied"} <= found
        assert "theirs" not in found


def test_filters_narrow_it(cast: Cast, own: ReasonCode) -> None:
    api = cast.api("orchestrator:read", "orchestrator:write")
    assert codes(api.get(URL, {"scope": "human_decline"})) == {
        "not_my_speciality",
        "conflict_of_interest",
        "insufficient_information",
    }
    assert api.delete(f"{URL}/{own.id}").status_code == 204
    assert "ours" not in codes(api.get(URL, {"scope": "halt", "active": "true"}))
    assert codes(api.get(URL, {"scope": "halt", "active": "false"})) == {"ours"}


def test_an_organization_can_be_named_only_by_those_who_act_in_it(
    cast: Cast, own: ReasonCode, theirs: ReasonCode
) -> None:
    mine, other = {"org_id": str(cast.organization.id)}, {"org_id": str(cast.other.id)}
    api = cast.api("orchestrator:read")
    assert "ours" in codes(api.get(URL, {**mine, "scope": "halt"}))
    for client in (api, cast.session(cast.operator)):
        check(client.get(URL, other), status=404, code="not-found")
        check(client.get(URL, {"org_id": str(uuid4())}), status=404, code="not-found")


def test_the_admin_scope_may_name_any_organization_and_then_acts_there_alone(
    cast: Cast, own: ReasonCode, theirs: ReasonCode
) -> None:
    api = cast.api("orchestrator:read", "orchestrator:write", "orchestrator:admin")
    named = f"?org_id={cast.other.id}"
    assert "ours" in codes(api.get(URL, {"scope": "halt"}))
    found = codes(api.get(f"{URL}{named}&scope=halt"))
    assert "theirs" in found
    assert "ours" not in found
    assert api.get(f"{URL}/{theirs.id}").status_code == 404
    assert api.get(f"{URL}/{theirs.id}{named}").status_code == 200
    made = api.post(f"{URL}{named}", BODY)
    assert made.json()["org_id"] == str(cast.other.id)
    check(api.get(f"{URL}?org_id={uuid4()}"), status=404, code="not-found")


def test_creating_answers_201_with_the_row_and_writes_one_entry(cast: Cast) -> None:
    body = BODY | {"requires_note": True, "applicable_step_kinds": ["human_review"], "description": "Look closer."}
    answer = cast.api("orchestrator:write").post(URL, body)
    assert answer.status_code == 201
    row = answer.json()
    assert {name: row[name] for name in body} == body
    assert (row["org_id"], row["active"], row["emitted"]) == (str(cast.organization.id), True, False)
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=row["id"])
    assert (entry.action, entry.actor_kind) == ("reason_code.created", "service")


@pytest.mark.parametrize("who", ["operator", "auditor", "reviewer", "nobody"])
def test_of_the_people_only_the_operator_may_create(cast: Cast, who: str) -> None:
    answer = cast.session(getattr(cast, who)).post(URL, BODY)
    if who == "operator":
        assert answer.status_code == 201
    else:
        check(answer, status=403, code="scope-missing")


def test_reading_alone_does_not_allow_writing_and_nobody_is_401(cast: Cast, own: ReasonCode) -> None:
    reader, nobody = cast.api("orchestrator:read"), APIClient()
    reader.get(URL)
    before = row_counts()
    for client, status, code in ((reader, 403, "scope-missing"), (nobody, 401, "credential-missing")):
        check(client.post(URL, BODY), status=status, code=code)
        check(client.patch(f"{URL}/{own.id}", {"label": "x"}), status=status, code=code)
        check(client.delete(f"{URL}/{own.id}"), status=status, code=code)
    assert row_counts() == before


def test_a_session_without_a_csrf_token_may_not_write(cast: Cast) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(cast.operator)
    assert client.get(URL).status_code == 200
    assert client.post(URL, BODY).status_code == 403
    with every_tenant():
        assert not ReasonCode.objects.filter(code=BODY["code"]).exists()


def test_the_same_code_again_is_409(cast: Cast) -> None:
    api = cast.api("orchestrator:write")
    assert api.post(URL, BODY).status_code == 201
    check(api.post(URL, BODY), status=409, code="already-exists")


def test_naming_another_organization_in_the_body_is_404(cast: Cast) -> None:
    for client in (cast.api("orchestrator:write"), cast.session(cast.operator)):
        check(client.post(URL, BODY | {"org_id": str(cast.other.id)}), status=404, code="not-found")
        assert client.post(URL, BODY | {"org_id": "not-an-id"}).status_code == 400
    mine = cast.api("orchestrator:write").post(URL, BODY | {"org_id": str(cast.organization.id)})
    assert mine.status_code == 201


def test_a_person_who_acts_in_two_organizations_must_name_one(cast: Cast) -> None:
    both = cast.person("alice", "operator")
    cast.person("alice", "operator", organization=cast.other)
    client = cast.session(both)
    body = check(client.post(URL, BODY), status=400, code="invalid-input")
    assert body["errors"][0]["pointer"] == "/org_id"
    assert client.post(URL, BODY | {"org_id": str(cast.other.id)}).json()["org_id"] == str(cast.other.id)
    assert client.post(f"{URL}?org_id={cast.organization.id}", BODY).json()["org_id"] == str(cast.organization.id)


def test_one_row_shows_its_usage(cast: Cast, own: ReasonCode) -> None:
    assert cast.api("orchestrator:read").get(f"{URL}/{own.id}").json()["usage_count"] == 0


def test_a_change_is_a_change_of_wording_or_activity(cast: Cast, own: ReasonCode) -> None:
    api, url = cast.api("orchestrator:read", "orchestrator:write"), f"{URL}/{own.id}"
    assert api.patch(url, {"label": "Ours, really"}).json()["label"] == "Ours, really"
    assert api.patch(url, {"active": False}).json()["active"] is False
    assert api.patch(url, {"active": True, "applicable_step_kinds": []}).json()["applicable_step_kinds"] is None
    for field in ("scope", "code", "org_id", "emitted", "id"):
        check(api.patch(url, {field: "halt"}), status=400, code="invalid-input")
    assert api.get(url).json()["code"] == "ours"


def test_deleting_is_soft_and_twice_is_once(cast: Cast, own: ReasonCode) -> None:
    api = cast.api("orchestrator:read", "orchestrator:write")
    for _ in range(2):
        assert api.delete(f"{URL}/{own.id}").status_code == 204
    assert api.get(f"{URL}/{own.id}").json()["active"] is False
    with every_tenant():
        assert LedgerEntry.objects.filter(action="reason_code.deactivated").count() == 1


def test_the_systems_codes_are_refused_to_everybody(cast: Cast) -> None:
    with every_tenant():
        system = ReasonCode.objects.get(organization=None, scope="intervention", code="rehearsal")
    api = cast.api()
    check(api.patch(f"{URL}/{system.id}", {"label": "x"}), status=403, code="refused")
    check(api.delete(f"{URL}/{system.id}"), status=403, code="refused")


@pytest.mark.parametrize("method", ["get", "patch", "delete"])
def test_a_strangers_row_is_404(cast: Cast, theirs: ReasonCode, method: str) -> None:
    for client in (cast.api(), cast.session(cast.operator)):
        answer = getattr(client, method)(f"{URL}/{theirs.id}", {"label": "x"} if method == "patch" else None)
        check(answer, status=404, code="not-found")
    assert cast.api("orchestrator:read", organization=cast.other).get(f"{URL}/{theirs.id}").status_code == 200
