"""`/shutdowns` over HTTP: preview, every scope, drill, reasons and notes, and the second person."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from governance.boundary.models import Note
from governance.ledger.models import LedgerEntry
from governance.shutdown.models import Shutdown
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import actions, intake, problem, violations
from tests.governance.support import everything_stored
from tests.governed import make_contract, open_contract

URL = "/api/v1/shutdowns"
WHY = {"reason_code": "operator_shutdown", "note": "Incident 17"}
CONTRACT = {"scope": "contract", "target": "close-case"}


@pytest.fixture
def second(cast: Cast) -> Any:
    """Bob, another operator."""
    return cast.session(cast.person("bob", "operator"))


@pytest.fixture
def administrator(cast: Cast) -> Any:
    """Runs the installation and operates Clinic."""
    user = cast.administrator
    cast.person(user.username, "operator")
    return cast.session(user)


def engage(client: Any, **changes: Any) -> Any:
    return client.post(URL, CONTRACT | WHY | changes)


def other_cast(cast: Cast) -> Cast:
    """The same words for the other organization."""
    other = Cast()
    other.organization, other.operator = cast.other, cast.other_operator  # type: ignore[misc]
    return other


@pytest.mark.parametrize(
    ("scope", "target", "named"),
    [
        ("contract", "close-case", ["close-case/1"]),
        ("contract", "close-case/1", ["close-case/1"]),
        ("connector", "external", ["close-case/1"]),
        ("connector", "http", ["send-letter/1"]),
        ("organization", "", ["close-case/1", "send-letter/1"]),
    ],
)
def test_a_preview_counts_and_names_the_open_contracts_and_writes_nothing(
    cast: Cast, operator: Any, scope: str, target: str, named: list[str]
) -> None:
    open_contract(cast)
    open_contract(cast, slug="send-letter", adapter="http")
    make_contract(cast, slug="draft")
    open_contract(other_cast(cast))
    answer = operator.post(f"{URL}/preview", {"scope": scope, "target": target})
    assert answer.json() == {"contracts": len(named), "organizations": 1, "named": named}
    with every_tenant():
        assert not Shutdown.objects.exists()


@pytest.mark.parametrize(
    "where",
    [
        CONTRACT,
        {"scope": "contract", "target": "close-case/1"},
        {"scope": "connector", "target": "external"},
        {"scope": "organization", "target": ""},
    ],
)
def test_an_operator_stops_what_is_in_scope_and_nothing_else(
    cast: Cast, operator: Any, second: Any, caller: Any, where: dict[str, str]
) -> None:
    open_contract(cast)
    open_contract(cast, slug="send-letter", adapter="http")
    open_contract(other_cast(cast))
    engaged = engage(operator, **where)
    assert engaged.status_code == 201, engaged.content
    shutdown = engaged.json()
    assert (shutdown["state"], shutdown["drill"], shutdown["note"]) == ("engaged", False, "Incident 17")
    refused = intake(caller)
    assert problem(refused) == (403, "attempt-creation-disabled")
    assert refused.json()["reason_code"] == "shutdown_engaged"
    spared = intake(caller, url="/api/v1/execution/send-letter/1/attempts", action={"connector": "http"})
    assert spared.status_code == (403 if where["scope"] == "organization" else 201)
    assert intake(cast.api("attempts:create", organization=cast.other)).status_code == 201
    assert second.post(f"{URL}/{shutdown['id']}/release", {}).status_code == 200
    assert intake(caller, key="key-00000002").status_code == 201
    assert actions(shutdown["id"]) == ["shutdown.engaged", "shutdown.released"]


@pytest.mark.parametrize("where", [{"scope": "global", "target": ""}, {"scope": "region", "target": "US"}])
def test_wide_scopes_are_for_administrators_and_stop_every_organization(
    cast: Cast, operator: Any, administrator: Any, caller: Any, where: dict[str, str]
) -> None:
    open_contract(cast)
    open_contract(other_cast(cast))
    assert problem(engage(operator, **where)) == (400, "invalid-input")
    assert problem(engage(cast.api("governance:write"), **where)) == (400, "invalid-input")
    assert problem(operator.post(f"{URL}/preview", where)) == (400, "invalid-input")
    preview = administrator.post(f"{URL}/preview", where).json()
    assert (preview["contracts"], preview["organizations"]) == (2, 2)
    engaged = engage(administrator, **where)
    assert engaged.status_code == 201, engaged.content
    assert intake(caller).json()["reason_code"] == "shutdown_engaged"
    strangers = cast.api("attempts:create", organization=cast.other)
    assert intake(strangers).json()["reason_code"] == "shutdown_engaged"
    release = f"{URL}/{engaged.json()['id']}/release"
    assert problem(administrator.post(release, {})) == (403, "second-person-needed")
    assert problem(operator.post(release, {})) == (404, "not-found")
    deputy = cast.person("deputy", "operator")
    deputy.is_superuser = True
    deputy.save(update_fields=["is_superuser"])
    assert cast.session(deputy).post(release, {}).status_code == 200
    assert intake(strangers, key="key-00000002").status_code == 201


def test_a_wide_shutdown_does_not_tell_one_organization_what_another_runs(
    cast: Cast, stranger: Any, administrator: Any
) -> None:
    open_contract(cast, slug="secret-project")
    engage(administrator, scope="global", target="")
    listed = stranger.get(URL)
    assert listed.json()["results"][0]["scope"] == "global"
    assert listed.json()["results"][0]["preview"]["contracts"] == 1
    assert "secret-project" not in listed.content.decode()


def test_an_administrator_without_a_role_in_an_organization_has_no_way_in_over_the_api(cast: Cast) -> None:
    answer = engage(cast.session(cast.administrator), scope="global", target="")
    assert problem(answer) == (403, "scope-missing")


def test_a_drill_records_everything_and_stops_nothing(cast: Cast, operator: Any, caller: Any) -> None:
    open_contract(cast)
    drill = engage(operator, drill=True, reason_code="rehearsal", note="").json()
    assert (drill["drill"], drill["preview"]["contracts"]) == (True, 1)
    assert intake(caller).status_code == 201
    assert operator.post(f"{URL}/{drill['id']}/release", {}).status_code == 200
    assert actions(drill["id"]) == ["shutdown.rehearsed", "shutdown.released"]


@pytest.mark.parametrize(
    "change",
    [
        {"reason_code": "because"},
        {"reason_code": ""},
        {"reason_code": None},
        {"note": ""},
        {"note": "x" * 281},
        {"scope": "planet"},
        {"target": "no-such-contract"},
        {"target": "close-case/7"},
        {"target": "close-case/x"},
        {"target": "close-case/01"},  # no contract's name: it was taken, counted one contract and stopped none
        {"target": "close-case/"},
        {"target": ""},
        {"scope": "connector", "target": "carrier-pigeon"},
        {"drill": "perhaps"},
        {"colour": "red"},
    ],
)
def test_what_is_missing_or_unknown_is_400_and_stops_nothing(cast: Cast, operator: Any, change: Any) -> None:
    open_contract(cast)
    assert problem(engage(operator, **change)) == (400, "invalid-input")
    with every_tenant():
        assert not Shutdown.objects.exists()


def test_the_reason_code_is_required(cast: Cast, operator: Any) -> None:
    open_contract(cast)
    answer = operator.post(URL, CONTRACT)
    assert problem(answer) == (400, "invalid-input")
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/reason_code"]


def test_whoever_engaged_it_cannot_release_it_and_the_attempt_is_on_record(
    cast: Cast, operator: Any, caller: Any
) -> None:
    open_contract(cast)
    shutdown = engage(operator).json()
    assert problem(operator.post(f"{URL}/{shutdown['id']}/release", {})) == (403, "second-person-needed")
    assert violations(cast.organization) == ["second_person_missing"]
    assert intake(caller).status_code == 403


def test_a_shutdown_is_released_once(cast: Cast, operator: Any, second: Any) -> None:
    open_contract(cast)
    shutdown = engage(operator).json()
    released = second.post(f"{URL}/{shutdown['id']}/release", {"note": "Incident 17 is over"}).json()
    assert released["state"] == "released"
    assert released["released_by_ref"] not in {"", shutdown["engaged_by_ref"]}
    assert problem(second.post(f"{URL}/{shutdown['id']}/release", {})) == (409, "wrong-state")


def test_a_key_may_engage_and_only_people_release(cast: Cast, second: Any) -> None:
    open_contract(cast)
    key = cast.api("governance:write")
    shutdown = engage(key).json()
    assert shutdown["engaged_by_kind"] == "service"
    assert problem(key.post(f"{URL}/{shutdown['id']}/release", {})) == (403, "scope-missing")
    assert second.post(f"{URL}/{shutdown['id']}/release", {}).status_code == 200


def test_a_note_that_must_not_enter_the_record_is_422_and_the_ledger_holds_only_its_hash(
    cast: Cast, operator: Any, second: Any
) -> None:
    open_contract(cast)
    refused = engage(operator, note="Mr. John Quimbly-q7x, john.q7x@example.com")
    assert problem(refused) == (422, "metadata-boundary")
    assert "q7x" not in refused.content.decode()
    shutdown = engage(operator, note="Incident zebra").json()
    refused = second.post(f"{URL}/{shutdown['id']}/release", {"note": "john.q7x@example.com"})
    assert problem(refused) == (422, "metadata-boundary")
    second.post(f"{URL}/{shutdown['id']}/release", {"note": "Incident giraffe"})
    with every_tenant():
        entries = list(LedgerEntry.objects.filter(subject_id=shutdown["id"]).order_by("id"))
        notes = list(Note.objects.order_by("id"))
    assert [entry.payload["note_sha256"] for entry in entries] == [note.sha256 for note in notes]
    assert [note.text for note in notes] == ["Incident zebra", "Incident giraffe"]
    assert "zebra" not in str([entry.payload for entry in entries])
    assert "q7x" not in everything_stored()


def test_lists_are_filtered_and_show_the_organizations_own(cast: Cast, operator: Any, second: Any) -> None:
    open_contract(cast)
    open_contract(other_cast(cast))
    first, other = engage(operator).json(), engage(cast.session(cast.other_operator)).json()
    last = engage(operator, target="close-case/1").json()
    second.post(f"{URL}/{first['id']}/release", {})

    def listed(query: str) -> list[str]:
        return [row["id"] for row in operator.get(f"{URL}?{query}").json()["results"]]

    assert listed("") == [last["id"], first["id"]]
    assert listed("state=engaged") == [last["id"]]
    assert problem(operator.get(f"{URL}?colour=red")) == (400, "unknown-parameter")
    assert problem(operator.get(f"{URL}/{other['id']}")) == (404, "not-found")
    assert violations(cast.organization) == ["cross_tenant"]


def test_every_door_is_closed_to_those_who_may_not(cast: Cast, operator: Any, stranger: Any) -> None:
    open_contract(cast)
    shutdown = engage(operator).json()
    release = f"{URL}/{shutdown['id']}/release"
    for client in (cast.session(cast.auditor), cast.session(cast.reviewer), cast.api("governance:read")):
        assert problem(engage(client)) == (403, "scope-missing")
        assert problem(client.post(release, {})) == (403, "scope-missing")
        assert client.get(f"{URL}/{shutdown['id']}").status_code == 200
    for url, body in ((URL, CONTRACT | WHY), (release, {}), (f"{URL}/preview", CONTRACT)):
        assert problem(APIClient().post(url, body)) == (401, "credential-missing")
        assert problem(cast.session(cast.nobody).post(url, body)) == (403, "scope-missing")
    assert problem(stranger.post(release, {})) == (404, "not-found")
    assert problem(stranger.post(URL, CONTRACT | WHY | {"org_id": str(cast.organization.id)})) == (404, "not-found")
    assert violations(cast.other) == ["cross_tenant"] * 2
