"""Operators withdraw attempts with a reason, one or many; what ended or was leased stays as it is."""

from typing import Any

import pytest

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governance.support import row_counts
from tests.governed import HOLD, open_contract

LIST = "/admin/attempts/attempt/"
REASON = {"reason_code": "planned_maintenance", "note": ""}


@pytest.fixture
def held(cast: Cast) -> list[Attempt]:
    open_contract(cast, rules=HOLD)
    caller = cast.api("attempts:create")
    for number in range(3):
        payload = body(patient_context_ref=f"ctx-{number:04}", action={"target_ref": f"case-{number:04}"})
        assert post(caller, payload, key=f"key-{number:08}").status_code == 202
    with every_tenant():
        return list(Attempt.objects.order_by("id"))


def states(held: list[Attempt]) -> list[tuple[str, str]]:
    with every_tenant():
        return list(Attempt.objects.order_by("id").values_list("state", "reason_code"))


def withdraw(held: list[Attempt]) -> str:
    return f"{LIST}withdraw/?ids={','.join(str(one.id) for one in held)}"


def test_one_is_withdrawn_with_a_reason_that_is_on_the_record(cast: Cast, held: list[Attempt]) -> None:
    console, address = cast.console(cast.operator), f"{LIST}{held[0].id}/act/cancel/"
    assert console.post(address, {"reason_code": "", "note": ""}).status_code == 200
    assert console.post(address, {"reason_code": "incident_response", "note": ""}).status_code == 400
    assert console.post(address, {"reason_code": "incident_response", "note": "see INC-7"}).status_code == 302
    assert states(held)[0] == ("preflight-denied", "incident_response")
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=held[0].id, action="attempt.denied")
        assert Review.objects.get(attempt=held[0]).status == "canceled"
    assert (entry.actor_kind, entry.reason_code, set(entry.payload)) == (
        "person",
        "incident_response",
        {"note", "note_sha256"},
    )


def test_many_are_shown_first_and_each_has_its_result(cast: Cast, held: list[Attempt]) -> None:
    console = cast.console(cast.operator)
    ticked: dict[str, Any] = {"action": "withdraw_selected", "_selected_action": [str(one.id) for one in held]}
    sent = console.post(LIST, ticked)
    assert sent.status_code == 302
    before = row_counts()
    assert "3 of 3</strong> would be denied" in console.get(sent["Location"]).content.decode()
    assert row_counts() == before
    console.post(f"{LIST}{held[1].id}/act/cancel/", REASON)
    assert "2 of 3</strong> would be denied" in console.get(withdraw(held)).content.decode()
    assert console.post(withdraw(held), {"reason_code": "", "note": ""}).status_code == 200
    done = console.post(withdraw(held), REASON).content.decode()
    assert "2 of 3 withdrawn." in done
    assert "It is too late to withdraw" in done
    assert states(held) == [("preflight-denied", "planned_maintenance")] * 3


def test_only_operators_of_the_organization_withdraw(cast: Cast, held: list[Attempt]) -> None:
    before = states(held)
    for who in (cast.auditor, cast.reviewer, cast.owner, cast.nobody):
        assert cast.console(who).get(withdraw(held)).status_code == 403
        assert cast.console(who).post(withdraw(held), REASON).status_code == 403
        assert cast.console(who).post(f"{LIST}{held[0].id}/act/cancel/", REASON).status_code == 403
    stranger = cast.console(cast.other_operator)
    assert stranger.post(withdraw(held), REASON).status_code == 302  # back to the list: there is nothing of theirs
    assert stranger.post(f"{LIST}{held[0].id}/act/cancel/", REASON).status_code == 404
    assert cast.console(cast.operator).get(f"{LIST}withdraw/?ids=nonsense").status_code == 302
    assert states(held) == before
