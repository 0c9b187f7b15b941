"""Several tables' rows in one statement: what goes in comes out, and a ledger entry never goes in by itself unsaid."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from governance.enforcement.models import EnforcementDecision, Snapshot
from governance.ledger.errors import LedgerOutsideTransaction
from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_entry_build
from governance.sql.insert import InsertCondition, Pending, Removal, RowChange, insert_together
from governance.sql.statements import fetch, new_row
from governance.tenancy.models import Organization, Product
from reasoncodes.base.actors import SYSTEM, ActorKind
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

AT = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def entry(**changes: Any) -> LedgerEntry:
    facts: dict[str, Any] = {"payload": {"n": 1}, "reason_code": ""} | changes
    return ledger_entry_build(
        action="organization.changed",
        organization_id=None,
        subject_type="organization",
        subject_id=uuid4(),
        actor=SYSTEM,
        at=AT,
        **facts,
    )


def snapshot(sha256: str = "a" * 64, **changes: Any) -> Snapshot:
    return Snapshot(**{"sha256": sha256, "kind": "contract", "document": {"ü": [1, None, "'\"\\"]}, "at": AT} | changes)


def decision(cast: Cast, **changes: Any) -> EnforcementDecision:
    values: dict[str, Any] = {
        "id": uuid4(),
        "organization_id": cast.organization.id,
        "verdict": "allow",
        "results": [],
        "request": {},
        "environment": {},
        "at": AT,
    }
    return new_row(EnforcementDecision, **values | changes)


@pytest.mark.tampers  # these decisions were never made
def test_rows_of_several_tables_come_out_as_they_went_in(cast: Cast) -> None:
    bare, full = decision(cast), decision(cast, policy_version=7, approval={"tier": "x"}, frame_sha256=b"\0" * 32)
    written = entry()
    written.actor_kind = ActorKind.SYSTEM  # an enumeration's member is its value
    with CaptureQueriesContext(connection) as captured:
        insert_together([bare, full], [snapshot()], [], [written])
    assert len(captured) == 1
    with every_tenant():
        rows = {row.id: row for row in EnforcementDecision.objects.all()}
        assert (rows[bare.id].contract_id, rows[bare.id].policy_version, rows[bare.id].approval) == (None, None, None)
        assert (rows[full.id].policy_version, rows[full.id].approval) == (7, {"tier": "x"})
        assert bytes(rows[full.id].frame_sha256 or b"") == b"\0" * 32
        assert Snapshot.objects.get().document == {"ü": [1, None, "'\"\\"]}
        read = LedgerEntry.objects.get(id=written.id)
        assert (read.actor_kind, read.at, bytes(read.sha256)) == ("system", AT, written.sha256)
    assert not written._state.adding


@pytest.mark.tampers
def test_all_or_nothing(cast: Cast) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_together([snapshot(), snapshot()], [decision(cast)])
    with every_tenant():
        assert not EnforcementDecision.objects.exists()


def test_changes_and_removals_go_with_the_rows_or_not_at_all(cast: Cast) -> None:
    organization, gone = cast.organization, Product.objects.create(organization=cast.organization, slug="gone")
    kept = Product.objects.create(organization=organization, slug="kept")
    organization.max_concurrency, organization.name = 7, "Changed"
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_together(
            [snapshot(), snapshot()],
            changes=[RowChange(organization, ("max_concurrency",))],
            removals=[Removal(Product, "id", gone.id)],
        )
    pending = Pending()
    pending.change(organization, ("max_concurrency",))
    pending.change(organization, ("name", "max_concurrency"))
    pending.remove(Product, "id", gone.id)
    written = entry()
    pending.add(written)
    pending.change(written, ("payload",))  # it goes in as it is: there is nothing to change
    assert pending.holds(written)
    with CaptureQueriesContext(connection) as captured:
        pending.write()
        pending.write()  # there is nothing left
    assert len(captured) == 1
    with every_tenant():
        assert Organization.objects.filter(id=organization.id, max_concurrency=7, name="Changed").exists()
        assert list(Product.objects.values_list("id", flat=True)) == [kept.id]
        assert LedgerEntry.objects.filter(id=written.id).exists()
    with pytest.raises(ValueError, match="condition"):
        insert_together(
            [snapshot()],
            changes=[RowChange(organization, ("name",))],
            condition=InsertCondition("gate AS (SELECT TRUE AS go)", "go", 0),
        )


def test_a_text_that_is_too_long_is_refused_and_not_cut_off(cast: Cast) -> None:
    with pytest.raises(Exception, match="too long"), transaction.atomic():
        insert_together([snapshot(kind="x" * 13)], condition=InsertCondition("gate AS (SELECT TRUE AS go)", "go", 0))


def test_a_gate_that_is_shut_lets_nothing_in_and_says_so(cast: Cast) -> None:
    gate = InsertCondition("gate AS (SELECT $1::int > 3 AS go, $1::int + 1 AS next)", "go, next", 1)
    assert insert_together([snapshot()], condition=gate, parameters=["3"]) == (False, 4)
    assert not Snapshot.objects.exists()
    assert insert_together([snapshot()], condition=gate, parameters=["4"]) == (True, 5)
    assert Snapshot.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_an_entry_does_not_go_in_by_itself_unsaid() -> None:
    with pytest.raises(LedgerOutsideTransaction):
        insert_together([entry()])
    insert_together([entry()], alone=True)
    insert_together([snapshot()], [entry()])
    with transaction.atomic():
        insert_together([entry()])
    with every_tenant():
        assert LedgerEntry.objects.filter(action="organization.changed").count() == 3


def test_a_prepared_statement_is_refused_in_a_transaction_that_broke(cast: Cast) -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(transaction.TransactionManagementError):
            fetch("SELECT 1", ())


def test_what_is_counted_and_what_stands_around_a_query_sees_prepared_ones_too(cast: Cast) -> None:
    seen = []

    def watch(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return run(sql, params, many, context)

    with CaptureQueriesContext(connection) as captured, connection.execute_wrapper(watch):
        assert fetch("SELECT $1::int + 1", ("1",)) == [(2,)]
    assert seen == [query["sql"] for query in captured] == ["SELECT $1::int + 1"]
