"""Fills a database with copies of one completed attempt (three entries, eleven bound rows), sealed as if each had gone
through the services. Run by bench.verify, as the tables' owner, which may set `session_replication_role` meanwhile.
Set-based: a million attempts through the API would take hours."""

import json
import sys
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.utils import timezone
from rest_framework.test import APIClient

from attempts.execution.adapters.base import ADAPTERS, AdapterCall, Outcome, success
from attempts.execution.services.dispatch import attempt_dispatch
from config.demo.secrets import DemoSecrets
from config.demo.seed import demo_seed
from governance.ledger.models import LedgerEntry
from governance.ledger.rules.entry import EntryText, entry_hash_of_text, payload_hash
from governance.record.models import BoundRows
from governance.record.rules.items import BoundItem, items_read
from governance.record.selectors.rows import shapes_stored
from governance.record.sql import TableShape, image, quoted
from governance.sealing.configured import sealing_key
from governance.sealing.services.seal import ledger_seal_all
from reasoncodes.base.tenancy import every_tenant

BATCH = 20_000
FRESH = """
CREATE FUNCTION pg_temp.fresh(token integer, n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS $$
SELECT (lpad(to_hex(1700000000000 + n), 12, '0') || '7' || lpad(to_hex(token), 3, '0') || '8'
    || substr(md5(token || '/' || n), 1, 15))::uuid $$
"""
ITEMS = "CREATE TEMP TABLE bench_items (n bigint, part integer, ord integer, item bytea, salt bytea)"
# Each transaction has the clock of the fill. The entries have the template's time, which is hours before at most.
BOUND = """
INSERT INTO governance_boundrows (entry_id, part, rows, salts)
SELECT pg_temp.fresh(part, n), 0,
    int8send((extract(epoch FROM now()) * 1000000)::bigint) || string_agg(item, ''::bytea ORDER BY ord),
    string_agg(salt, ''::bytea ORDER BY ord) FROM bench_items GROUP BY n, part
"""


class NoOp:
    """An adapter that does nothing."""

    name = "http"
    effect = "idempotent"
    retryable: tuple[str, ...] = ()

    def call(self, call: AdapterCall) -> Outcome:
        return success()


def fresh(token: int, n: int) -> UUID:
    tail = md5(f"{token}/{n}".encode(), usedforsecurity=False).hexdigest()[:15]
    return UUID(f"{1700000000000 + n:012x}7{token:03x}8{tail}")


@dataclass
class Template:
    """One attempt's entries with their bound rows. `tokens` are the texts that each copy has of its own."""

    entries: list[LedgerEntry]
    parts: dict[int, list[BoundItem]]
    tokens: list[str]
    shapes: dict[tuple[int, int], TableShape]

    def token(self, row_id: bytes) -> int:
        return self.tokens.index(str(UUID(bytes=row_id)))

    def rows(self) -> list[tuple[TableShape, bytes]]:
        """The rows in the order in which they were first written."""
        seen: dict[tuple[int, bytes], TableShape] = {}
        for items in self.parts.values():
            for item in items:
                seen.setdefault((item.number, item.row_id), self.shapes[item.number, item.shape])
        return [(shape, row_id) for (_, row_id), shape in seen.items()]


def template() -> Template:
    facts = demo_seed(at=timezone.now(), secrets=DemoSecrets(Path(mkdtemp()) / "demo.json"))
    client, key = APIClient(SERVER_NAME="localhost"), f"bench-{uuid4()}"
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {facts['keys']['admin']}")
    example = facts["attempt_example"]
    body = example | {"runtime_mode": "active", "action": example["action"] | {"connector": "http"}}
    ADAPTERS["http"] = NoOp()

    def completed(key: str) -> Any:
        asked = client.post(
            "/api/v1/execution/demo-idempotent-http/1/attempts",
            body | {"patient_context_ref": f"ctx-{key}"},
            format="json",
            headers={"Idempotency-Key": key},
        )
        assert asked.status_code == 201, asked.content
        state = attempt_dispatch(attempt_id=UUID(asked.json()["id"]), now=timezone.now)
        assert state == "completed", state
        return asked

    completed(f"first-{key}")  # it also writes what attempts share, such as snapshots
    asked = completed(key)
    with every_tenant():
        entries = list(LedgerEntry.objects.filter(subject_id=asked.json()["id"]).order_by("id"))
        parts = {
            number: [
                item
                for part in BoundRows.objects.filter(entry_id=entry.id)
                for item in items_read(bytes(part.rows), bytes(part.salts or b""))
            ]
            for number, entry in enumerate(entries)
        }
    ids = {str(UUID(bytes=item.row_id)) for items in parts.values() for item in items}
    return Template(entries, parts, [*(str(one.id) for one in entries), *sorted(ids), key], shapes_stored())


def clone(made: Template, first: int, last: int) -> None:
    tables = {shape.table for shape, _ in made.rows()} | {"governance_ledgerentry", "governance_boundrows"}
    with transaction.atomic(), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        # Foreign keys are not checked: the rows are copies of rows that keep them.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("SET LOCAL timezone = 'UTC'; TRUNCATE bench_items")
        for shape, row_id in made.rows():
            _copy_rows(cursor, made, shape, row_id, first, last)
        for part, items in made.parts.items():
            for order, item in enumerate(items):
                _copy_items(cursor, made, part, order, item, first, last)
        cursor.execute(BOUND)
        _copy_entries(cursor, made, first, last)
        # Foreign keys are checked at the end of a transaction; a table with such work waiting cannot be altered.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in tables:
            cursor.execute("SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal", [table])
            for (name,) in cursor.fetchall():
                cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def _copy_rows(cursor: Any, made: Template, shape: TableShape, row_id: bytes, first: int, last: int) -> None:
    cursor.execute(
        f"SELECT to_jsonb(r)::text FROM {shape.table} r WHERE {quoted(shape.key)} = %s",
        [UUID(bytes=row_id)],
    )
    (text,) = cursor.fetchone()
    expression, parameters = "%s", [text]
    for number, token in enumerate(made.tokens):
        if token in text:
            expression = f"replace({expression}, %s, pg_temp.fresh({number}, n)::text)"
            parameters.append(token)
    names = ", ".join(quoted(name) for name in shape.columns)
    cursor.execute(
        f"INSERT INTO {shape.table} ({names}) SELECT {names} FROM generate_series({first}, {last}) AS n, "
        f"jsonb_populate_record(NULL::{shape.table}, ({expression})::jsonb)",
        parameters,
    )


def _copy_items(cursor: Any, made: Template, part: int, order: int, item: BoundItem, first: int, last: int) -> None:
    shape, token = made.shapes[item.number, item.shape], made.token(item.row_id)
    version = "r.row_version" if shape.versioned else "1"
    salt = f"uuid_send(pg_temp.fresh({1000 + part * 100 + order}, n))"
    salted = f"{salt} || " if shape.salted else ""
    # Digests of versions that are over are not compared with anything.
    digest = (
        f"CASE WHEN {version} = {item.version} THEN sha256({salted}convert_to({image(shape, 'r')}, 'UTF8'))"
        f" ELSE sha256(uuid_send(r.{quoted(shape.key)})) END"
    )
    cursor.execute(
        f"INSERT INTO bench_items SELECT n, {part}, {order}, decode('{shape.code:04x}', 'hex')"
        f" || uuid_send(pg_temp.fresh({token}, n)) || int4send({item.version}) || {digest},"
        f" {salt if shape.salted else 'NULL'}"
        f" FROM generate_series({first}, {last}) AS n"
        f" JOIN {shape.table} r ON r.{quoted(shape.key)} = pg_temp.fresh({token}, n)"
    )


COLUMNS = (
    "id, organization_id, action, subject_type, subject_id, actor_kind, actor_ref, reason_code, request_id, trace_id,"
    " payload, nonce, payload_sha256, sha256, at, format, earlier"
)


def _copy_entries(cursor: Any, made: Template, first: int, last: int) -> None:
    subject = made.token(made.entries[0].subject_id.bytes)
    with cursor.copy(f"COPY governance_ledgerentry ({COLUMNS}) FROM STDIN") as copy:
        for n in range(first, last + 1):
            for number, entry in enumerate(made.entries):
                text = json.dumps(entry.payload)
                for token, old in enumerate(made.tokens):
                    text = text.replace(old, str(fresh(token, n)))
                payload = payload_hash(payload=json.loads(text), nonce=bytes(entry.nonce or b""))
                header = EntryText(
                    id=str(fresh(number, n)),
                    organization_id=str(entry.organization_id),
                    action=entry.action,
                    subject_type=entry.subject_type,
                    subject_id=str(fresh(subject, n)),
                    actor_kind=entry.actor_kind,
                    actor_ref=entry.actor_ref,
                    reason_code=entry.reason_code,
                    request_id=entry.request_id,
                    trace_id=entry.trace_id,
                    at=entry.at.isoformat(timespec="microseconds"),
                    format=entry.format,
                    earlier=entry.earlier,
                )
                copy.write_row(
                    (
                        *header[:10],
                        text,
                        bytes(entry.nonce or b""),
                        payload,
                        entry_hash_of_text(header, payload_sha256=payload),
                        entry.at,
                        entry.format,
                        None if entry.earlier is None else json.dumps(entry.earlier),
                    )
                )


def main(count: int) -> None:
    with every_tenant():
        made = template()
        with connection.cursor() as cursor:
            cursor.execute(FRESH)
            cursor.execute(ITEMS)
        for first in range(1, count + 1, BATCH):
            clone(made, first, min(first + BATCH - 1, count))
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")  # as autovacuum does it: a record of this size is never without
        while ledger_seal_all(key=sealing_key(), at=timezone.now()):
            pass
    rows = sum(len(items) for items in made.parts.values())
    sys.stdout.write(json.dumps({"entries": len(made.entries), "items": rows}) + "\n")
