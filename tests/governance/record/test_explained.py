"""With the application's own credential, past the program: no row moves without what explains it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone

from attempts.lifecycle.models import Attempt
from governance.ledger.services import person_commitment
from governance.people.models import PersonReference
from governance.record.services.commitments import commitments_false
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.attempts.test_quarantine import quarantined
from tests.cast import Cast
from tests.governance.retention.support import RECENT, Clinic, work
from tests.governance.test_commands import parameters, role
from tests.governed import HOLD

__all__ = ["role"]
pytestmark = pytest.mark.django_db(transaction=True)
UNEXPLAINED, UNCHANGED, OTHER_TIME = "HP004", "HP001", "HP005"


@contextmanager
def application(role: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(**parameters(role), autocommit=True) as connected:
        yield connected


def transact(connected: psycopg.Connection[Any], *statements: str, **values: Any) -> None:
    with connected.transaction():
        for statement in statements:
            assert connected.execute(statement, values).rowcount, statement


def refused(role: str, code: str, *statements: str, **values: Any) -> None:
    """One transaction of the application's role, which the database refuses with this code, at the latest at commit."""
    with application(role) as connected, pytest.raises(psycopg.Error) as caught:
        transact(connected, *statements, **values)
    assert caught.value.sqlstate == code, (statements[-1], caught.value)


MOVES = {
    "an attempt": (UNEXPLAINED, "UPDATE attempts_attempt SET state = 'completed' WHERE id = %(approved)s"),
    "its reason": (UNEXPLAINED, "UPDATE attempts_attempt SET reason_code = 'other' WHERE id = %(held)s"),
    "a fence": (UNEXPLAINED, "UPDATE attempts_attempt SET lease_token = lease_token + 1 WHERE id = %(approved)s"),
    "its number of tries": (UNEXPLAINED, "UPDATE attempts_attempt SET tries = 7 WHERE id = %(approved)s"),
    "its contract's name": (UNCHANGED, "UPDATE attempts_attempt SET workflow_slug = 'x' WHERE id = %(held)s"),
    "a review": (UNEXPLAINED, "UPDATE attempts_review SET status = 'approved' WHERE attempt_id = %(held)s"),
    "who is excluded": (UNEXPLAINED, "UPDATE attempts_review SET excluded = '[1]' WHERE attempt_id = %(held)s"),
    "how many must approve": (
        UNCHANGED,
        "UPDATE attempts_review SET approvals_required = approvals_required - 1 WHERE attempt_id = %(held)s",
    ),
    "what a review is about": (UNCHANGED, "UPDATE attempts_review SET action_digest = 'x' WHERE attempt_id = %(held)s"),
    "a review away": (UNCHANGED, "DELETE FROM attempts_review WHERE attempt_id = %(held)s"),
    "a case": (UNEXPLAINED, "UPDATE attempts_quarantinecase SET finding = 'happened' WHERE id = %(case)s"),
    "a case away": (UNCHANGED, "DELETE FROM attempts_quarantinecase WHERE id = %(case)s"),
    "a case's attempt": (
        UNCHANGED,
        "UPDATE attempts_quarantinecase SET attempt_id = %(held)s WHERE id = %(case)s",
    ),
    "a contract": (UNEXPLAINED, "UPDATE governance_contract SET state = 'closed' WHERE state = 'open'"),
    "a policy": (UNEXPLAINED, "UPDATE governance_policy SET state = 'retired' WHERE state = 'published'"),
}


@pytest.fixture
def world(cast: Cast, role: str) -> dict[str, Any]:
    with transaction.atomic():
        case = quarantined(cast)
    contract(cast, slug="held", policy_slug="held", rules=HOLD)
    contract(cast, slug="free")
    client = cast.api("attempts:create")
    held, approved = ask(client, 11, slug="held"), ask(client, 12, slug="free")
    return {"case": case.id, "held": held.json()["id"], "approved": approved.json()["id"]}


def test_nothing_moves_without_the_row_that_explains_it(role: str, world: dict[str, Any]) -> None:
    for code, statement in MOVES.values():
        refused(role, code, statement, **world)


def test_the_triggers_are_what_refuses(role: str, world: dict[str, Any]) -> None:
    """The same statements pass once the owner has switched off what this is about."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE attempts_attempt DISABLE TRIGGER explained_moves")
        try:
            with application(role) as connected:
                connected.execute(MOVES["an attempt"][1], world)
        finally:
            cursor.execute("ALTER TABLE attempts_attempt ENABLE ALWAYS TRIGGER explained_moves")
    with every_tenant():
        assert Attempt.objects.get(id=world["approved"]).state == "completed"


def test_a_person_s_finding_passes(cast: Cast, world: dict[str, Any]) -> None:
    alice = cast.session(cast.operator)
    answer = alice.post(f"/api/v1/quarantine-cases/{world['case']}/accept", {"finding": "happened"}, format="json")
    assert answer.status_code == 200, answer.content


def test_an_entry_alone_does_not_explain_a_state(role: str, world: dict[str, Any]) -> None:
    """It needs the transition too."""
    refused(role, UNEXPLAINED, ENTRY, MOVES["an attempt"][1], subject=world["approved"], days=0, **world)


ENTRY = """
INSERT INTO governance_ledgerentry (id, action, subject_type, subject_id, actor_kind, actor_ref, reason_code,
    request_id, trace_id, payload, nonce, payload_sha256, sha256, at)
SELECT gen_random_uuid(), action, subject_type, %(subject)s::uuid, 'person', actor_ref, reason_code, request_id,
    trace_id, payload, nonce, payload_sha256, sha256, clock_timestamp() - make_interval(days => %(days)s)
FROM governance_ledgerentry LIMIT 1
"""


@pytest.fixture
def strict_clock(transactional_db: None) -> Iterator[None]:
    """The rule about times as installations have it; see tests.emptying."""
    free = "CREATE OR REPLACE FUNCTION holdpoint_any_moment() RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT {} $$"
    with connection.cursor() as cursor:
        cursor.execute(free.format("FALSE"))
        yield
        cursor.execute(free.format("TRUE"))


@pytest.mark.parametrize("days", [400, 2, -1])
def test_an_entry_of_another_time_is_refused(role: str, cast: Cast, strict_clock: None, days: int) -> None:
    assert cast.organization
    refused(role, OTHER_TIME, ENTRY, subject=uuid4(), days=days)
    with application(role) as connected:
        connected.execute(ENTRY, {"subject": uuid4(), "days": 0})
        connected.execute(ENTRY.replace("'person'", "'clock'"), {"subject": uuid4(), "days": max(days, 0)})


def test_an_entry_of_another_transaction_is_refused(role: str, cast: Cast) -> None:
    assert cast.organization
    other = ENTRY.replace("sha256, at)", "sha256, at, txid)").replace("%(days)s)", "%(days)s), 1")
    refused(role, OTHER_TIME, other, subject=uuid4(), days=0)


def test_a_commitment_stays_its_person_s(role: str, cast: Cast) -> None:
    """Otherwise the timeline would name somebody else as the one who approved."""
    people = [cast.operator, cast.other_operator]
    for person in people:
        person_commitment(user_id=person.id)
    one, other = (PersonReference.objects.get(user=person) for person in people)
    values = {"one": one.user_id, "other": other.user_id, "name": other.commitment}
    refused(role, UNCHANGED, "UPDATE governance_personreference SET commitment = 'x' WHERE user_id = %(one)s", **values)
    swap = "UPDATE governance_personreference SET user_id = %(one)s WHERE user_id = %(other)s"
    refused(role, UNCHANGED, swap, **values)
    refused(role, UNCHANGED, "DELETE FROM governance_personreference WHERE user_id = %(one)s", **values)
    stranger = cast.person("mallory", "operator")
    PersonReference.objects.filter(user=stranger).delete()
    insert = "INSERT INTO governance_personreference (user_id, salt, commitment) VALUES (%(who)s, %(salt)s, %(said)s)"
    refused(role, UNCHANGED, insert, who=stranger.id, salt=b"s" * 32, said="0" * 64)
    true = sha256(b"s" * 32 + str(stranger.id).encode()).hexdigest()
    with application(role) as connected:
        connected.execute(insert, {"who": stranger.id, "salt": b"s" * 32, "said": true})
    assert list(commitments_false()) == []


def test_a_commitment_that_the_owner_changed_is_named(cast: Cast) -> None:
    person_commitment(user_id=cast.operator.id)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE governance_personreference DISABLE TRIGGER USER")
        cursor.execute("UPDATE governance_personreference SET salt = %s WHERE user_id = %s", [b"x", cast.operator.id])
        for name in ("commits", "fixed_columns", "door_only", "table_stays"):
            cursor.execute(f"ALTER TABLE governance_personreference ENABLE ALWAYS TRIGGER {name}")
    assert list(commitments_false()) == [cast.operator.id]


ORDER = """
INSERT INTO governance_erasureorder (id, organization_id, kind, reason_code, ordered_by, ordered_by_ref, created_at,
    resume_at) SELECT %(order)s, organization_id, 'purge', 'retention_over', %(person)s, %(ref)s, now(), now()
    FROM attempts_attempt WHERE id = %(attempt)s
"""
ITEM = """
INSERT INTO governance_erasureitem (id, order_id, organization_id, kind, subject_id, state, problem, contract, refs,
    related, entries) SELECT %(item)s, %(order)s, organization_id, 'attempt', id, 'waiting', '', '', '{}', '{}', 0
    FROM attempts_attempt WHERE id = %(attempt)s
"""
BLANK = """
UPDATE attempts_attempt SET patient_context_ref = '', target_ref = '', payload_ref = '', payload_sha256 = '',
    operation = '', idempotency_key = '', action_digest = '', fields = '[]', metadata = '{}', erased_at = now()
    WHERE id = %(attempt)s
"""
MARK = "SELECT set_config('holdpoint.erasure', %(item)s::text, true)"


def test_a_forged_order_erases_nothing(role: str, cast: Cast) -> None:
    clinic = Clinic(cast)
    attempt = clinic.denied(moment=RECENT)
    person_commitment(user_id=cast.operator.id)
    values = {
        "attempt": attempt,
        "order": uuid7(),
        "item": uuid7(),
        "person": cast.operator.id,
        "ref": PersonReference.objects.get(user=cast.operator).commitment,
    }
    refused(role, UNCHANGED, ORDER, ITEM, MARK, BLANK, **values)
    refused(role, UNCHANGED, ORDER, ITEM, "SELECT attempts_erase(%(item)s)", **values)
    with every_tenant():
        assert Attempt.objects.get(id=attempt).erased_at is None


def test_an_order_of_the_program_erases_what_is_over(cast: Cast) -> None:
    clinic = Clinic(cast)
    attempt = clinic.denied()
    work(clinic.order())
    with every_tenant():
        assert Attempt.objects.get(id=attempt).erased_at is not None


def test_an_item_says_neither_when_nor_that_it_is_done(role: str, cast: Cast) -> None:
    clinic = Clinic(cast)
    clinic.denied()
    order = clinic.order()
    values = {"order": order.id, "then": timezone.now() - timedelta(days=9000)}
    refused(
        role, UNCHANGED, "UPDATE governance_erasureitem SET not_before = %(then)s WHERE order_id = %(order)s", **values
    )
    refused(
        role,
        UNCHANGED,
        "UPDATE governance_erasureitem SET related = '{}', entries = 5 WHERE order_id = %(order)s",
        **values,
    )
    refused(role, UNEXPLAINED, "UPDATE governance_erasureitem SET state = 'done' WHERE order_id = %(order)s", **values)
    refused(role, UNEXPLAINED, "UPDATE governance_erasureorder SET finished_at = now() WHERE id = %(order)s", **values)
    refused(role, UNCHANGED, "UPDATE governance_erasureorder SET ordered_by_ref = 'x' WHERE id = %(order)s", **values)
