"""Strikes: refusals that only a mistaken or hostile caller causes suspend its account until it is reinstated."""

import time
from typing import Any

import pytest
from django.utils import timezone

from governance.contracts.rules.documents import default_documents
from governance.ledger.models import LedgerEntry
from governance.outside.valkey import valkey
from governance.people.models import ServiceAccount
from governance.people.services.accounts import service_account_reinstate
from governance.throttles.services import STRIKES
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import INTAKE, intake, problem
from tests.governed import open_contract

pytestmark = pytest.mark.django_db(transaction=True)
PHI = {"metadata": {"note": "john.doe@example.com"}}


def account() -> ServiceAccount:
    with every_tenant():
        return ServiceAccount.objects.get()


def strikes() -> int:
    return sum(int(valkey().get(key) or 0) for key in valkey().scan_iter(f"{STRIKES}{account().id}:*"))


def reinstate(cast: Cast) -> None:
    with every_tenant():
        service_account_reinstate(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            service_account_id=account().id,
        )


def test_five_refusals_at_the_boundary_suspend_the_account_and_an_operator_reinstates_it(
    transactional_db: None, cast: Cast, caller: Any
) -> None:
    open_contract(cast)
    for number in range(1, 6):
        assert account().status == "active"
        assert problem(intake(caller, key=f"key-0000000{number}", **PHI)) == (422, "metadata-boundary")
        assert strikes() == number
    told = intake(caller, key="key-00000006")
    assert problem(told) == (403, "misuse-suspended")
    assert told.json()["reason_code"] == "misuse_suspended"
    assert told.json()["suspended_until"] == "an operator reinstates the account"
    assert (account().status, account().suspended_reason_code) == ("suspended", "misuse_suspended")
    with every_tenant():
        entry = LedgerEntry.objects.get(action="service_account.suspended")
    assert (entry.subject_id, entry.actor_kind, entry.reason_code) == (account().id, "system", "misuse_suspended")
    reinstate(cast)
    assert intake(caller, key="key-00000007").status_code == 201


def test_reinstating_forgets_the_strikes(transactional_db: None, cast: Cast, caller: Any) -> None:
    open_contract(cast)
    for number in range(1, 6):
        intake(caller, key=f"key-0000000{number}", **PHI)
    reinstate(cast)
    assert strikes() == 0
    assert intake(caller, key="key-00000006", **PHI).status_code == 422
    assert (account().status, strikes()) == ("active", 1)


def test_bodies_that_cannot_be_read_count_as_strikes_and_the_contract_says_how_many(
    transactional_db: None, cast: Cast, caller: Any
) -> None:
    documents = default_documents()
    documents["throttles_and_misuse"]["misuse"]["strikes"] = 2
    open_contract(cast, documents=documents)
    for _ in range(2):
        answer = caller.post(INTAKE, {"colour": "red"}, format="json", HTTP_IDEMPOTENCY_KEY="key-00000001")
        assert problem(answer) == (400, "invalid-input")
    assert problem(intake(caller)) == (403, "misuse-suspended")


def test_crossing_into_another_organization_counts_and_a_plain_404_does_not(transactional_db: None, cast: Cast) -> None:
    contract = open_contract(cast)
    client = cast.api("governance:read", organization=cast.other)
    client.get("/api/v1/contracts/01900000-0000-7000-8000-000000000000")
    assert strikes() == 0
    for number in range(1, 6):
        assert problem(client.get(f"/api/v1/contracts/{contract.id}")) == (404, "not-found")
        assert strikes() == number
    assert problem(client.get("/api/v1/contracts")) == (403, "misuse-suspended")


def test_people_are_not_suspended_by_a_counter(transactional_db: None, cast: Cast) -> None:
    contract = open_contract(cast)
    client = cast.session(cast.other_operator)
    for _ in range(7):
        assert client.get(f"/api/v1/contracts/{contract.id}").status_code == 404
    assert client.get("/api/v1/contracts").status_code == 200
    assert not list(valkey().scan_iter(f"{STRIKES}{cast.other_operator.id}*"))


def test_refusals_that_happen_to_honest_callers_are_no_strikes(transactional_db: None, cast: Cast, caller: Any) -> None:
    documents = default_documents()
    for row in documents["throttles_and_misuse"]["limits"]:
        row["limit"] = 1
    open_contract(cast, documents=documents)
    assert [intake(caller, key=f"key-0000000{number}").status_code for number in range(4)] == [201, 429, 429, 429]
    assert strikes() == 0


def test_strikes_are_counted_in_each_contracts_own_window(transactional_db: None, cast: Cast, caller: Any) -> None:
    """A contract with a short window and many strikes does not shorten the window of another."""
    for slug, window, most in (("short", 1, 100), ("long", 600, 2)):
        documents = default_documents()
        documents["throttles_and_misuse"]["misuse"] |= {"window_seconds": window, "strikes": most}
        open_contract(cast, slug=slug, policy_slug=slug, documents=documents)
    urls = [f"/api/v1/execution/{slug}/1/attempts" for slug in ("short", "long")]
    assert problem(intake(caller, url=urls[0], **PHI)) == (422, "metadata-boundary")
    assert problem(intake(caller, url=urls[1], key="key-00000002", **PHI)) == (422, "metadata-boundary")
    assert account().status == "active"
    time.sleep(1.1)
    assert problem(intake(caller, url=urls[1], key="key-00000003", **PHI)) == (422, "metadata-boundary")
    assert account().status == "suspended"
