"""What somebody with the owner's rights does to rows, one table at a time, and how the record's own code judges it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from governance.record.rules.compare import RowFault, row_name
from governance.record.selectors.rows import BoundPart, parts_sealed, parts_unsealed
from governance.record.services.verify import SIZE, Shapes, parts_compare, rows_uncovered
from governance.record.sql import TableShape, quoted
from tests.governance.record.test_items import packed

SEED = 7
COLUMNS = """
SELECT a.attname, format_type(a.atttypid, NULL), a.attgenerated <> '' FROM pg_attribute a
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
RULES = """
SELECT 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || quote_ident(conname) || ' CASCADE'
FROM pg_constraint, (SELECT %s::regclass AS this) AS t
WHERE (conrelid = this AND contype IN ('c', 'u', 'x', 'f')) OR (confrelid = this AND contype = 'f')
ORDER BY contype = 'u'
"""
UNIQUE = """
SELECT 'DROP INDEX ' || indexrelid::regclass FROM pg_index i WHERE indrelid = %s::regclass AND indisunique
AND NOT indisprimary AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
"""
# For each type another value than the one that is there.
OTHER = {
    "boolean": "NOT coalesce({c}, false)",
    "uuid": "gen_random_uuid()",
    "jsonb": "CASE WHEN {c} = '[1]' THEN '[2]'::jsonb ELSE '[1]' END",
    "bytea": "coalesce({c}, '') || '\\x01'",
    "timestamp with time zone": "coalesce({c}, 'epoch') + interval '1 microsecond'",
    "date": "coalesce({c}, 'epoch') + 1",
    "inet": "coalesce({c}, '10.0.0.1') + 1",
    "interval": "coalesce({c}, interval '1 s') + interval '1 s'",
}
# For each type some value, for tables that the services left empty.
SOME = {
    "boolean": "false",
    "uuid": "gen_random_uuid()",
    "jsonb": "'{}'",
    "bytea": "'\\x00'",
    "timestamp with time zone": "clock_timestamp()",
    "date": "now()::date",
    "inet": "'10.0.0.1'",
    "interval": "interval '1 s'",
}
BINDING = ("bind_rows", "bind_rows_end", "bind_changes", "zz_bind_version")
NUMBERS = ("smallint", "integer", "bigint", "numeric", "double precision", "real")


def run(sql: str, *parameters: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def taken_back() -> Iterator[None]:
    """What happens inside has not happened afterwards."""
    mark = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(mark)


def other_value(name: str, kind: str) -> str:
    column = quoted(name)
    if kind.endswith("[]"):
        return f"CASE WHEN cardinality({column}) > 0 THEN '{{}}' ELSE array_append({column}, NULL) END"
    if kind in NUMBERS:
        return f"coalesce({column}, 0) + 1"
    fallback = "CASE WHEN {c} = 'x' THEN 'y' ELSE 'x' END"
    return OTHER.get(kind, fallback).replace("{c}", column)


@dataclass
class Table:
    """One governed table whose rows are forged."""

    shape: TableShape
    shapes: Shapes
    columns: list[tuple[str, str, bool]] = field(init=False)

    def __post_init__(self) -> None:
        self.columns = run(COLUMNS, f"public.{self.name}")

    @property
    def name(self) -> str:
        return self.shape.table

    @property
    def key(self) -> str:
        return quoted(self.shape.key)

    @property
    def bound_columns(self) -> list[tuple[str, str]]:
        return [(c, kind) for c, kind, made in self.columns if c in self.shape.columns and not made]

    def ids(self) -> list[Any]:
        return [row[0] for row in run(f"SELECT {self.key} FROM {self.name} ORDER BY {self.key} DESC LIMIT 2")]  # noqa: S608

    def keys(self) -> set[Any]:
        return {row[0] for row in run(f"SELECT {self.key} FROM {self.name}")}  # noqa: S608

    def row_name(self, key: Any) -> str:
        """As the verifier names it."""
        if self.shape.key_kind == "text":
            return str(run("SELECT substr(encode(sha256(convert_to(%s, 'UTF8')), 'hex'), 1, 32)", key)[0][0])
        return str(key)

    def open(self) -> None:
        """No trigger, no rule, no unique index is left: as the owner could do it."""
        run("SET CONSTRAINTS ALL IMMEDIATE")
        run(f"ALTER TABLE {self.name} DISABLE TRIGGER USER")
        self.lift_rules()

    def lift_rules(self) -> None:
        for sql in (RULES, UNIQUE):
            for (statement,) in run(sql, f"public.{self.name}"):
                run(statement)

    def bind(self) -> None:
        """The triggers that bind are on again; those that refuse stay off."""
        run("SET CONSTRAINTS ALL IMMEDIATE")
        for name in BINDING if self.shape.versioned else BINDING[:2]:
            run(f"ALTER TABLE {self.name} ENABLE ALWAYS TRIGGER {name}")

    def fill(self) -> int:
        """Two rows at least, bound like all others. Returns how many were missing."""
        missing = 2 - len(self.ids())
        if missing > 0:
            self.open()
            self.bind()
            for number in range(missing):
                self._put_some(number + 1)
            run("SET CONSTRAINTS ALL IMMEDIATE")
        return max(0, missing)

    def _put_some(self, number: int) -> None:
        chosen = [(c, kind) for c, kind, made in self.columns if not made and c != "row_version"]
        values = []
        for name, kind in chosen:
            if kind in NUMBERS:
                key = f"(SELECT coalesce(max({self.key}), 0) + {number} FROM {self.name})"  # noqa: S608
                values.append(key if name == self.shape.key else str(number))
            else:
                values.append("'{}'" if kind.endswith("[]") else SOME.get(kind, f"'x{number}'"))
        names = ", ".join(quoted(name) for name, _ in chosen)
        run(f"INSERT INTO {self.name} ({names}) OVERRIDING SYSTEM VALUE SELECT {', '.join(values)}")

    def image(self, key: Any) -> dict[str, Any]:
        (found,) = run(f"SELECT to_jsonb(r) FROM {self.name} r WHERE {self.key} = %s", key)  # noqa: S608
        return dict(json.loads(found[0]) if isinstance(found[0], str) else found[0])

    def put(self, image: dict[str, Any]) -> None:
        names = ", ".join(quoted(c) for c, _, made in self.columns if not made)
        run(
            f"INSERT INTO {self.name} ({names}) OVERRIDING SYSTEM VALUE"  # noqa: S608
            f" SELECT {names} FROM jsonb_populate_record(NULL::{self.name}, %s::jsonb)",
            json.dumps(image),
        )

    def delete(self, key: Any) -> None:
        run(f"DELETE FROM {self.name} WHERE {self.key} = %s", key)  # noqa: S608

    def replace(self, key: Any, image: dict[str, Any]) -> None:
        self.delete(key)
        self.put(image)

    def write_over(self, key: Any, image: dict[str, Any]) -> None:
        """All columns but the key, by UPDATE: what a role without the right to delete would try."""
        names = [c for c, _, made in self.columns if not made and c != self.shape.key]
        if names:  # a table may have nothing but its key
            changes = ", ".join(f"{quoted(c)} = new.{quoted(c)}" for c in names)
            run(
                f"UPDATE {self.name} r SET {changes}"  # noqa: S608
                f" FROM jsonb_populate_record(NULL::{self.name}, %s::jsonb) new WHERE r.{self.key} = %s",
                json.dumps(image),
                key,
            )

    def change(self, key: Any, name: str, kind: str) -> None:
        value = other_value(name, kind)
        run(f"UPDATE {self.name} SET {quoted(name)} = {value} WHERE {self.key} = %s", key)  # noqa: S608

    def new_key(self, key: Any) -> Any:
        match self.shape.key_kind:
            case "uuid":
                return run("SELECT gen_random_uuid()")[0][0]
            case "int":
                return run(f"SELECT max({self.key}) + 1000 FROM {self.name}")[0][0]  # noqa: S608
            case _:
                return f"{key[:-1]}{'0' if key[-1] != '0' else '1'}"

    def own_part(self) -> list[BoundPart]:
        """What the ledger has about this table's rows."""
        (size,) = run(SIZE)[0]
        parts = [*parts_sealed(first=0, before=size), *parts_unsealed()]
        items = [item for part in parts for item in part.items() if item.number == self.shape.number]
        rows, salts = packed(items)
        return [BoundPart(parts[0].entry_id, rows, salts)]

    def found(self, parts: list[BoundPart] | None = None) -> dict[str, str]:
        """Names of the rows that the verifier finds, with what it says."""
        compared = parts_compare(parts or self.own_part(), self.shapes, seed=SEED)
        (size,) = run(SIZE)[0]
        faults: list[RowFault] = [*compared.faults, *compared.unexplained()]
        faults += rows_uncovered(compared, self.shape, size, SEED)
        assert {fault.number for fault in faults} <= {self.shape.number}
        return {row_name(fault.row_id, self.shape.key_kind): fault.what for fault in faults}
