"""A record to tamper with, a witness in a folder, and the verifying command: shared by the tests of this folder."""

import json
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_append
from governance.sealing.adapters.file import FileWitness
from governance.sealing.models import LedgerCheckpoint
from governance.sealing.services.witnesses import witness_push
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.governance.ledger.sealing import seal_all
from tests.tampering import triggers_off


def append(count: int = 1, *, organization_id: UUID | None = None, at: datetime | None = None) -> list[LedgerEntry]:
    with every_tenant(), transaction.atomic():
        return [
            ledger_append(
                action="organization.changed",
                organization_id=organization_id,
                subject_type="organization",
                subject_id=uuid4(),
                actor=SYSTEM,
                at=at or timezone.now(),
                payload={"number": number},
            )
            for number in range(count)
        ]


def sealed(*batches: int, organization_id: UUID | None = None) -> int:
    """Appends and seals batch after batch; the size of the newest head."""
    for count in batches:
        append(count, organization_id=organization_id)
        seal_all()
    return head().size


def head() -> LedgerCheckpoint:
    found = LedgerCheckpoint.objects.order_by("-size").first()
    assert found is not None
    return found


def witness_in(folder: Path) -> FileWitness:
    return FileWitness(name="notary", path=folder / "heads.jsonl")


def witnessed(witness: FileWitness) -> None:
    """Everything that is sealed goes to the witness."""
    while witness_push(at=timezone.now(), witness=witness).stored:
        pass


def verify(*options: str) -> dict[str, Any]:
    """What the command prints; its exit code says the same."""
    out, code = StringIO(), 0
    try:
        call_command("verify_ledger", "--json", "--processes", "1", *options, stdout=out)
    except CommandError as error:
        code = error.returncode
    found: dict[str, Any] = json.loads(out.getvalue())
    assert code == (0 if found["valid"] else 1)
    return found


def tampered(*statements: str | tuple[str, list[Any]]) -> None:
    """As the owner of the tables could: triggers off, changes, triggers on again."""
    tables = ("entry", "leaf", "node", "checkpoint", "key", "keyhandover", "epoch")
    with triggers_off(*(f"governance_ledger{table}" for table in tables)), connection.cursor() as cursor:
        for statement in statements:
            sql, parameters = (statement, []) if isinstance(statement, str) else statement
            cursor.execute(sql, parameters)
