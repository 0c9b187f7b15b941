"""The tamper suite, made from the registry: each governed table, each bound column, each way to change a row. Each is
found with its table and its id. One world for all; each case is taken back."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from psycopg import sql

from governance.record.rules.tables import BOUND
from governance.record.selectors.rows import shapes_stored
from governance.record.services.verify import record_rows_verify
from reasoncodes.base.tenancy import every_tenant
from tests.contract.world import World
from tests.emptying import empty_database
from tests.governance.record.forging import Table, run, taken_back
from tests.governance.test_commands import parameters
from tests.replay_plugin import forget_the_database
from tests.template_database import APPLICATION_ROLE

pytestmark = pytest.mark.tampers
PUT_BACK = "older copy"
# The functions behind the triggers of a table. The one that counts versions is left: it makes the change harder to see.
FUNCTIONS = """
SELECT p.proname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
WHERE t.tgrelid = %s::regclass AND NOT t.tgisinternal AND p.proname <> 'holdpoint_bind_version'
"""


@dataclass
class Sealed:
    """`ways` counts the cases; `longest` is the time from asking to the answer that names the row."""

    role: str
    tables: dict[str, Table] = field(default_factory=dict)
    filled: list[str] = field(default_factory=list)
    ways: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0


@pytest.fixture(scope="module")
def db(django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    """A role with what the application gets, in this worker's database only."""
    with django_db_blocker.unblock():
        forget_the_database()
        with pytest.MonkeyPatch.context() as to:
            to.setenv("HOLDPOINT_APP_ROLE", APPLICATION_ROLE)
            call_command("grant_application_role", stdout=StringIO())
        try:
            yield APPLICATION_ROLE
        finally:
            connection.close()
            with psycopg.connect(**parameters("postgres"), autocommit=True) as superuser:
                superuser.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(APPLICATION_ROLE)))


@pytest.fixture(scope="module")
def sealed(db: str, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sealed]:
    with django_db_blocker.unblock():
        World(tmp_path_factory.mktemp("demo"))
        block = transaction.atomic()
        block.__enter__()
        try:
            made = Sealed(db)
            shapes = shapes_stored()
            made.tables = {shape.table: Table(shape, shapes) for shape in shapes.values()}
            made.filled = [name for name, table in made.tables.items() if table.fill()]
            with every_tenant():
                result = record_rows_verify()
            assert (result.count, set(made.tables)) == (0, set(BOUND)), result.faults
            yield made
        finally:
            transaction.set_rollback(True)
            block.__exit__(None, None, None)
            empty_database()


@pytest.fixture
def table(request: pytest.FixtureRequest, sealed: Sealed, django_db_blocker: Any) -> Iterator[Table]:
    with django_db_blocker.unblock(), every_tenant(), taken_back():
        yield sealed.tables[request.param]


every_table = pytest.mark.parametrize("table", sorted(BOUND), indirect=True)


def look(sealed: Sealed, way: str, table: Table, *keys: Any, parts: Any = None) -> dict[str, str]:
    """The case is counted, and each of these rows is named."""
    started = time.perf_counter()
    found = table.found(parts)
    sealed.longest = max(sealed.longest, time.perf_counter() - started)
    sealed.ways[way] += 1
    assert set(found) == {table.row_name(key) for key in keys}, (way, table.name, found)
    return found


@every_table
def test_every_bound_column_every_deletion_and_every_insertion_is_found(table: Table, sealed: Sealed) -> None:
    first, second = table.ids()
    parts = table.own_part()
    before = table.keys()
    assert table.found(parts) == {}
    table.open()
    for name, kind in table.bound_columns:
        with taken_back():
            table.change(first, name, kind)
            changed = [first, *(table.keys() - before)]
            look(sealed, "change", table, *changed, parts=parts)
    with taken_back():
        table.delete(first)
        look(sealed, "delete", table, first, parts=parts)
    with taken_back():
        new = table.new_key(first)
        table.put(table.image(first) | {table.shape.key: str(new)})
        look(sealed, "insert", table, new, parts=parts)
    with taken_back():
        one, other = table.image(first), table.image(second)
        table.replace(first, other | {table.shape.key: one[table.shape.key]})
        table.replace(second, one | {table.shape.key: other[table.shape.key]})
        look(sealed, "swap", table, first, second, parts=parts)


@every_table
def test_an_older_copy_that_is_put_back_is_found(table: Table, sealed: Sealed) -> None:
    (first, _), shape = table.ids(), table.shape
    if not shape.versioned:
        # Such a row has one version: whatever else is put there is a change. There is no older copy.
        assert table.columns
        return
    table.open()
    older = table.image(first)
    table.bind()
    name, kind = next((c, k) for c, k in table.bound_columns if c not in (shape.key, "row_version"))
    table.change(first, name, kind)
    run("SET CONSTRAINTS ALL IMMEDIATE")
    assert table.found() == {}
    newer = table.image(first)
    assert newer["row_version"] == older["row_version"] + 1
    parts = table.own_part()
    table.open()
    for way, image in (
        ("older copy", older),
        ("older copy as the newest version", older | {"row_version": newer["row_version"]}),
        ("older copy as a later version", older | {"row_version": newer["row_version"] + 5}),
    ):
        with taken_back():
            table.replace(first, image)
            look(sealed, way, table, first, parts=parts)


@every_table
def test_with_empty_functions_behind_the_triggers_it_is_found(table: Table, sealed: Sealed) -> None:
    first, _ = table.ids()
    parts = table.own_part()
    for (function,) in run(FUNCTIONS, f"public.{table.name}"):
        run(
            f'CREATE OR REPLACE FUNCTION "{function}"() RETURNS trigger LANGUAGE plpgsql AS'
            " $$ BEGIN RETURN coalesce(NEW, OLD); END $$"
        )
    name, kind = table.bound_columns[-1]
    if name == "row_version":
        name, kind = table.bound_columns[-2]
    with taken_back():
        table.lift_rules()
        table.change(first, name, kind)
        run("SET CONSTRAINTS ALL IMMEDIATE")
        look(sealed, "empty functions", table, first, parts=parts)


def swap(table: Table, key: Any, other: Any) -> None:
    one, two = table.image(key), table.image(other)
    table.write_over(key, two)
    table.write_over(other, one)


def put_back(table: Table, key: Any) -> None:
    """The row is taken out, and a copy with an earlier version put in."""
    image = table.image(key)
    table.replace(key, image | ({"row_version": image["row_version"] - 1} if table.shape.versioned else {}))


def statements(table: Table, key: Any, other: Any) -> Iterator[tuple[str, Any]]:
    plain = [(c, k) for c, k in table.bound_columns if c not in (table.shape.key, "row_version")]
    for name, kind in plain:
        yield f"change {name}", lambda name=name, kind=kind: table.change(key, name, kind)
    if table.shape.versioned:
        yield "change row_version", lambda: table.change(key, "row_version", "integer")
    yield "delete", lambda: table.delete(key)
    yield "insert", lambda: table.put(table.image(key) | {table.shape.key: str(table.new_key(key))})
    yield "swap", lambda: swap(table, key, other)
    yield PUT_BACK, lambda: put_back(table, key)


def refused_bound_or_found(sealed: Sealed, way: str, table: Table, setting: str) -> None:
    """Whatever the database lets pass stands on the ledger, or is found."""
    (first, second), before = table.ids(), table.own_part()
    for name, act in statements(table, first, second):
        with taken_back():
            try:
                with transaction.atomic():
                    run("SET CONSTRAINTS ALL DEFERRED")
                    run(setting)
                    act()
                    run("SET CONSTRAINTS ALL IMMEDIATE")
                    run("RESET ROLE")
            except DatabaseError:
                sealed.ways[f"{way}: refused"] += 1
                continue
            run("RESET ROLE")
            after = table.own_part()
            if len(after[0].rows) > len(before[0].rows):
                # A row that was taken out and is there again is on the ledger, and a fault beside it.
                found = set(table.found(after))
                assert found == ({table.row_name(first)} if name == PUT_BACK else set()), (way, table.name, name)
                sealed.ways[f"{way}: on the ledger"] += 1
            else:
                assert table.found(after), (way, table.name, name)
                sealed.ways[f"{way}: found"] += 1


@every_table
def test_in_replica_mode_it_is_refused_or_on_the_ledger_or_found(table: Table, sealed: Sealed) -> None:
    refused_bound_or_found(sealed, "replica mode", table, "SET LOCAL session_replication_role = replica")
    run("SET LOCAL session_replication_role = origin")


@every_table
def test_by_the_applications_role_it_is_refused_or_on_the_ledger_or_found(table: Table, sealed: Sealed) -> None:
    refused_bound_or_found(sealed, "application's role", table, f'SET LOCAL ROLE "{sealed.role}"')


@every_table
def test_the_whole_verification_names_the_table_and_the_row(table: Table, sealed: Sealed) -> None:
    first, _ = table.ids()
    table.open()
    table.delete(first)
    started = time.perf_counter()
    result = record_rows_verify()
    sealed.longest = max(sealed.longest, time.perf_counter() - started)
    sealed.ways["whole"] += 1
    assert [(fault.table, fault.id) for fault in result.faults] == [(table.name, table.row_name(first))]


def test_the_items_of_a_transaction_cannot_be_blanked_unseen(sealed: Sealed, django_db_blocker: Any) -> None:
    """The application's role can write the setting that carries the items."""
    table = sealed.tables["governance_organization"]
    with django_db_blocker.unblock(), every_tenant(), taken_back():
        first, second = table.ids()
        run("SET CONSTRAINTS ALL DEFERRED")
        run(f'SET LOCAL ROLE "{sealed.role}"')
        run("UPDATE governance_organization SET name = 'forged' WHERE id = %s", first)
        run("SELECT set_config('holdpoint.rows', '', true)")
        run("SET CONSTRAINTS ALL IMMEDIATE")
        run("RESET ROLE")
        assert set(table.found()) == {str(first)}
        # Nor hidden by an item that is there twice: the count fits then, the sum does not.
        items = [item for item in table.own_part()[0].items() if item.row_id == second.bytes]
        code = f"{table.shape.code:04x}{items[-1].row_id.hex()}{items[-1].version:08x}{items[-1].digest.hex()}"
        run("SET CONSTRAINTS ALL DEFERRED")
        run("UPDATE reasoncodes_reasoncode SET label = label || '!' WHERE code = 'policy_denied'")
        run("SELECT set_config('holdpoint.rows', current_setting('holdpoint.rows') || %s, true)", code)
        run("SET CONSTRAINTS ALL IMMEDIATE")
        assert set(table.found()) == {str(first)}


def test_figures(sealed: Sealed, record_property: Any) -> None:
    """For the note in the documents. The suite is made from the registry, so a table that is new there is in it."""
    record_property("cases", sum(sealed.ways.values()))
    sys.stdout.write(
        f"\n{sum(sealed.ways.values())} cases: {dict(sealed.ways)}\n"
        f"longest detection {sealed.longest:.2f} s; filled by hand: {sealed.filled}\n"
    )
    # Parallel workers share the suite, and each counts its own.
    assert sealed.ways["whole"] <= len(BOUND) == len(sealed.tables)
