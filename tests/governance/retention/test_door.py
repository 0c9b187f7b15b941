"""The narrow door in the database: exactly the erased form passes, for an order, without a hold; nothing else does."""

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from governance.retention.models import ErasureItem
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.retention.support import RECENT, Clinic, payloads, work
from tests.governance.test_commands import parameters, role

__all__ = ["role"]

ERASE = "UPDATE governance_ledgerentry SET payload = NULL, nonce = NULL WHERE subject_id = %s"


def run(item: UUID | str, statement: str, *parameters: Any) -> None:
    """As the tables' owner, with the marker that the erasing functions set."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SELECT set_config('holdpoint.erasure', %s, true)", [str(item)])
        if item:
            cursor.execute(
                "UPDATE governance_erasureitem SET related = ARRAY[subject_id] WHERE id = %s AND state = 'waiting'",
                [item],
            )
        cursor.execute(statement, list(parameters))


def waiting(clinic: Clinic) -> ErasureItem:
    order = clinic.order()
    with every_tenant():
        return ErasureItem.objects.get(order=order)


def refused(item: UUID | str, statement: str, *parameters: Any) -> None:
    with pytest.raises(DatabaseError, match="append-only"):
        run(item, statement, *parameters)


def test_with_an_order_the_erased_form_passes(clinic: Clinic) -> None:
    first = clinic.denied()
    run(waiting(clinic).id, ERASE, first)
    assert payloads(first) == [None] * 3


def test_without_an_order_nothing_passes(clinic: Clinic) -> None:
    first = clinic.denied()
    refused("", ERASE, first)
    refused(uuid4(), ERASE, first)


def test_a_finished_order_opens_nothing_any_more(clinic: Clinic) -> None:
    clinic.denied(1)
    order = work(clinic.order())
    with every_tenant():
        item = ErasureItem.objects.get(order=order)
    other = clinic.denied(2)
    refused(item.id, ERASE, other)


def test_a_hold_shuts_the_door_for_the_owner_too(clinic: Clinic) -> None:
    first = clinic.denied()
    item = waiting(clinic)
    clinic.hold()
    refused(item.id, ERASE, first)


@pytest.mark.parametrize(
    "assignment",
    [
        "payload = '{}'",
        'payload = \'{"digest": "x"}\'',
        "payload = NULL",
        "nonce = NULL",
        "payload = NULL, nonce = NULL, action = 'organization.changed'",
        "payload = NULL, nonce = NULL, at = now()",
        "payload = NULL, nonce = NULL, sha256 = payload_sha256",
        "payload = NULL, nonce = NULL, txid = 1",
        "payload = NULL, nonce = NULL, actor_ref = 'x'",
    ],
)
def test_any_other_change_is_refused_even_with_an_order(clinic: Clinic, assignment: str) -> None:
    first = clinic.denied()
    refused(waiting(clinic).id, f"UPDATE governance_ledgerentry SET {assignment} WHERE subject_id = %s", first)  # noqa: S608


def test_an_order_for_one_attempt_does_not_open_another(clinic: Clinic) -> None:
    clinic.denied(1)
    other = clinic.denied(2, moment=RECENT)
    item = waiting(clinic)
    refused(item.id, ERASE, other)
    refused(item.id, "UPDATE governance_enforcementdecision SET request = 'null', request_sha256 = ''")
    refused(item.id, "UPDATE attempts_idempotencyrecord SET body = '' WHERE attempt_id = %s", other)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM governance_ledgerentry WHERE subject_id = %s",
        "DELETE FROM attempts_attempt WHERE id = %s",
        "UPDATE attempts_attempt SET patient_context_ref = 'else' WHERE id = %s",
        "UPDATE attempts_attempt SET erased_at = now() WHERE id = %s",
        "UPDATE attempts_attempt SET retention_until = now() WHERE id = %s",
        "UPDATE attempts_attempt SET patient_context_ref = '', erased_at = now() WHERE id = %s",
    ],
)
def test_deleting_and_half_erasing_stay_refused(clinic: Clinic, statement: str) -> None:
    first = clinic.denied()
    refused(waiting(clinic).id, statement, first)
    refused("", statement, first)


@pytest.mark.django_db(transaction=True)
def test_the_function_refuses_an_older_snapshot() -> None:
    clinic = Clinic(Cast())
    clinic.denied()
    item = waiting(clinic)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(DatabaseError, match="read committed"), transaction.atomic():
            cursor.execute("SELECT attempts_erase(%s)", [item.id])


@pytest.mark.tampers  # the order is not told, so nothing says yet that the decision was purged
def test_the_applications_role_erases_by_the_function_alone(role: str) -> None:
    """With the rights of the application: no UPDATE on the record, yet an order is worked off."""
    clinic = Clinic(Cast())
    first = clinic.denied()
    item = waiting(clinic)
    with psycopg.connect(**parameters(role), autocommit=True) as application:
        application.execute("SELECT set_config('holdpoint.erasure', %s, false)", [str(item.id)])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            application.execute(ERASE.encode(), [first])
        found = application.execute("SELECT attempts_erase(%s)", [item.id]).fetchone()
    assert found == ("",)
    assert payloads(first) == [None] * 3


def test_other_roles_may_not_even_call_it(role: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("REVOKE EXECUTE ON FUNCTION attempts_erase(uuid) FROM " + role)
    with (
        psycopg.connect(**parameters(role), autocommit=True) as application,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        application.execute("SELECT attempts_erase(%s)", [uuid4()])


@pytest.mark.django_db(transaction=True)
def test_a_superuser_in_replica_mode_is_refused_too() -> None:
    clinic = Clinic(Cast())
    first = clinic.denied()
    waiting(clinic)
    superuser = {**connection.get_connection_params(), "user": "postgres"}
    superuser.pop("cursor_factory", None), superuser.pop("context", None)
    with psycopg.connect(**superuser) as link:
        link.execute("SET session_replication_role = replica")
        with pytest.raises(psycopg.DatabaseError, match="append-only"), link.transaction():
            link.execute(ERASE.encode(), [first])
