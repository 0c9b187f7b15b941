"""Races at intake, on real connections: one key never makes two attempts, whoever comes first."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction

from attempts.intake.models import IdempotencyRecord
from attempts.intake.rules import Fingerprint
from attempts.intake.services.door import KeyUse, key_look_up
from attempts.lifecycle.models import Attempt
from governance.contracts.rules.documents import default_documents
from governance.ledger.models import LedgerEntry
from governance.ledger.selectors import tells
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import open_contract
from tests.stack.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """All calls in threads of their own, released together; each thread gives its connection back."""
    gate, answers = threading.Barrier(len(calls)), []

    def run(call: Callable[[], Any]) -> None:
        gate.wait(timeout=30)
        try:
            answers.append(call())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    return answers


def test_one_key_a_hundred_times_in_parallel_makes_one_attempt_and_no_5xx() -> None:
    cast = Cast()
    open_contract(cast)
    key = cast.key("attempts:create")

    def call() -> Any:
        return post(cast.with_key(key), body())

    answers = at_once([call] * 100)
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {201, 409}, statuses
    assert statuses[201] >= 1
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert all(
        answer.json()["type"].endswith("/idempotency-in-progress") for answer in answers if answer.status_code == 409
    )
    assert post(cast.with_key(key), body()).headers["Idempotent-Replayed"] == "true"
    with every_tenant():
        assert Attempt.objects.count() == 1
        assert IdempotencyRecord.objects.count() == 1
        assert LedgerEntry.objects.filter(tells("attempt.received")).count() == 1


# As seen by one connection: every look at a key's record takes a while, after its snapshot was taken.
SLOWLY = """
CREATE TEMP VIEW attempts_idempotencyrecord AS
SELECT * FROM public.attempts_idempotencyrecord WHERE (SELECT pg_sleep(1) IS NOT NULL)
"""
ASLEEP = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"


def test_who_gets_the_keys_lock_sees_what_was_committed_before() -> None:
    """Else a repetition passes for new: denied for the first one's own place, or refused by the unique constraint."""
    cast = Cast()
    open_contract(cast)
    caller = cast.api("attempts:create")
    found: list[KeyUse] = []

    def look_up() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute(SLOWLY)
            with every_tenant(), transaction.atomic():
                found.append(
                    key_look_up(
                        organization_id=cast.organization.id,
                        scope="tenant",
                        key="key-00000001",
                        fingerprint=Fingerprint("other", {}),
                        policy=default_documents()["idempotency_key_policy"],
                        at=None,
                    )
                )
        finally:
            connections.close_all()

    thread = threading.Thread(target=look_up)
    thread.start()
    wait_for(asleep, seconds=10, what="a look-up under way")
    answer = post(caller, body(), key="key-00000001")
    thread.join(timeout=30)
    told = [use.outcome for use in found]
    assert (answer.status_code, told) in [(409, ["new"]), (201, ["conflicting"])]


def asleep() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(ASLEEP)
        return cursor.fetchone() is not None


@pytest.mark.parametrize("attempt", range(5))
def test_one_key_with_two_bodies_makes_one_attempt_and_the_other_is_told(attempt: int) -> None:
    cast = Cast()
    open_contract(cast)
    key = cast.key("attempts:create")
    bodies = [body(), body(action={"target_ref": "case-0002"}, patient_context_ref="ctx-0002")]
    answers = at_once([lambda b=b: post(cast.with_key(key), b) for b in bodies * 5])
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {201, 409, 422}, statuses
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    with every_tenant():
        assert Attempt.objects.count() == 1
