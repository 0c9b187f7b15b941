"""Faults of the record are accepted by two people; one alone, a service or a stranger cannot. Work then goes on."""

from typing import Any

import pytest
from django.db import connection

from governance.integrity.models import RecordAcceptance, RecordFault
from governance.integrity.selectors.standing import record_denials
from governance.integrity.tasks import record_watch_task
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, asked, contract
from tests.cast import Cast
from tests.governance.authority.support import CHANGES, confirm
from tests.governance.ledger.sealing import seal_all
from tests.tampering import triggers_off

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]
BODY = {"kind": "record.accept", "subject": "record", "details": {}}
PAGE, ACCEPT = "/admin/governance/recordfault/", "/admin/governance/recordfault/accept/"
STATUS = "/api/v1/record/status"


def forge(attempt: Any, column: str = "operation") -> None:
    with triggers_off("attempts_attempt"), connection.cursor() as cursor:
        cursor.execute(f"UPDATE attempts_attempt SET {column} = 'forged' WHERE id = %s", [attempt])  # noqa: S608
        assert cursor.rowcount == 1
    record_watch_task()


@pytest.fixture
def two(cast: Cast) -> Cast:
    """Alice and Amir operate the clinic, and one of its attempts was changed by hand."""
    _ = cast.operator, cast.second_operator
    contract(cast, adapter="external", effect="idempotent")
    made = asked(cast.api("attempts:create"), connector="external", runtime_mode="client_driven")
    seal_all()
    record_watch_task()
    forge(made)
    return cast


def propose(cast: Cast, by: User, **changes: Any) -> Any:
    return cast.session(by).post(CHANGES, BODY | changes, format="json")


def works(cast: Cast, number: int = 7) -> bool:
    answer = ask(cast.api("attempts:create"), number, connector="external", runtime_mode="client_driven")
    assert (answer.status_code == 201) or answer.json()["reason_code"] == "record_differs"
    return bool(answer.status_code == 201)


def standing() -> tuple[int, int, int]:
    with every_tenant():
        return RecordFault.objects.count(), RecordAcceptance.objects.count(), len(record_denials())


def test_two_people_accept_and_work_goes_on(two: Cast) -> None:
    proposed = propose(two, two.operator)
    assert proposed.status_code == 201, proposed.content
    with every_tenant():
        fault = RecordFault.objects.get()
    assert proposed.json()["before"]["faults"] == [f"{fault.table} {fault.row}: {fault.what}"]
    assert (standing(), works(two)) == ((1, 0, 1), False)
    done = confirm(two, proposed.json()["id"], by=two.second_operator)
    assert (done.status_code, done.json()["state"]) == (200, "in_force")
    assert (standing(), works(two)) == ((1, 1, 0), True)
    with every_tenant():
        written = LedgerEntry.objects.filter(action__in=["record.fault_accepted", "shutdown.released"])
        assert sorted(written.values_list("action", "reason_code")) == [
            ("record.fault_accepted", "record_differs"),
            ("shutdown.released", "record_differs"),
        ]


def test_the_proposer_alone_and_a_service_change_nothing(two: Cast) -> None:
    change = propose(two, two.operator).json()["id"]
    assert confirm(two, change, by=two.operator).status_code == 403
    service = two.api("governance:read", "governance:write", responsible=two.second_operator)
    assert service.post(f"{CHANGES}/{change}/confirm", {}, format="json").status_code == 403
    assert (standing(), works(two)) == ((1, 0, 1), False)


def test_an_accepted_fault_stays_accepted_and_another_one_stops_work_again(two: Cast) -> None:
    confirm(two, propose(two, two.operator).json()["id"], by=two.second_operator)
    seal_all()
    for _ in range(2):
        record_watch_task()
    assert standing() == (1, 1, 0)
    with every_tenant():
        row = RecordFault.objects.get().row
    forge(row, "target_ref")  # the same row, once more
    assert (standing(), works(two)) == ((2, 1, 1), False)


def test_a_fault_that_is_found_after_the_proposal_is_not_accepted_with_it(two: Cast) -> None:
    change = propose(two, two.operator).json()["id"]
    with triggers_off("attempts_attempttransition"), connection.cursor() as cursor:
        cursor.execute("UPDATE attempts_attempttransition SET reason_code = 'forged'")
    record_watch_task()
    assert confirm(two, change, by=two.second_operator).status_code == 200
    found, accepted, denials = standing()
    assert found > accepted == 1
    assert (denials, works(two)) == (1, False)


def test_nothing_open_is_nothing_to_accept(cast: Cast) -> None:
    _ = cast.second_operator
    answer = propose(cast, cast.operator)
    assert answer.status_code == 409, answer.content


def test_details_are_refused(two: Cast) -> None:
    answer = propose(two, two.operator, details={"faults": []})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/details")


def test_only_operators_of_the_installations_home_may_propose(two: Cast) -> None:
    for person in (two.auditor, two.nobody, two.reviewer):
        assert propose(two, person).status_code == 403
    assert propose(two, two.other_operator).status_code == 403
    assert standing() == (1, 0, 1)


def test_the_console_proposes_and_a_second_person_confirms(two: Cast) -> None:
    assert "Propose to accept 1 fault" in two.console(two.operator).get(PAGE).content.decode()
    answer = two.console(two.operator).post(ACCEPT)
    assert (answer.status_code, "/authoritychange/" in answer["Location"]) == (302, True)
    assert standing() == (1, 0, 1)
    change = answer["Location"].split("/authoritychange/")[1].split("/")[0]
    assert confirm(two, change, by=two.second_operator).status_code == 200
    assert "accepted" in two.console(two.auditor).get(PAGE).content.decode()
    assert (standing(), works(two)) == ((1, 1, 0), True)


def test_who_may_look_and_who_may_propose_in_the_console(two: Cast) -> None:
    assert two.console(two.auditor).get(PAGE).status_code == 200
    assert "Propose to accept 1" not in two.console(two.auditor).get(PAGE).content.decode()
    for person in (two.auditor, two.nobody, two.other_operator, two.reviewer):
        assert two.console(person).post(ACCEPT).status_code == 403
    assert two.console(two.nobody).get(PAGE).status_code in (302, 403)
    assert two.console(two.operator).get(ACCEPT).status_code == 405
    assert standing() == (1, 0, 1)


def test_another_organization_sees_no_fault_of_this_one(two: Cast) -> None:
    with every_tenant():
        row = RecordFault.objects.get().row
    stranger = two.person("otto", "auditor", organization=two.other)
    assert row not in two.console(stranger).get(PAGE).content.decode()
    answer = two.session(stranger).get(STATUS)
    assert (answer.status_code, answer.json()["faults"], answer.json()["denied"]) == (200, [], False)
    assert [one["id"] for one in two.session(two.auditor).get(STATUS).json()["faults"]] == [row]


def test_the_status_needs_the_ledgers_permission(two: Cast) -> None:
    assert two.session(two.nobody).get(STATUS).status_code == 403
    assert two.api("attempts:create").get(STATUS).status_code == 403
    assert two.with_key("hp_wrong").get(STATUS).status_code == 401
    assert two.session(two.auditor).get(f"{STATUS}?page=1").status_code == 400
