"""Races on real connections, repeated: each lock and each fence has a test that fails without it."""

import threading
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone
from rest_framework.test import APIClient

from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.dispatch import attempt_dispatch
from attempts.execution.services.lease_expire import leases_expire
from attempts.execution.services.queue import queue_dispatch
from attempts.lifecycle.models import Attempt, Slot
from attempts.lifecycle.services.slots import slots_release
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.sql import send_lock_exclude
from governance.people.services.accounts import service_account_suspend
from governance.policies.services import policy_publish
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, asked, attempt, change, contract, lease_runs_out
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.governance.support import in_parallel
from tests.governed import DENY, HOLD, make_policy

pytestmark = pytest.mark.django_db(transaction=True)


def together(count: int, work: Any) -> list[Any]:
    """`work(number)` in as many threads, let go at the same moment."""
    barrier = threading.Barrier(count)

    def one(number: int) -> Any:
        barrier.wait(30)
        return work(number)

    return in_parallel(*[lambda number=number: one(number) for number in range(count)])


def in_every_tenant(work: Any) -> Any:
    with every_tenant():
        return work()


def test_of_many_workers_that_hear_the_same_bell_one_executes(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast)
    for number in range(1, 6):
        found = asked(caller, number)
        ends = together(6, lambda _, found=found: attempt_dispatch(attempt_id=found, now=timezone.now))
        assert Counter(ends) == {None: 5, "completed": 1}
    assert set(target.effects.values()) == {1}
    assert len(target.effects) == 5
    with every_tenant():
        assert DispatchIntent.objects.count() == 5


def test_of_many_executors_each_attempt_is_leased_by_one(cast: Cast, caller: Any) -> None:
    contract(cast, adapter="external")
    found = {str(asked(caller, number, connector="external")) for number in range(1, 13)}
    keys = [cast.key("attempts:execute") for _ in range(5)]

    def lease(number: int) -> list[str]:
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {keys[number]}")
        rows = client.post("/api/v1/attempts/lease", {"limit": 5}, format="json").json()["results"]
        return [row["attempt"]["id"] for row in rows]

    leased = [one for rows in together(5, lease) for one in rows]
    while rest := lease(0):
        leased += rest
    assert sorted(leased) == sorted(found)


def test_a_completion_and_the_end_of_its_lease_leave_one_end(cast: Cast, caller: Any) -> None:
    contract(cast, adapter="external")
    for number in range(1, 7):
        executor = cast.api("attempts:execute")  # a new one each time: late reports are strikes against an account
        found = asked(caller, number, connector="external")
        token = executor.post(f"/api/v1/attempts/{found}/lease", {}, format="json").json()["lease_token"]
        change(found, "lease_expires_at = clock_timestamp() + interval '30 milliseconds'")
        key = executor._credentials["HTTP_AUTHORIZATION"]

        def report(number: int, found: UUID = found, token: str = token, key: str = key) -> int:
            if number == 0:
                return sum(int(in_every_tenant(leases_expire)) for _ in range(20))
            client = APIClient()
            client.credentials(HTTP_AUTHORIZATION=key)
            fields = {"lease_token": token}
            return int(client.post(f"/api/v1/attempts/{found}/complete", fields, format="json").status_code)

        _, status = together(2, report)
        in_every_tenant(leases_expire)
        state = attempt(found).state
        assert (status, state) in {(200, "completed"), (409, "failed-quarantined"), (409, "approved-for-execution")}
        with every_tenant():
            assert Receipt.objects.filter(attempt_id=found, late=(status == 409)).count() == 1


def test_two_beats_end_each_lease_once(cast: Cast, caller: Any) -> None:
    contract(cast, adapter="external")
    executor = cast.api("attempts:execute")
    for number in range(1, 21):
        found = asked(caller, number, connector="external")
        assert executor.post(f"/api/v1/attempts/{found}/lease", {}, format="json").status_code == 200
        lease_runs_out(found)
    counts = together(3, lambda _: in_every_tenant(leases_expire))
    with every_tenant():
        assert sum(counts) == 20
        assert QuarantineCase.objects.count() == 20


def test_after_a_shutdown_has_committed_no_intent_in_its_scope_commits(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    """The worker comes while the shutdown is being engaged: it waits at the gate, and then sees it."""
    contract(cast)
    found = asked(caller)
    engaged, let_go = threading.Event(), threading.Event()
    actor = cast.actor(cast.operator, [cast.organization])

    def engage() -> None:
        with every_tenant(), transaction.atomic():
            send_lock_exclude()
            shutdown_engage(
                actor=actor,
                at=timezone.now(),
                scope=ShutdownScope.ORGANIZATION,
                organization_id=cast.organization.id,
                reason_code="operator_shutdown",
                note="Incident 17",
            )
            engaged.set()
            assert let_go.wait(20)

    def execute() -> str | None:
        assert engaged.wait(20)
        threading.Timer(0.3, let_go.set).start()
        return attempt_dispatch(attempt_id=found, now=timezone.now)

    assert in_parallel(engage, execute)[1] is None
    assert not target.requests
    with every_tenant():
        assert not DispatchIntent.objects.exists()
    assert attempt(found).state == "approved-for-execution"


def test_after_a_stricter_policy_has_committed_no_intent_is_written_under_the_old_one(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    """The worker comes while the policy is being published: it waits, and then decides under the new one."""
    contract(cast)
    found = asked(caller)
    draft = make_policy(cast, rules=DENY, publish=False)
    published, let_go = threading.Event(), threading.Event()
    actor = cast.actor(cast.operator, [cast.organization])

    def publish() -> None:
        with every_tenant(), transaction.atomic():
            policy_publish(actor=actor, at=timezone.now(), policy_id=draft.id)
            published.set()
            assert let_go.wait(20)

    def execute() -> str | None:
        assert published.wait(20)
        threading.Timer(0.3, let_go.set).start()
        return attempt_dispatch(attempt_id=found, now=timezone.now)

    assert in_parallel(publish, execute)[1] is None
    assert not target.requests
    assert (attempt(found).state, attempt(found).reason_code) == ("preflight-denied", "policy_denied")


def test_after_an_account_is_suspended_nothing_that_it_asked_for_is_sent(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    """The worker comes while the account is being suspended: it waits, and then sees that."""
    contract(cast)
    found = asked(caller)
    suspended, let_go = threading.Event(), threading.Event()
    actor, account = cast.actor(cast.operator, [cast.organization]), attempt(found).caller_id

    def suspend() -> None:
        with every_tenant(), transaction.atomic():
            service_account_suspend(
                actor=actor, at=timezone.now(), service_account_id=account, reason_code="misuse_suspended"
            )
            suspended.set()
            assert let_go.wait(20)

    def execute() -> str | None:
        assert suspended.wait(20)
        threading.Timer(0.3, let_go.set).start()
        return attempt_dispatch(attempt_id=found, now=timezone.now)

    assert in_parallel(suspend, execute)[1] is None
    assert not target.requests
    with every_tenant():
        assert not DispatchIntent.objects.exists()


def test_many_that_come_for_the_same_attempt_hold_it_once_and_decide_it_once(cast: Cast, caller: Any) -> None:
    contract(cast, adapter="external")
    executor = cast.api("attempts:execute")
    found = [asked(caller, number, connector="external") for number in range(1, 6)]
    make_policy(cast, rules=HOLD)
    answers = together(4, lambda _: [lease_status(executor, one) for one in found])
    assert {status for statuses in answers for status in statuses} == {409}
    with every_tenant():
        assert Review.objects.filter(status="requested").count() == 5
        assert EnforcementDecision.objects.filter(act="lease").count() == 5
        assert not DispatchIntent.objects.exists()


def test_a_report_and_its_contradiction_at_once_leave_one_case_and_no_retry(cast: Cast, caller: Any) -> None:
    contract(cast, adapter="external", effect="idempotent")
    executor = cast.api("attempts:execute")
    for number in range(1, 6):
        found = asked(caller, number, connector="external")
        token = executor.post(f"/api/v1/attempts/{found}/lease", {}, format="json").json()["lease_token"]
        reports = [
            ("fail", {"lease_token": token, "category": "adapter_failure", "retryable": True}),
            ("complete", {"lease_token": token}),
        ]
        together(2, lambda index, found=found, reports=reports: report(executor, found, *reports[index]))
        row = attempt(found)
        # Whichever came first: a success is not undone, and a failure is not tried again.
        assert (row.state, row.next_eligible_at) in {("completed", None), ("failed-quarantined", None)}
        with every_tenant():
            assert Receipt.objects.filter(attempt_id=found).count() == 2
            assert QuarantineCase.objects.filter(attempt_id=found).count() == (row.state == "failed-quarantined")


def lease_status(executor: Any, attempt_id: UUID) -> int:
    status: int = executor.post(f"/api/v1/attempts/{attempt_id}/lease", {}, format="json").status_code
    return status


def report(executor: Any, attempt_id: UUID, verb: str, fields: dict[str, Any]) -> int:
    status: int = executor.post(f"/api/v1/attempts/{attempt_id}/{verb}", fields, format="json").status_code
    return status


def test_fifty_at_once_never_exceed_a_cap(cast: Cast) -> None:
    limits = {"per_key": 1, "per_context": None, "per_workflow": 5, "per_tenant": None}
    contract(cast, adapter="external", changes={"concurrency_and_locks": {"limits": limits}})
    key = cast.key("attempts:create")

    def intake(number: int) -> int:
        client = APIClient(raise_request_exception=False)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
        return int(ask(client, number + 1, connector="external").status_code)

    answers = Counter(together(50, intake))
    assert set(answers) == {201, 429}
    assert 1 <= answers[201] <= 5
    with every_tenant():
        assert Slot.objects.count() == answers[201]
        assert Attempt.objects.filter(state="approved-for-execution").count() == answers[201]


def test_two_hand_outs_never_exceed_a_cap_and_place_nobody_twice(cast: Cast, caller: Any) -> None:
    limits = {"per_key": 1, "per_context": None, "per_workflow": 3, "per_tenant": None}
    contract(cast, changes={"concurrency_and_locks": {"limits": limits, "when_busy": "queue"}})
    for number in range(1, 9):
        found = asked(caller, number)
        with every_tenant():
            slots_release(attempt_id=found)
        change(found, "next_eligible_at = NULL, queued_until = clock_timestamp() + interval '1 hour'")
    together(3, lambda _: in_every_tenant(queue_dispatch))
    in_every_tenant(queue_dispatch)
    with every_tenant():
        placed = set(Attempt.objects.filter(queued_until=None).values_list("id", flat=True))
        assert len(placed) == 3
        holders = Slot.objects.values_list("attempt_id", flat=True)
        assert set(holders) == placed
        assert len(holders) == 3
    connection.close()
