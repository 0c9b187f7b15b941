"""S2, section 3: the four classes of failure, with one test per example of the document."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone

from attempts.execution.services.dispatch import attempt_dispatch
from attempts.lifecycle.models import Attempt
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.services import decision_replay
from governance.ledger.models import LedgerEntry
from governance.outside.valkey import valkey
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.conftest import target as target
from tests.attempts.execution.support import attempt, contract
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.governed import HOLD, open_contract
from tests.leaves.support import ask, said

URL = "/api/v1/execution/close-case/1/attempts"


@pytest.fixture
def caller(cast: Cast) -> Any:
    return cast.api("attempts:create")


# 3.1 Pre-enforcement failure: BLOCK, `invalid_input`, one write, no retry.


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{not json", id="invalid payload"),
        pytest.param(b'{"action": {"operation": "case.close"}}', id="missing required fields"),
        pytest.param(b'{"action": 1, "Jane Doe": 2}', id="contract violation"),
    ],
)
def test_invalid_input_is_one_recorded_denial_with_a_decision(cast: Cast, caller: Any, body: bytes) -> None:
    open_contract(cast)
    before = written()
    answer = caller.post(URL, body, content_type="application/json", HTTP_IDEMPOTENCY_KEY="key-00000001")
    assert said(answer) == (400, "invalid_input")
    with every_tenant():
        decision = EnforcementDecision.objects.get()
        entry = LedgerEntry.objects.get(action="attempt.refused")
        assert not Attempt.objects.exists()
        assert decision_replay(row=decision).agrees
    assert answer.json()["decision_id"] == entry.payload["decision"] == str(decision.id)
    assert (decision.verdict, decision.reason_code) == ("deny", "invalid_input")
    assert entry.payload["request_sha256"] == decision.request_sha256
    assert "Jane" not in str(decision.request) + str(decision.results)
    assert written() == before + 1
    assert ask(caller, key="key-00000001").status_code == 201


def written() -> int:
    with every_tenant():
        return LedgerEntry.objects.count()


# 3.2 Enforcement logic failure: BLOCK, `enforcement_exception`, one immutable record, no re-execution.


def failing_rule(when: str) -> list[dict[str, Any]]:
    return [{"id": "broken", "when": when, "verdict": "allow"}]


def test_an_evaluator_that_crashes_denies_once(cast: Cast, caller: Any) -> None:
    open_contract(cast, rules=failing_rule("metadata.confidence > 0.5"))
    denied_by_failure(caller, "condition_error")


def test_an_unexpected_exception_denies_once(cast: Cast, caller: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    open_contract(cast)
    # What no rule of ours can bring about: the interpreter itself fails inside an evaluator.
    monkeypatch.setattr("governance.enforcement.rules.evaluators.region.sorted", exploding, raising=False)
    denied_by_failure(caller, "error")


def test_a_dependency_that_times_out_denies_and_nothing_is_tried_again(cast: Cast, caller: Any, settings: Any) -> None:
    open_contract(cast)
    real, settings.REDIS_URL = settings.REDIS_URL, "unix:///nonexistent/holdpoint.sock"
    valkey.cache_clear()
    try:
        answer = ask(caller)
    finally:
        settings.REDIS_URL = real
        valkey.cache_clear()
    assert said(answer) == (503, "throttle_unavailable")
    with every_tenant():
        assert EnforcementDecision.objects.get().verdict == "deny"
        assert Attempt.objects.get().state == "preflight-denied"


def exploding(*_: Any) -> Any:
    raise MemoryError


def denied_by_failure(caller: Any, named: str) -> None:
    assert said(ask(caller)) == (403, "enforcement_exception")
    with every_tenant():
        row = EnforcementDecision.objects.get()
        assert (row.verdict, row.reason_code) == ("deny", "enforcement_exception")
        failed = [result for result in row.results if result["reason_code"] == "enforcement_exception"]
        assert any(named in result["inputs"] for result in failed)
        assert Attempt.objects.get().state == "preflight-denied"


# 3.3 Adapter execution failure: reported, recorded, no automatic retry, no replay.


@pytest.mark.parametrize("status", [pytest.param(503, id="a messaging API fails"), pytest.param(429, id="and is busy")])
def test_an_adapter_that_fails_is_recorded_and_not_tried_again(
    cast: Cast, caller: Any, target: CountingTarget, status: int
) -> None:
    contract(cast)
    target.statuses = [status, 200]
    failed = dispatched(caller, "http")
    assert (failed.state, failed.reason_code) == ("failed-quarantined", "adapter_failed")
    assert len(target.requests) == 1


def test_mail_that_the_server_does_not_take_is_recorded_and_not_sent_again(
    cast: Cast, caller: Any, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "governance.outside.mail.TimedEmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    settings.HOLDPOINT_EMAIL_TARGETS = {"clinic/close-case": "desk@clinic.example"}
    contract(cast, adapter="email")
    failed = dispatched(caller, "email")
    assert failed.state == "failed-quarantined"
    assert failed.next_eligible_at is None


def test_an_external_service_that_never_answers_is_unknown_and_waits_for_a_person(
    cast: Cast, caller: Any, target: CountingTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attempts.execution.services.dispatch.CALL_SECONDS", 1)
    contract(cast)
    target.hold = True
    failed = dispatched(caller, "http")
    assert (failed.state, failed.reason_code) == ("failed-quarantined", "outcome_unknown")


def dispatched(caller: Any, connector: str) -> Attempt:
    found = ask(caller, action={"connector": connector})
    attempt_dispatch(attempt_id=UUID(found.json()["id"]), now=timezone.now)
    row = attempt(UUID(found.json()["id"]))
    assert attempt_dispatch(attempt_id=row.id, now=timezone.now) is None
    return row


# 3.4 Bucket write failure: the failure goes upstream. No retry, no other store, no compensation.


def schema_rejection(run: Callable[[str], Any]) -> None:
    run("ALTER TABLE governance_ledgerentry RENAME COLUMN payload TO payload_before")


def quota_exceeded(run: Callable[[str], Any]) -> None:
    raising(run, "53100")


def governance_denial(run: Callable[[str], Any]) -> None:
    raising(run, "P0001")


def no_privilege(run: Callable[[str], Any]) -> None:
    run("REVOKE INSERT ON governance_ledgerentry FROM CURRENT_USER")


def read_only(run: Callable[[str], Any]) -> None:
    run("SET LOCAL transaction_read_only = on")


def raising(run: Callable[[str], Any], code: str) -> None:
    run(
        "CREATE FUNCTION refuse_entry() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$"
    )
    run("CREATE TRIGGER refused BEFORE INSERT ON governance_ledgerentry FOR EACH ROW EXECUTE FUNCTION refuse_entry()")


def refused(how: Callable[[Callable[[str], Any]], None], door: Callable[[], Any]) -> Any:
    """What the door answers while the ledger refuses; afterwards it is as before."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            # DDL waits for no deferred check of what the test has set up so far.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
            how(cursor.execute)
        answer = door()
        transaction.set_rollback(True)
    return answer


class Doors:
    """One request for each door that writes to the ledger; none of them may leave anything behind."""

    def __init__(self, cast: Cast) -> None:
        open_contract(cast, rules=HOLD)
        free = open_contract(cast, rules=None, slug="free-case", policy_slug="free")
        self.caller, self.executor = cast.api("attempts:create"), cast.api("attempts:execute")
        held = ask(self.caller).json()
        ready, leased = (ask(self.caller, number, slug="free-case").json()["id"] for number in (2, 3))
        token = self.executor.post(f"/api/v1/attempts/{leased}/lease", {}, format="json").json()["lease_token"]
        reviewer, operator = cast.session(cast.reviewer), cast.session(cast.operator)
        console = cast.console(cast.operator)
        vote = {"action_digest": held["action_digest"]}
        stop = {"scope": "contract", "target": "free-case", "reason_code": "operator_shutdown", "note": "Ticket 17"}
        done = {"lease_token": token, "response_metadata": {}}
        self.tries: dict[str, Callable[[], Any]] = {
            "intake": lambda: ask(self.caller, 9, slug="free-case"),
            "unreadable": lambda: self.caller.post(
                URL, b"{", content_type="application/json", HTTP_IDEMPOTENCY_KEY="key-00000010"
            ),
            "cancel": lambda: self.caller.post(f"/api/v1/attempts/{ready}/cancel"),
            "approve": lambda: reviewer.post(f"/api/v1/reviews/{held['review']['id']}/approve", vote, format="json"),
            "lease": lambda: self.executor.post(f"/api/v1/attempts/{ready}/lease", {}, format="json"),
            "complete": lambda: self.executor.post(f"/api/v1/attempts/{leased}/complete", done, format="json"),
            "shutdown": lambda: operator.post("/api/v1/shutdowns", stop, format="json"),
            "new version": lambda: operator.post(f"/api/v1/contracts/{free.id}/new-version"),
            "console": lambda: console.post(
                f"/admin/governance/contract/{free.id}/act/suspend/", {"reason_code": "planned_maintenance"}
            ),
        }


WAYS = [schema_rejection, quota_exceeded, governance_denial, no_privilege, read_only]


@pytest.mark.parametrize("how", WAYS, ids=lambda way: way.__name__)
def test_what_the_ledger_refuses_is_503_at_every_door_and_nothing_was_done(
    cast: Cast, how: Callable[[Callable[[str], Any]], None]
) -> None:
    doors = Doors(cast)
    before = written()
    answers = {name: refused(how, door) for name, door in doors.tries.items()}
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(doors.tries, 503)
    codes = {name: answer.json()["type"].rsplit("/", 1)[1] for name, answer in answers.items()}
    assert codes == dict.fromkeys(doors.tries, "record-unavailable")
    assert all(answer["Retry-After"] == "5" for answer in answers.values())
    assert written() == before
    assert doors.tries["intake"]().status_code == 201
