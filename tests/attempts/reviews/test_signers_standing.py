"""What people released is sent only while they could still release it; and nobody reviews what they authorized."""

import threading
import time
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from attempts.execution.models import DispatchIntent
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.transition import transition_apply
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from governance.people.services.people import person_role_give, person_role_take
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract, documents, retry_becomes_due
from tests.attempts.reviews.support import REVIEWER, Clinic, at_once, do, last_move, problem, status_of, url
from tests.cast import Cast
from tests.governance.support import in_parallel
from tests.governed import HOLD, open_contract

LOST = ("approved", "preflight-denied", "approver_standing_lost")


def take(cast: Cast, user: User, role: str = REVIEWER) -> None:
    with every_tenant():
        person_role_take(actor=SYSTEM, at=timezone.now(), user=user, organization=cast.organization, role=role)


def take_after(cast: Cast, user: User, *, seconds: float) -> None:
    time.sleep(seconds)
    take(cast, user)


def switch_off(cast: Cast, user: User) -> None:
    User.objects.filter(id=user.id).update(is_active=False)


def lease(cast: Cast, review: Review) -> Any:
    address = f"/api/v1/attempts/{review.attempt_id}/lease"
    return cast.api("attempts:execute").post(address, {}, format="json")


def explained(clinic: Clinic, review: Review) -> list[str]:
    answer = clinic.caller.get(f"/api/v1/attempts/{review.attempt_id}/explain").json()
    return [row["kind"] for row in answer["obstacles"]]


def released(clinic: Clinic, *clients: Any) -> Review:
    review = clinic.hold()
    for client in clients:
        assert do(client, review, "approve").status_code == 200
    assert status_of(review)[1] == "approved-for-execution"
    return review


@pytest.mark.parametrize("how", [take, switch_off])
def test_a_lease_is_refused_when_who_approved_has_lost_role_or_account(
    cast: Cast, clinic: Clinic, rita: Any, how: Any
) -> None:
    review = released(clinic, rita)
    assert explained(clinic, review) == []
    how(cast, cast.reviewer)
    assert explained(clinic, review) == ["approval"]
    refused = lease(cast, review)
    assert (*problem(refused), refused.json()["reason_code"]) == (409, "not-leasable", "approver_standing_lost")
    assert status_of(review) == LOST
    assert last_move(review).to_state == "preflight-denied"
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=review.attempt_id, action="attempt.denied")
        assert entry.reason_code == "approver_standing_lost"
        assert not DispatchIntent.objects.exists()
        attempt = Attempt.objects.get(id=review.attempt_id)
        assert (attempt.tries, attempt.lease_token, attempt.lease_owner) == (0, 0, "")


def test_one_lost_signer_of_two_is_enough(cast: Cast, two: Clinic, rita: Any, sam: Any) -> None:
    review = released(two, rita, sam)
    take(cast, cast.reviewer)
    assert lease(cast, review).status_code == 409
    assert status_of(review) == LOST


def test_a_role_that_is_back_counts_again(cast: Cast, clinic: Clinic, rita: Any) -> None:
    review = released(clinic, rita)
    take(cast, cast.reviewer)
    with every_tenant():
        person_role_give(
            actor=SYSTEM, at=timezone.now(), user=cast.reviewer, organization=cast.organization, role=REVIEWER
        )
    assert lease(cast, review).status_code == 200


@pytest.mark.parametrize("who", ["delegator", "delegate", "neither"])
def test_an_approval_of_who_stands_in_stands_on_their_own_role(cast: Cast, clinic: Clinic, rita: Any, who: str) -> None:
    dora = cast.person("dora", REVIEWER)
    review = clinic.hold()
    do(rita, review, "delegate")
    assert do(cast.session(dora), review, "approve").status_code == 200
    if who == "delegator":
        take(cast, cast.reviewer)
    if who == "delegate":
        take(cast, dora)
    assert lease(cast, review).status_code == (409 if who == "delegate" else 200)
    assert (status_of(review) == LOST) == (who == "delegate")


def test_who_became_the_person_behind_the_service_has_not_approved_it(cast: Cast, clinic: Clinic, rita: Any) -> None:
    review = released(clinic, rita)
    clinic.service.responsible = cast.reviewer
    with every_tenant():
        clinic.service.save(update_fields=["responsible"])
    assert lease(cast, review).status_code == 409
    assert status_of(review) == LOST


def test_after_its_first_lease_it_is_set_apart_and_not_denied(cast: Cast, rita: Any) -> None:
    """Denial is for what never ran."""
    contract(cast, adapter="external", effect="idempotent", rules=HOLD)
    asked = ask(cast.api("attempts:create"), connector="external", runtime_mode="client_driven")
    with every_tenant():
        review = Review.objects.select_related("attempt").get(id=asked.json()["review"]["id"])
    assert do(rita, review, "approve").status_code == 200
    executor = cast.api("attempts:execute")
    address = f"/api/v1/attempts/{review.attempt_id}"
    token = executor.post(f"{address}/lease", {}, format="json").json()["lease_token"]
    failed = {"lease_token": token, "category": "adapter_failure", "retryable": True, "reason_code": "adapter_failed"}
    assert executor.post(f"{address}/fail", failed, format="json").json()["state"] == "approved-for-execution"
    retry_becomes_due(review.attempt_id)  # type: ignore[arg-type]
    take(cast, cast.reviewer)
    assert executor.post(f"{address}/lease", {}, format="json").status_code == 409
    assert status_of(review)[1] == "failed-quarantined"
    with every_tenant():
        assert DispatchIntent.objects.count() == 1
        entry = LedgerEntry.objects.get(subject_id=review.attempt_id, action="attempt.quarantined")
        assert entry.payload["refused"] == "approver_standing_lost"


@pytest.mark.django_db(transaction=True)
def test_a_lease_that_comes_while_the_role_is_taken_waits_and_sees_it() -> None:
    cast = Cast()
    review = released(Clinic(cast), cast.session(cast.reviewer))
    taken, let_go = threading.Event(), threading.Event()

    def taking() -> None:
        with every_tenant(), transaction.atomic():
            person_role_take(
                actor=SYSTEM, at=timezone.now(), user=cast.reviewer, organization=cast.organization, role=REVIEWER
            )
            taken.set()
            assert let_go.wait(20)

    def leasing() -> int:
        assert taken.wait(20)
        threading.Timer(0.3, let_go.set).start()
        return int(lease(cast, review).status_code)

    assert in_parallel(taking, leasing)[1] == 409
    assert status_of(review) == LOST
    with every_tenant():
        assert not DispatchIntent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_lease_against_the_loss_of_the_role() -> None:
    """Whichever came first: an intent that is on record, or a denial and no intent."""
    cast = Cast()
    clinic = Clinic(cast)
    executor = cast.api("attempts:execute")
    outcomes = set()
    for number in range(10):
        signer = cast.person(f"signer{number}", REVIEWER)
        review = released(clinic, cast.session(signer))
        address = f"/api/v1/attempts/{review.attempt_id}/lease"
        status, _ = at_once(
            lambda address=address: executor.post(address, {}, format="json").status_code,
            lambda signer=signer, number=number: take_after(cast, signer, seconds=0.003 * number),
        )
        with every_tenant():
            intents = DispatchIntent.objects.filter(attempt_id=review.attempt_id).count()
        expected = {200: (1, ("approved", "approved-for-execution", "")), 409: (0, LOST)}
        assert (intents, status_of(review)) == expected[status]
        outcomes.add(status)
    assert outcomes <= {200, 409}


def operating_reviewer(cast: Cast) -> User:
    """Otto has a pair of roles that is forbidden without an exception."""
    otto = cast.person("otto", "operator")
    who: dict[str, Any] = {"actor": SYSTEM, "at": timezone.now(), "user": otto, "organization": cast.organization}
    with every_tenant():
        person_role_give(**who, role=REVIEWER, exception=True)
    return otto


def set_apart(cast: Cast, *, compensation: str | None = None) -> QuarantineCase:
    """An attempt that was released and whose outcome is unknown, under a contract that holds everything."""
    found = documents(failure_quarantine={"compensation_contract": compensation, "incident_required": False})
    open_contract(cast, rules=HOLD, documents=found, adapter="external")
    asked = ask(cast.api("attempts:create"), connector="external")
    with every_tenant(), transaction.atomic():
        review = Review.objects.select_related("attempt").get(id=asked.json()["review"]["id"])
    assert do(cast.session(cast.person("first", REVIEWER)), review, "approve").status_code == 200
    with every_tenant(), transaction.atomic():
        attempt = Attempt.objects.get(id=review.attempt_id)
        transition_apply(attempt, "quarantine", actor=SYSTEM, at=timezone.now(), reason_code="outcome_unknown")
        return QuarantineCase.objects.create(
            organization=cast.organization,
            attempt=attempt,
            category="outcome_unknown",
            reason_code="outcome_unknown",
            escalation_owner="trust-operations",
            escalate_at=timezone.now(),
            opened_at=timezone.now(),
        )


@pytest.mark.parametrize(("verb", "finding"), [("authorize-retry", "did_not_happen"), ("compensate", "happened")])
def test_whoever_authorizes_a_new_attempt_does_not_review_it(cast: Cast, rita: Any, verb: str, finding: str) -> None:
    case = set_apart(cast, compensation="undo-case/1")
    open_contract(cast, slug="undo-case", rules=HOLD, documents=documents(), adapter="external")
    otto = cast.session(operating_reviewer(cast))
    answer = otto.post(f"/api/v1/quarantine-cases/{case.id}/{verb}", {"finding": finding}, format="json")
    assert answer.status_code == 202, answer.content
    with every_tenant():
        review = Review.objects.select_related("attempt").get(id=answer.json()["review"]["id"])
    card = otto.get(url(review)).json()
    assert [(row["username"], row["reason"]) for row in card["excluded"]] == [
        ("alice", "own_request"),  # responsible for the service that asked first
        ("otto", "authorized_it"),
    ]
    assert card["may_decide"]["reason"] == "authorized_it"
    assert "otto" not in card["quorum"]["by_tier"][0]["may_sign"]
    for word in ("approve", "reject", "claim"):
        assert problem(do(otto, review, word)) == (403, "own-work")
    assert status_of(review)[0] == "requested"
    assert do(rita, review, "approve").status_code == 200
    assert status_of(review)[1] == "approved-for-execution"


def test_who_authorized_it_cannot_send_a_delegate_either(cast: Cast) -> None:
    case = set_apart(cast)
    otto = cast.session(operating_reviewer(cast))
    dora = cast.session(cast.person("dora", REVIEWER))
    answer = otto.post(
        f"/api/v1/quarantine-cases/{case.id}/authorize-retry", {"finding": "did_not_happen"}, format="json"
    )
    with every_tenant():
        review = Review.objects.select_related("attempt").get(id=answer.json()["review"]["id"])
    assert do(otto, review, "delegate").status_code == 201
    assert problem(do(dora, review, "approve")) == (403, "own-work")
