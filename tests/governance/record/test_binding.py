"""Every governed row is bound: whatever writes it, in the same transaction, inside what the heads sign."""

from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.ledger.rules.entry import EntryText, entry_hash_of_text, payload_hash
from governance.record.models import BoundRows, RowShape
from governance.record.rules.items import items_read
from governance.record.rules.tables import BOUND, UNBOUND
from governance.record.services.install import binding_install
from governance.record.services.manifest import guards_adopt
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.models import ReasonCode
from tests.attempts.execution.support import ask, asked, contract
from tests.cast import Cast
from tests.governance.record.world import record_verified, sealed_and_valid
from tests.tampering import triggers_off

pytestmark = pytest.mark.django_db(transaction=True)


def newest() -> LedgerEntry:
    with every_tenant():
        found = LedgerEntry.objects.order_by("-id").first()
    assert found is not None
    return found


def items_of(entry_id: Any) -> list[Any]:
    found = []
    for part in BoundRows.objects.filter(entry_id=entry_id).order_by("part"):
        found += list(items_read(bytes(part.rows), bytes(part.salts or b"")))
    return found


def test_every_table_of_the_database_is_bound_or_says_why_not() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = {row[0] for row in cursor.fetchall()}
    assert tables == set(BOUND) | set(UNBOUND)
    assert not set(BOUND) & set(UNBOUND)
    numbers = [table.number for table in BOUND.values()]
    assert len(numbers) == len(set(numbers))
    assert set(RowShape.objects.values_list("table", flat=True)) == set(BOUND)


def test_an_intake_binds_its_rows_to_its_entry_and_the_record_verifies(cast: Cast) -> None:
    contract(cast, adapter="external", effect="idempotent")
    with every_tenant():
        before = set(LedgerEntry.objects.values_list("id", flat=True))
    asked(cast.api("attempts:create"), connector="external", runtime_mode="client_driven")
    with every_tenant():
        entries = LedgerEntry.objects.exclude(id__in=before).filter(action__startswith="attempt.")
        bound = [item.number for entry in entries for item in items_of(entry.id)]
    numbers = {BOUND[f"attempts_{name}"].number for name in ("attempt", "attempttransition", "idempotencyrecord")}
    assert numbers | {BOUND["governance_enforcementdecision"].number} <= set(bound)
    sealed_and_valid()


def test_a_row_that_is_changed_without_an_act_gets_an_entry_from_the_database_itself(cast: Cast) -> None:
    with every_tenant():
        code = ReasonCode.objects.order_by("id").first()
        assert code is not None
        ReasonCode.objects.filter(id=code.id).update(label="Another label")
    entry = newest()
    assert (entry.action, entry.actor_kind, entry.organization_id) == ("record.rows_changed", "system", None)
    assert entry.payload == {"rows": 1, "tables": ["reasoncodes_reasoncode"]}
    assert [(item.row_id, item.version) for item in items_of(entry.id)] == [(code.id.bytes, 2)]
    sealed_and_valid()


def test_the_databases_own_entry_has_the_hashes_that_the_program_computes(cast: Cast) -> None:
    with every_tenant():
        ReasonCode.objects.filter(id=ReasonCode.objects.order_by("id")[0].id).update(label="Another label")
    entry = newest()
    assert entry.payload is not None
    assert entry.nonce is not None
    digest = payload_hash(payload=entry.payload, nonce=bytes(entry.nonce))
    assert digest == bytes(entry.payload_sha256)
    said = EntryText(
        id=str(entry.id),
        organization_id=None,
        at=entry.at.isoformat(timespec="microseconds"),
        subject_id=str(entry.subject_id),
        **{
            name: getattr(entry, name)
            for name in ("action", "subject_type", "actor_kind", "actor_ref", "reason_code", "request_id", "trace_id")
        },
    )
    assert entry_hash_of_text(said, payload_sha256=digest) == bytes(entry.sha256)


def test_what_is_rolled_back_to_a_savepoint_is_not_bound(cast: Cast) -> None:
    with every_tenant(), transaction.atomic():
        first, second = ReasonCode.objects.order_by("id")[:2]
        ReasonCode.objects.filter(id=first.id).update(label="Kept")
        mark = transaction.savepoint()
        ReasonCode.objects.filter(id=second.id).update(label="Undone")
        transaction.savepoint_rollback(mark)
    assert [item.row_id for item in items_of(newest().id)] == [first.id.bytes]
    sealed_and_valid()


def test_a_large_transaction_is_bound_in_parts(cast: Cast) -> None:
    with every_tenant(), transaction.atomic():
        changed = ReasonCode.objects.count()
        for _ in range(300 // changed + 1):
            for code in ReasonCode.objects.all():
                ReasonCode.objects.filter(id=code.id).update(description=code.description + " ")
    entry = newest()
    assert BoundRows.objects.filter(entry_id=entry.id).count() > 1
    assert len(items_of(entry.id)) == changed * (300 // changed + 1)
    sealed_and_valid()


def test_another_time_zone_of_the_session_makes_no_other_image(cast: Cast) -> None:
    with every_tenant(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL timezone = 'Asia/Tokyo'")
        cursor.execute("UPDATE governance_organization SET name = name || '!'")
    sealed_and_valid()


def test_a_loose_column_alone_binds_nothing(cast: Cast) -> None:
    ask(cast.api("attempts:create"), 1)
    with every_tenant():
        count = LedgerEntry.objects.count()
        with connection.cursor() as cursor:
            cursor.execute("UPDATE governance_user SET last_login = now()")
        assert LedgerEntry.objects.count() == count
    sealed_and_valid()


def test_a_second_migrate_installs_nothing_and_a_new_column_gets_the_next_shape(cast: Cast) -> None:
    with every_tenant():
        assert binding_install(at=timezone.now()) == []
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE governance_product ADD COLUMN colour text")
        try:
            assert binding_install(at=timezone.now()) == ["governance_product"]
            assert binding_install(at=timezone.now()) == []
            shapes = RowShape.objects.filter(table="governance_product").order_by("shape")
            assert [("colour" in shape.columns) for shape in shapes] == [False, True]
            guards_adopt(at=timezone.now())  # as a migrate does
            sealed_and_valid()
            with connection.cursor() as cursor:
                cursor.execute("UPDATE governance_product SET colour = 'red'")
            sealed_and_valid()
        finally:
            with connection.cursor() as cursor:
                cursor.execute("ALTER TABLE governance_product DROP COLUMN colour")
            with triggers_off("governance_rowshape"), connection.cursor() as cursor:
                cursor.execute("DELETE FROM governance_rowshape WHERE \"table\" = 'governance_product' AND shape = 1")
            binding_install(at=timezone.now())


@pytest.mark.tampers
def test_bound_rows_themselves_cannot_be_changed_unseen(cast: Cast) -> None:
    sealed_and_valid()
    with triggers_off("governance_boundrows"), connection.cursor() as cursor:
        first = "(SELECT min(entry_id::text) FROM governance_boundrows)::uuid"
        cursor.execute(f"DELETE FROM governance_boundrows WHERE entry_id = {first}")  # noqa: S608
    found = record_verified("--full")
    assert not found["valid"]
    assert any("with its bound rows" in fault["what"] for fault in found["faults"])


def test_rows_are_bound_also_when_constraints_are_checked_at_once(cast: Cast) -> None:
    with every_tenant(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("UPDATE governance_organization SET name = name || '!'")
    sealed_and_valid()
