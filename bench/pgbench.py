"""The upper limit of PostgreSQL alone: pgbench inserts the rows of an allowed intake, one statement per transaction."""

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from config.embedded.postgres_cluster import binaries

IDS = "ids AS (SELECT uuidv7() AS attempt, uuidv7() AS decision)"
# Table, the condition for its rows of one attempt, and the columns that are new in every copy.
TABLES: list[tuple[str, str, dict[str, str]]] = [
    ("governance_enforcementdecision", "id = %(decision)s", {"id": "ids.decision"}),
    ("attempts_attempt", "id = %(attempt)s", {"id": "ids.attempt", "decision_id": "ids.decision"}),
    ("attempts_attempttransition", "attempt_id = %(attempt)s", {"id": "uuidv7()", "attempt_id": "ids.attempt"}),
    (
        "governance_ledgerentry",
        "subject_id = %(attempt)s AND action <> 'attempt.replayed'",
        {"id": "uuidv7()", "subject_id": "ids.attempt"},
    ),
    (
        "attempts_idempotencyrecord",
        "attempt_id = %(attempt)s",
        {"id": "uuidv7()", "attempt_id": "ids.attempt", "key": "ids.attempt::text"},
    ),
]
MADE_BY_DEFAULT = {"txid"}


def same_rows_alone(database: psycopg.Connection[Any], *, clients: int, transactions: int) -> dict[str, Any]:
    """The rate and WAL of inserting the rows of the newest allowed attempt again and again."""
    newest = "SELECT id, decision_id FROM attempts_attempt WHERE workflow_slug = 'demo-allow' ORDER BY id DESC LIMIT 1"
    row = database.execute(newest).fetchone()
    if row is None:
        raise RuntimeError("nobody was allowed anything")
    statement, each = _statement(database, {"attempt": row[0], "decision": row[1]}), max(1, transactions // clients)
    _pgbench(statement, clients=clients, each=20)
    before = _position(database)
    per_s = _pgbench(statement, clients=clients, each=each)
    return {"per_s": round(per_s, 1), "wal_bytes": round((_position(database) - before) / (each * clients))}


def _statement(database: psycopg.Connection[Any], found: dict[str, Any]) -> str:
    inserts = [
        f"i{number}_{table} AS ({insert})"
        for table, condition, new in TABLES
        for number, insert in enumerate(_inserts(database, table, condition, found, new))
    ]
    return f"WITH {IDS}, {', '.join(inserts)} SELECT 1;"


def _inserts(
    database: psycopg.Connection[Any], table: str, condition: str, found: dict[str, Any], new: dict[str, str]
) -> list[str]:
    listed = database.execute(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [table],
    ).fetchall()
    columns = [(name, kind) for name, kind in listed if name not in MADE_BY_DEFAULT]
    texts = ", ".join(f'"{name}"::text' for name, _ in columns)
    rows = database.execute(f"SELECT {texts} FROM {table} WHERE {condition}", found).fetchall()  # type: ignore[arg-type]
    names = ", ".join(f'"{name}"' for name, _ in columns)
    return [
        f"INSERT INTO {table} ({names}) SELECT "
        + ", ".join(new.get(name) or _literal(text, kind) for (name, kind), text in zip(columns, row, strict=True))
        + " FROM ids"
        for row in rows
    ]


def _literal(text: str | None, kind: str) -> str:
    """The text as an SQL literal."""
    # Colons are escaped, because pgbench replaces `:word` as a variable, even inside quotes.
    if text is None:
        return "NULL"
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace(":", "\\003A").replace("\n", "\\000A")
    return f"U&'{escaped}'::{kind}"


def _pgbench(statement: str, *, clients: int, each: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "rows.sql"
        script.write_text(statement)
        command = [str(binaries() / "pgbench"), "-n", "-M", "prepared", "-f", str(script)]
        command += ["-c", str(clients), "-j", "2", "-t", str(each), os.environ["DATABASE_URL"]]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    if found is None:
        raise RuntimeError(done.stdout + done.stderr)
    return float(found[1])


def _position(database: psycopg.Connection[Any]) -> int:
    row = database.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").fetchone()
    return int(row[0]) if row else 0
