"""The continuous check: it names a change by itself, stops what it touches, and two people let work go on."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from governance.integrity.models import RecordFault, RecordProgress
from governance.integrity.selectors.standing import record_denials
from governance.integrity.tasks import record_watch_task
from governance.ledger.models import LedgerEntry
from governance.shutdown.services import shutdown_release
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import WrongState
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, asked, contract
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all
from tests.governance.record.world import record_verified
from tests.tampering import triggers_off

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]


@pytest.fixture
def attempt(cast: Cast) -> Any:
    contract(cast, adapter="external", effect="idempotent")
    found = asked(cast.api("attempts:create"), connector="external", runtime_mode="client_driven")
    seal_all()
    record_watch_task()
    return found


def again(cast: Cast) -> Any:
    return ask(cast.api("attempts:create"), 2, connector="external", runtime_mode="client_driven")


def forged(sql: str, *parameters: Any, table: str = "attempts_attempt") -> None:
    with triggers_off(table), connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        assert cursor.rowcount


def faults() -> list[tuple[str, str]]:
    with every_tenant():
        return list(RecordFault.objects.values_list("table", "row"))


def test_an_honest_record_has_no_faults_and_work_goes_on(cast: Cast, attempt: Any) -> None:
    for _ in range(3):
        seal_all()
        record_watch_task()
    assert faults() == []
    assert RecordProgress.objects.get().round_ended_at is not None
    assert again(cast).status_code == 201


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE attempts_attempt SET target_ref = 'order/another' WHERE id = %s",
        "UPDATE attempts_attempt SET row_version = row_version - 1 WHERE id = %s",
    ],
)
def test_a_change_of_an_old_row_is_named_and_stops_its_organization(cast: Cast, attempt: Any, sql: str) -> None:
    forged(sql, attempt)
    record_watch_task()
    assert faults() == [("attempts_attempt", str(attempt))]
    refused = again(cast)
    assert (refused.status_code, refused.json()["reason_code"]) == (403, "record_differs")
    with every_tenant():
        assert LedgerEntry.objects.filter(action="record.fault_found").count() == 1
        (denial,) = record_denials()
    assert denial.organization_id == cast.organization.id
    record_watch_task()
    assert len(faults()) == 1, "one change is one fault"


def test_a_row_put_in_by_hand_is_named_by_the_count(cast: Cast, attempt: Any) -> None:
    forged(
        "INSERT INTO attempts_attempttransition (id, attempt_id, from_state, to_state, reason_code, actor_kind,"
        " actor_ref, at) SELECT gen_random_uuid(), attempt_id, from_state, to_state, reason_code, actor_kind,"
        " actor_ref, at FROM attempts_attempttransition WHERE attempt_id = %s LIMIT 1",
        attempt,
        table="attempts_attempttransition",
    )
    record_watch_task()
    assert [table for table, _ in faults()] == ["attempts_attempttransition"]


def test_a_deleted_row_is_named(cast: Cast, attempt: Any) -> None:
    forged("DELETE FROM attempts_attempttransition WHERE attempt_id = %s", attempt, table="attempts_attempttransition")
    record_watch_task()
    assert {table for table, _ in faults()} == {"attempts_attempttransition"}


def test_a_fault_of_no_organization_stops_everything_and_readiness_says_so(cast: Cast, attempt: Any) -> None:
    forged("UPDATE reasoncodes_reasoncode SET label = 'x' WHERE code = 'policy_denied'", table="reasoncodes_reasoncode")
    record_watch_task()
    assert again(cast).json()["reason_code"] == "record_differs"
    ready = Client().get("/health/ready")
    assert ready.json()["checks"]["record"]["status"] == "failing"


def test_nobody_releases_it_alone_and_two_people_do(cast: Cast, attempt: Any) -> None:
    forged("UPDATE attempts_attempt SET operation = 'other' WHERE id = %s", attempt)
    record_watch_task()
    with every_tenant():
        (denial,) = record_denials()
        someone = Actor(ActorKind.PERSON, cast.administrator.id, frozenset({cast.organization.id}))
        with pytest.raises(WrongState):
            shutdown_release(actor=someone, at=timezone.now(), shutdown_id=denial.id, installation=True)
    assert not record_verified("--full")["valid"]


def test_the_status_names_the_row_to_an_auditor_and_to_no_stranger(cast: Cast, attempt: Any) -> None:
    forged("UPDATE attempts_attempt SET operation = 'other' WHERE id = %s", attempt)
    record_watch_task()
    status = cast.api("ledger:read").get("/api/v1/record/status").json()
    assert (status["valid"], status["denied"]) == (False, True)
    assert [(one["table"], one["id"]) for one in status["faults"]] == [("attempts_attempt", str(attempt))]
    assert cast.api("attempts:create").get("/api/v1/record/status").status_code == 403
    other = cast.api("ledger:read", organization=cast.other).get("/api/v1/record/status").json()
    assert (other["denied"], other["faults"]) == (False, [])


def test_the_console_says_it_on_every_page(cast: Cast, attempt: Any) -> None:
    forged("UPDATE attempts_attempt SET operation = 'other' WHERE id = %s", attempt)
    record_watch_task()
    page = cast.console(cast.operator).get("/admin/governance/contract/").content.decode()
    assert "The record differs from the ledger" in page
    listed = cast.console(cast.auditor).get("/admin/governance/recordfault/").content.decode()
    assert str(attempt) in listed
    assert "What to do" in listed
