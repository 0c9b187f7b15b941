"""With the application's own credential, past the program: no row moves without what explains it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from attempts.lifecycle.models import Attempt
from governance.ledger.models import LedgerEntry
from governance.ledger.services import person_commitment
from governance.people.models import PersonReference
from governance.record.services.commitments import FALSE_COMMITMENT, REFERENCES, commitments_false
from governance.retention.models import ErasureItem, ErasureOrder
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all
from tests.governance.record.forgeries import (
    ENTRY,
    FORGERIES,
    KINDS,
    MOVE_TRIGGERS,
    OTHER_TIME,
    UNCHANGED,
    UNEXPLAINED,
    forgeable_world,
    outcome,
    strict_clock,
    trigger_off,
)
from tests.governance.record.world import record_verified
from tests.governance.retention.support import RECENT, Clinic, work
from tests.governance.test_commands import parameters, role
from tests.tampering import triggers_off

__all__ = ["role"]
pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.fixture
def world(cast: Cast, role: str) -> dict[str, Any]:
    return forgeable_world(cast)


def test_each_forgery_is_refused_by_its_own_trigger(role: str, world: dict[str, Any]) -> None:
    """As the application's role; and the same statement passes once the owner has switched off only this trigger."""
    wrong = []
    with strict_clock(), application(role) as connected:
        for name, forgery in FORGERIES.items():
            if (said := outcome(connected, forgery.statements, world)) != forgery.code:
                wrong.append(f"{name}: {said or 'it passed'}")
            with trigger_off(forgery.trigger):
                if said := outcome(connected, forgery.statements, world):
                    wrong.append(f"{name}, without {forgery.trigger}: {said}")
    assert wrong == []


def test_every_trigger_about_moves_has_a_forgery(cast: Cast) -> None:
    """The application's role has no right to TRUNCATE, so only the manifest is about those triggers."""
    with connection.cursor() as cursor:
        cursor.execute(MOVE_TRIGGERS, [list(KINDS)])
        there = {f"{trigger} on {table}" for trigger, table in cursor.fetchall()}
    assert there == {forgery.trigger for forgery in FORGERIES.values()}


def test_a_person_s_finding_passes(cast: Cast, world: dict[str, Any]) -> None:
    alice = cast.session(cast.operator)
    answer = alice.post(f"/api/v1/quarantine-cases/{world['case']}/accept", {"finding": "happened"}, format="json")
    assert answer.status_code == 200, answer.content


def test_an_entry_alone_does_not_explain_a_state(role: str, world: dict[str, Any]) -> None:
    """It needs the transition too."""
    move = FORGERIES["an attempt's state"].statements
    refused(role, UNEXPLAINED, ENTRY, *move, days=0, **world | {"subject": world["approved"]})


@pytest.mark.parametrize("days", [400, 2, -1])
def test_an_entry_of_another_time_is_refused(role: str, cast: Cast, days: int) -> None:
    assert cast.organization
    with strict_clock():
        refused(role, OTHER_TIME, ENTRY, subject=uuid4(), days=days)
        with application(role) as connected:
            connected.execute(ENTRY, {"subject": uuid4(), "days": 0})
            connected.execute(ENTRY.replace("'person'", "'clock'"), {"subject": uuid4(), "days": max(days, 0)})


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
    statement = "UPDATE governance_personreference SET commitment = %s WHERE user_id = %s"
    with triggers_off("governance_personreference"), connection.cursor() as cursor:
        cursor.execute(statement, ["0" * 64, cast.operator.id])
    assert list(commitments_false()) == [cast.operator.id]
    seal_all()
    fault = {"table": REFERENCES, "id": str(cast.operator.id), "what": FALSE_COMMITMENT}
    assert fault in record_verified("--full")["faults"]
    assert fault in record_verified()["faults"], "also a check of only what is new"


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


def forged_order(cast: Cast, attempt: UUID) -> dict[str, Any]:
    person_commitment(user_id=cast.operator.id)
    return {
        "attempt": attempt,
        "order": uuid7(),
        "item": uuid7(),
        "person": cast.operator.id,
        "ref": PersonReference.objects.get(user=cast.operator).commitment,
    }


def test_a_forged_order_erases_nothing(role: str, cast: Cast) -> None:
    attempt = Clinic(cast).denied(moment=RECENT)
    values = forged_order(cast, attempt)
    refused(role, UNCHANGED, ORDER, ITEM, MARK, BLANK, **values)
    refused(role, UNCHANGED, ORDER, ITEM, "SELECT attempts_erase(%(item)s)", **values)
    with every_tenant():
        assert Attempt.objects.get(id=attempt).erased_at is None


def test_the_worker_refuses_a_forged_order_on_the_record_and_not_in_the_name_it_bears(role: str, cast: Cast) -> None:
    attempt = Clinic(cast).denied()
    values = forged_order(cast, attempt)
    with application(role) as connected:
        transact(connected, ORDER, ITEM, **values)
    with every_tenant():
        order = work(ErasureOrder.objects.get(id=values["order"]))
        item = ErasureItem.objects.get(id=values["item"])
        assert Attempt.objects.get(id=attempt).erased_at is None
        said = {entry.action: entry for entry in LedgerEntry.objects.filter(action__startswith="erasure.")}
    assert order.finished_at is not None, "it is not tried for ever"
    assert (item.state, item.problem) == ("refused", "not_authorized")
    assert said["erasure.refused"].reason_code == "not_authorized"
    assert {(entry.actor_kind, entry.actor_ref) for entry in said.values()} == {("system", "")}


def test_an_item_that_a_trigger_refuses_is_refused_and_its_order_ends(role: str, cast: Cast) -> None:
    """Somebody adds a person to an order that is about attempts."""
    clinic = Clinic(cast)
    values = forged_order(cast, clinic.denied())
    order = clinic.order()
    person = ITEM.replace("'attempt', id,", "'person', %(person)s,")
    with application(role) as connected:
        transact(connected, person, **values | {"order": order.id})
    with every_tenant():
        assert work(order).finished_at is not None
        item = ErasureItem.objects.get(id=values["item"])
    assert (item.state, item.problem) == ("refused", "enforcement_exception")
    assert PersonReference.objects.filter(user=cast.operator).exists()


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
