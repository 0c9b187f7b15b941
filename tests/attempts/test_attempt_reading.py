"""Reading attempts, waiting for them, withdrawing and repeating them."""

import threading
import time
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections
from django.utils import timezone

from attempts.intake.services.follow_up import attempt_cancel
from attempts.lifecycle.models import Attempt, Slot
from attempts.lifecycle.services.transition import transition_apply
from governance.contracts.services.contracts import contract_suspend
from governance.ledger.models import LedgerEntry
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import DENY, HOLD, open_contract
from tests.tampering import triggers_off


def made(cast: Cast, **kwargs: Any) -> tuple[Any, str]:
    """A caller and the id of its new attempt."""
    open_contract(cast, **kwargs)
    caller = cast.api("attempts:create")
    answer = post(caller, body()).json()
    return caller, answer.get("id") or answer["attempt_id"]


READS = ["", "/timeline", "/decision", "/explain", "/receipts"]


@pytest.mark.parametrize("part", READS)
def test_the_caller_and_the_organizations_people_may_look_and_nobody_else(cast: Cast, part: str) -> None:
    caller, attempt_id = made(cast, rules=HOLD)
    url = f"/api/v1/attempts/{attempt_id}{part}"
    assert caller.get(url).status_code == 200
    for person in (cast.operator, cast.auditor, cast.reviewer):
        assert cast.session(person).get(url).status_code == 200
    assert cast.session(cast.nobody).get(url).status_code == 403
    assert cast.api("governance:read").get(url).status_code == 403
    assert cast.api("attempts:create", organization=cast.other).get(url).status_code == 404
    assert cast.session(cast.other_operator).get(url).status_code == 404
    with every_tenant():
        assert GovernanceViolation.objects.filter(kind="cross_tenant", subject_id=attempt_id).count() == 2


def test_the_list_filters_and_refuses_unknown_filters(cast: Cast) -> None:
    caller, attempt_id = made(cast)
    found = caller.get("/api/v1/attempts", {"state": "approved-for-execution", "workflow_slug": "close-case"}).json()
    assert [row["id"] for row in found["results"]] == [attempt_id]
    assert caller.get("/api/v1/attempts", {"state": "completed"}).json()["results"] == []
    assert caller.get("/api/v1/attempts", {"stat": "completed"}).status_code == 400
    assert caller.get("/api/v1/attempts", {"state": "nonsense"}).status_code == 400


def test_the_timeline_tells_the_story_in_order(cast: Cast) -> None:
    caller, attempt_id = made(cast, rules=HOLD)
    actions = [row["action"] for row in caller.get(f"/api/v1/attempts/{attempt_id}/timeline").json()]
    assert actions == ["attempt.received", "attempt.deduplicated", "attempt.held"]


def test_the_decision_shows_every_evaluator_in_words(cast: Cast) -> None:
    caller, attempt_id = made(cast, rules=DENY)
    decision = caller.get(f"/api/v1/attempts/{attempt_id}/decision").json()
    assert [row["evaluator"] for row in decision["evaluators"]] == [
        "contract_open",
        "shutdown",
        "envelope",
        "metadata_boundary",
        "region",
        "authorization",
        "throttle",
        "concurrency",
        "policy",
    ]
    assert decision["verdict"] == "deny"
    assert decision["reason_code"] == "policy_denied"
    assert all(row["explanation"] for row in decision["evaluators"])
    assert len(decision["request_sha256"]) == len(decision["environment_sha256"]) == 64


def test_explain_names_everything_that_holds_it_up(cast: Cast) -> None:
    caller, attempt_id = made(cast, rules=HOLD)
    with every_tenant():
        attempt = Attempt.objects.get(id=attempt_id)
        shutdown_engage(
            actor=SYSTEM,
            at=timezone.now(),
            scope=ShutdownScope.ORGANIZATION,
            organization_id=cast.organization.id,
            reason_code="rehearsal",
        )
        contract_suspend(actor=SYSTEM, at=timezone.now(), contract_id=attempt.contract_id, reason_code="rehearsal")
    found = caller.get(f"/api/v1/attempts/{attempt_id}/explain").json()
    assert {row["kind"] for row in found["obstacles"]} == {"review", "shutdown", "contract"}


@pytest.mark.parametrize("rules", [None, HOLD], ids=["approved", "held"])
def test_the_caller_withdraws_before_anything_ran(cast: Cast, rules: Any) -> None:
    caller, attempt_id = made(cast, rules=rules)
    answer = caller.post(f"/api/v1/attempts/{attempt_id}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "preflight-denied")
    assert answer.json()["reason_code"] == "cancelled_by_caller"
    assert caller.post(f"/api/v1/attempts/{attempt_id}/cancel").status_code == 409
    with every_tenant():
        assert not Slot.objects.exists()
        assert LedgerEntry.objects.filter(action="attempt.denied", subject_id=attempt_id).count() == 1


def test_nobody_else_withdraws_it(cast: Cast) -> None:
    _, attempt_id = made(cast)
    url = f"/api/v1/attempts/{attempt_id}/cancel"
    assert cast.api("attempts:create").post(url).status_code == 404
    assert cast.api("attempts:create", organization=cast.other).post(url).status_code == 404
    assert cast.session(cast.reviewer).post(url).status_code == 403
    assert cast.session(cast.auditor).post(url).status_code == 403
    assert cast.session(cast.operator).post(url).status_code == 200


def test_after_a_lease_it_is_too_late(cast: Cast) -> None:
    caller, attempt_id = made(cast)
    with every_tenant(), triggers_off("attempts_attempt"):
        Attempt.objects.filter(id=attempt_id).update(lease_token=1)
    assert caller.post(f"/api/v1/attempts/{attempt_id}/cancel").status_code == 409


def test_a_denied_attempt_is_replayed_as_a_new_one_where_the_contract_allows(cast: Cast) -> None:
    caller, attempt_id = made(cast, rules=DENY)
    url = f"/api/v1/attempts/{attempt_id}/replay"
    answer = caller.post(url, HTTP_IDEMPOTENCY_KEY="key-replay-0001")
    assert answer.status_code == 403
    with every_tenant():
        again = Attempt.objects.get(id=answer.json()["attempt_id"])
        assert str(again.retry_of_id) == attempt_id
        assert again.decision_id != Attempt.objects.get(id=attempt_id).decision_id
    assert cast.api("attempts:create").post(url, HTTP_IDEMPOTENCY_KEY="key-replay-0002").status_code == 409


def test_an_approved_attempt_is_not_eligible_for_replay(cast: Cast) -> None:
    caller, attempt_id = made(cast)
    answer = caller.post(f"/api/v1/attempts/{attempt_id}/replay", HTTP_IDEMPOTENCY_KEY="key-replay-0001")
    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[1]) == (409, "not-eligible")


@pytest.mark.django_db(transaction=True)
def test_waiting_ends_when_the_attempt_moves_and_holds_no_connection() -> None:
    cast = Cast()
    caller, attempt_id = made(cast, rules=HOLD)
    found: dict[str, Any] = {}

    def wait() -> None:
        started = time.monotonic()
        answer = caller.get(f"/api/v1/attempts/{attempt_id}", HTTP_PREFER="wait=20")
        found.update(state=answer.json()["state"], seconds=time.monotonic() - started, headers=answer.headers)
        connections.close_all()

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(1.0)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend'"
        )
        assert cursor.fetchone() == (1,), "the sleeper must not hold a connection"
    with every_tenant():
        attempt_cancel(actor=SYSTEM, at=timezone.now(), attempt_id=UUID(attempt_id))
    thread.join(timeout=15)
    assert found["state"] == "preflight-denied"
    assert found["seconds"] < 10
    assert found["headers"]["Preference-Applied"] == "wait=20"


def test_the_state_field_is_protected_and_illegal_moves_are_409(cast: Cast) -> None:
    from reasoncodes.base.errors import WrongState

    _, attempt_id = made(cast)
    with every_tenant():
        attempt = Attempt.objects.get(id=attempt_id)
        with pytest.raises(AttributeError):
            attempt.state = "completed"
        with pytest.raises(WrongState):
            transition_apply(attempt, "hold", actor=SYSTEM, at=timezone.now(), reason_code="review_required")
