"""Seals again, with the current SECRET_KEY, what a former one sealed. Web and worker go on meanwhile."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from psycopg import sql

from governance.ledger.services import ledger_append
from governance.outside.secret_box import SealedColumn, SecretUnreadable, seal, sealed_columns, unseal
from governance.secrets.selectors import SealedText, Standing, column_sql, secrets_standing, texts_to_reseal
from reasoncodes.base.actors import Actor
from reasoncodes.base.ids import uuid7

BATCH = 200
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Rotated:
    """`resealed` by column. `unreadable` texts were left as they are: no key of this process opens them."""

    resealed: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    left: Standing = field(default_factory=Standing)

    @property
    def done(self) -> bool:
        return not (self.left.former or self.left.unknown)


def secrets_rotate(
    *, actor: Actor, at: datetime, batch: int = BATCH, progress: Progress = lambda done, total: None
) -> Rotated:
    """Seal every registered text again that is not under the current key. Each batch is its own transaction: stopped at
    any moment, it is continued by running it again."""
    rotated, seen = Rotated(), 0
    before = secrets_standing()
    total = before.former + before.unknown
    for column in sealed_columns():
        after: Any = None
        while texts := texts_to_reseal(column=column, after=after, limit=batch):
            with transaction.atomic():
                for text in texts:
                    _reseal(column, text, rotated)
            after, seen = texts[-1].row, seen + len(texts)
            progress(min(seen, total), total)
    # Counted again: a process with the former key may have sealed something behind the pass.
    rotated.left = secrets_standing()
    if rotated.resealed:
        _record(rotated, actor=actor, at=at)
    return rotated


def _reseal(column: SealedColumn, found: SealedText, rotated: Rotated) -> None:
    try:
        clear = unseal(found.text, purpose=column.purpose)
    except SecretUnreadable:
        rotated.unreadable += 1
        return
    if _put(column, found, seal(clear, purpose=column.purpose)):
        rotated.resealed[column.words] += 1


def _put(column: SealedColumn, found: SealedText, sealed: str) -> bool:
    """Compare and set: a text that somebody replaced since it was read stays as they left it, and the rest of a JSON
    column too."""
    parts = column_sql(column)
    value: sql.Composable = sql.Placeholder()
    if column.json_key:
        path = sql.Literal([column.json_key])
        value = sql.SQL("jsonb_set({}, {}, to_jsonb(%s::text))").format(parts.column, path)
    statement = sql.SQL("UPDATE {table} SET {column} = {value} WHERE {key} = %s AND {text} = %s").format(
        table=parts.table, column=parts.column, value=value, key=parts.key, text=parts.text
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [sealed, found.row, found.text])
        return bool(cursor.rowcount)


def _record(rotated: Rotated, *, actor: Actor, at: datetime) -> None:
    left = rotated.left
    with transaction.atomic():
        ledger_append(
            action="secrets.resealed",
            organization_id=None,
            subject_type="secrets",
            subject_id=uuid7(),
            actor=actor,
            at=at,
            payload={
                "resealed": sum(rotated.resealed.values()),
                "columns": dict(sorted(rotated.resealed.items())),
                "left": left.former + left.unknown,
                "unreadable": rotated.unreadable,
            },
        )
