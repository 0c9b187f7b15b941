"""The record: one way in, and no way to change it."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction

from governance.ledger.errors import LedgerOutsideTransaction
from governance.ledger.models import LedgerEntry
from governance.ledger.rules.entry import payload_hash
from governance.ledger.services import ledger_append
from governance.sql.guards import append_only_tables
from governance.violations.errors import RecordImmutable
from reasoncodes.base.actors import CLOCK, SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.ledger.entry_reference import EntryHeader, entry_hash

AT = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def append(cast: Cast, **changes: Any) -> LedgerEntry:
    fields: dict[str, Any] = {
        "action": "organization.changed",
        "organization_id": cast.organization.id,
        "subject_type": "organization",
        "subject_id": cast.organization.id,
        "actor": CLOCK,
        "at": AT,
        "payload": {"max_concurrency": 3},
    }
    return ledger_append(**fields | changes)


def test_an_entry_carries_the_hash_of_its_own_content(cast: Cast) -> None:
    made = append(cast)
    with every_tenant():
        entry = LedgerEntry.objects.get(id=made.id)
    header = EntryHeader(**{name: getattr(entry, name) for name in EntryHeader.__slots__})
    hashed = payload_hash(payload=entry.payload, nonce=bytes(entry.nonce))
    assert hashed == bytes(entry.payload_sha256)
    assert entry_hash(header=header, payload_sha256=hashed) == bytes(entry.sha256)


def test_the_same_payload_twice_has_two_different_hashes(cast: Cast) -> None:
    assert append(cast).payload_sha256 != append(cast).payload_sha256


def test_an_unregistered_action_cannot_be_written(cast: Cast) -> None:
    with pytest.raises(ValueError, match="not registered"):
        append(cast, action="organization.exploded")


@pytest.mark.django_db(transaction=True)
def test_appending_outside_a_transaction_raises() -> None:
    with every_tenant():
        before = LedgerEntry.objects.count()
    with pytest.raises(LedgerOutsideTransaction):
        ledger_append(
            action="organization.changed",
            organization_id=None,
            subject_type="organization",
            subject_id=uuid4(),
            actor=SYSTEM,
            at=AT,
            payload={},
        )
    with every_tenant():
        assert LedgerEntry.objects.count() == before


def test_a_person_enters_as_a_commitment_not_as_a_name(cast: Cast) -> None:
    entry = append(cast, actor=cast.actor(cast.operator, [cast.organization]))
    assert entry.actor_kind == "person"
    assert str(cast.operator.id) not in entry.actor_ref
    assert "alice" not in entry.actor_ref
    assert len(entry.actor_ref) == 64
    assert append(cast, actor=cast.actor(cast.operator, [])).actor_ref == entry.actor_ref


def test_the_model_refuses_to_be_saved_again_or_deleted(cast: Cast) -> None:
    entry = append(cast)
    with pytest.raises(RecordImmutable):
        entry.save()
    with pytest.raises(RecordImmutable):
        entry.delete()


STATEMENTS = ["UPDATE {t} SET id = id", "DELETE FROM {t}", "TRUNCATE {t} CASCADE"]


def protected_tables() -> list[str]:
    return append_only_tables(list(apps.get_models()))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_database_refuses_every_change_of_the_ledger(cast: Cast, statement: str) -> None:
    append(cast)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            cursor.execute(statement.format(t="governance_ledgerentry"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_superuser_in_replica_mode_is_refused_too(statement: str) -> None:
    with transaction.atomic():
        append(Cast())
    superuser = {**connection.get_connection_params(), "user": "postgres"}
    superuser.pop("cursor_factory", None), superuser.pop("context", None)
    with psycopg.connect(**superuser) as link:
        link.execute("SET session_replication_role = replica")
        with pytest.raises(psycopg.DatabaseError, match="append-only"), link.transaction():
            link.execute(statement.format(t="governance_ledgerentry").encode())


def test_every_append_only_table_has_both_triggers_always_enabled(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE tgname LIKE 'append_only_%%'"
        )
        found = {(table, name): enabled for table, name, enabled in cursor.fetchall()}
    for table in protected_tables():
        assert found[table, "append_only_rows"] == "A"
        assert found[table, "append_only_table"] == "A"


def test_query_sets_cannot_walk_round_the_model(cast: Cast) -> None:
    append(cast)
    with every_tenant(), pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        LedgerEntry.objects.update(action="organization.created")
