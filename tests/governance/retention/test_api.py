"""The doors: who may ask, decide, release, read and download; strangers see nothing, and tries are on record."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.storage import storages
from django.test import override_settings
from django.utils import timezone
from rest_framework.test import APIClient

from governance.retention.models import DeletionRequest, ExportRequest
from governance.retention.tasks import export_build_task, exports_expire_task
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import contract
from tests.cast import Cast
from tests.governance.retention.support import RECENT, Clinic

HOLDS, EXPORTS, DELETIONS = "/api/v1/legal-holds", "/api/v1/exports", "/api/v1/deletions"
HOLD = {"scope": "context", "target": "ctx-0001", "reason_code": "litigation"}
END = {"reason_code": "hold_ended"}
EXPORT = {"context_ref": "ctx-0001", "reason_code": "data_subject_request"}
DELETION = {"context_ref": "ctx-0001"}


def problem(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition("/")[2]


def violations() -> list[str]:
    with every_tenant():
        return list(GovernanceViolation.objects.order_by("id").values_list("kind", flat=True))


def test_a_hold_is_placed_listed_and_released_by_a_second_person(cast: Cast) -> None:
    placed = cast.session(cast.operator).post(HOLDS, HOLD)
    assert placed.status_code == 201, placed.content
    said = placed.json()
    assert (said["state"], said["reference"], said["scope"]) == ("active", "ctx-0001", "context")
    assert len(said["target"]) == 64
    address = f"{HOLDS}/{said['id']}/release"
    assert problem(cast.session(cast.operator).post(address, END)) == (403, "second-person-needed")
    assert violations() == ["second_person_missing"]
    second = cast.session(cast.person("bob", "operator"))
    assert second.post(address, {}).status_code == 400
    released = second.post(address, END)
    assert (released.status_code, released.json()["state"]) == (200, "released")
    assert problem(second.post(address, END)) == (409, "wrong-state")
    listed = cast.session(cast.auditor).get(HOLDS).json()
    assert [row["id"] for row in listed["results"]] == [said["id"]]
    assert cast.session(cast.auditor).get(f"{HOLDS}?state=active").json()["results"] == []


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"scope": "organization"}, "/target"),
        ({"scope": "contract", "target": "unknown"}, "/target"),
        ({"scope": "attempt", "target": "not-an-id"}, "/target"),
        ({"scope": "attempt", "target": str(uuid4())}, "/target"),
        ({"scope": "run", "target": ""}, "/target"),
        ({"scope": "person", "target": str(uuid4())}, "/target"),
        ({"scope": "planet"}, "/scope"),
        ({"reason_code": "policy_denied"}, "/reason_code"),
    ],
)
def test_a_hold_on_nothing_is_refused(cast: Cast, change: dict[str, str], pointer: str) -> None:
    answer = cast.session(cast.operator).post(HOLDS, HOLD | change)
    assert answer.status_code == 400, answer.content
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_reference_that_looks_like_a_person_does_not_enter(cast: Cast) -> None:
    answer = cast.session(cast.operator).post(HOLDS, HOLD | {"target": "jane.doe@example.org"})
    assert problem(answer) == (422, "metadata-boundary")
    assert "jane" not in answer.content.decode()


def test_compliance_must_be_one_of_the_two_where_a_contract_says_so(cast: Cast) -> None:
    contract(cast, changes={"regional_compliance": {"legal_hold": "compliance_releases"}})
    first = cast.session(cast.operator).post(HOLDS, HOLD).json()["id"]
    bob = cast.person("bob", "operator")
    assert problem(cast.session(bob).post(f"{HOLDS}/{first}/release", END)) == (403, "second-person-needed")
    carla = cast.person("carla", "operator", "owner:global-compliance", exception=True)
    assert cast.session(carla).post(f"{HOLDS}/{first}/release", END).status_code == 200


MATRIX = [
    (HOLDS, "get", None, {"operator": 200, "auditor": 200, "reviewer": 403, "nobody": 403, "anonymous": 401}),
    (HOLDS, "post", HOLD, {"operator": 201, "auditor": 403, "reviewer": 403, "nobody": 403, "anonymous": 401}),
    (EXPORTS, "get", None, {"operator": 200, "auditor": 200, "reviewer": 403, "nobody": 403, "anonymous": 401}),
    (EXPORTS, "post", EXPORT, {"operator": 202, "auditor": 403, "reviewer": 403, "nobody": 403, "anonymous": 401}),
    (DELETIONS, "get", None, {"operator": 200, "auditor": 200, "reviewer": 403, "nobody": 403, "anonymous": 401}),
    (DELETIONS, "post", DELETION, {"operator": 201, "auditor": 403, "reviewer": 403, "nobody": 403, "anonymous": 401}),
]


@pytest.mark.parametrize(("address", "method", "body", "expected"), MATRIX)
def test_who_may_do_what(cast: Cast, address: str, method: str, body: Any, expected: dict[str, int]) -> None:
    for who, status in expected.items():
        client = APIClient() if who == "anonymous" else cast.session(getattr(cast, who))
        assert getattr(client, method)(address, body).status_code == status, who


@pytest.mark.parametrize(
    ("address", "method", "body", "scope", "expected"),
    [
        (HOLDS, "get", None, "governance:read", 200),
        (HOLDS, "post", HOLD, "governance:write", 201),
        (HOLDS, "post", HOLD, "governance:read", 403),
        (EXPORTS, "get", None, "governance:read", 403),
        (EXPORTS, "get", None, "ledger:read", 200),
        (DELETIONS, "post", DELETION, "governance:write", 201),
    ],
)
def test_what_a_key_opens(cast: Cast, address: str, method: str, body: Any, scope: str, expected: int) -> None:
    assert getattr(cast.api(scope), method)(address, body).status_code == expected


def test_programs_neither_release_nor_decide(cast: Cast) -> None:
    hold = cast.session(cast.operator).post(HOLDS, HOLD).json()["id"]
    deletion = cast.session(cast.operator).post(DELETIONS, DELETION).json()["id"]
    client = cast.api()
    for address in (f"{HOLDS}/{hold}/release", f"{DELETIONS}/{deletion}/accept", f"{DELETIONS}/{deletion}/refuse"):
        assert problem(client.post(address, END)) == (403, "scope-missing")


def test_another_organizations_objects_do_not_exist(cast: Cast) -> None:
    operator = cast.session(cast.operator)
    hold = operator.post(HOLDS, HOLD).json()["id"]
    export = operator.post(EXPORTS, EXPORT).json()["id"]
    deletion = operator.post(DELETIONS, DELETION).json()["id"]
    stranger = cast.session(cast.other_operator)
    for address in (
        f"{HOLDS}/{hold}",
        f"{EXPORTS}/{export}",
        f"{EXPORTS}/{export}/download",
        f"{DELETIONS}/{deletion}",
    ):
        assert problem(stranger.get(address)) == (404, "not-found")
    for address in (f"{HOLDS}/{hold}/release", f"{DELETIONS}/{deletion}/accept", f"{DELETIONS}/{deletion}/refuse"):
        assert problem(stranger.post(address, END)) == (404, "not-found")
    assert violations() == ["cross_tenant"] * 7
    for address in (HOLDS, EXPORTS, DELETIONS):
        assert stranger.get(address).json()["results"] == []


@pytest.mark.parametrize("address", [HOLDS, EXPORTS, DELETIONS])
def test_unknown_filters_and_fields_are_refused(cast: Cast, address: str) -> None:
    session = cast.session(cast.operator)
    assert problem(session.get(f"{address}?colour=red")) == (400, "unknown-parameter")
    assert session.get(f"{address}?state=unknown").status_code == 400
    assert session.post(address, {"colour": "red"}).status_code == 400


def test_lists_are_paged_by_cursor(cast: Cast) -> None:
    session = cast.session(cast.operator)
    for number in range(3):
        assert session.post(HOLDS, HOLD | {"target": f"ctx-{number}"}).status_code == 201
    page = session.get(f"{HOLDS}?page_size=2").json()
    assert (len(page["results"]), bool(page["next"])) == (2, True)
    assert len(session.get(page["next"]).json()["results"]) == 1


def test_a_deletion_is_refused_with_a_lawful_reason(clinic: Clinic) -> None:
    cast = clinic.cast
    clinic.denied(moment=RECENT)
    made = cast.session(cast.operator).post(DELETIONS, DELETION).json()
    address = f"{DELETIONS}/{made['id']}"
    assert problem(cast.session(cast.operator).post(f"{address}/refuse", {"reason_code": "retention_not_over"})) == (
        403,
        "second-person-needed",
    )
    bob = cast.session(cast.person("bob", "operator"))
    blocked = bob.post(f"{address}/accept", {"reason_code": "data_subject_request"})
    assert problem(blocked) == (409, "erasure-blocked")
    assert blocked.json()["errors"][0]["rule"] == "retention_not_over"
    assert bob.post(f"{address}/refuse", {"reason_code": "policy_denied"}).status_code == 400
    refused = bob.post(f"{address}/refuse", {"reason_code": "retention_not_over"})
    assert (refused.status_code, refused.json()["state"]) == (200, "refused")
    assert problem(bob.post(f"{address}/accept", {"reason_code": "data_subject_request"})) == (409, "wrong-state")


def test_overdue_deletions_can_be_asked_for_and_are_said_aloud(cast: Cast, time_machine: Any) -> None:
    session = cast.session(cast.operator)
    session.post(DELETIONS, DELETION)
    assert session.get(f"{DELETIONS}?overdue=true").json()["results"] == []
    with every_tenant():
        due = DeletionRequest.objects.get().due_at
    time_machine.move_to(due)
    assert len(cast.session(cast.operator).get(f"{DELETIONS}?overdue=true").json()["results"]) == 1
    assert 'holdpoint_requests_overdue{kind="deletion"} 1.0' in session.get("/metrics").content.decode()
    notes = session.get("/health/ready").json()["notes"]
    assert [note for note in notes if "no worker of the lane" not in note] == [  # none runs in this test
        "1 deletion requests are past their due date"
    ]


def test_an_export_is_built_downloaded_and_gone(cast: Cast, tmp_path: Path) -> None:
    options = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    with override_settings(STORAGES={**storages.backends, "exports": options}):
        operator, auditor = cast.session(cast.operator), cast.session(cast.auditor)
        asked = operator.post(EXPORTS, EXPORT)
        assert (asked.status_code, asked["Location"]) == (202, f"{EXPORTS}/{asked.json()['id']}")
        address = asked["Location"]
        assert problem(auditor.get(f"{address}/download")) == (409, "export-not-ready")
        export_build_task(asked.json()["id"])
        assert auditor.get(address).json()["state"] == "ready"
        answer = auditor.get(f"{address}/download")
        assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
        assert b"".join(answer.streaming_content)[:2] == b"PK"
        assert cast.session(cast.reviewer).get(f"{address}/download").status_code == 403
        with every_tenant():
            ExportRequest.objects.update(expires_at=timezone.now())
        assert problem(auditor.get(f"{address}/download")) == (410, "export-gone")
        exports_expire_task()
        assert auditor.get(address).json()["state"] == "expired"
        assert list(tmp_path.rglob("*.zip")) == []
