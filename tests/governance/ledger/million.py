"""Many well-formed entries in little time: built by the program's own function, copied in, sealed in batches."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_entry_build
from governance.sealing.services.seal import ledger_seal
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.ids import uuid7
from tests.governance.ledger.sealing import KEY

COLUMNS = [field.attname for field in LedgerEntry._meta.concrete_fields]
START = datetime(2026, 11, 16, tzinfo=UTC)


def entries_copied(count: int, *, organization_id: UUID | None) -> None:
    """With payloads as large as an attempt's."""
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY governance_ledgerentry ({', '.join(COLUMNS)}) FROM STDIN") as copy,
    ):
        for number in range(count):
            copy.write_row(_row(number, organization_id))


def _row(number: int, organization_id: UUID | None) -> list[Any]:
    entry = ledger_entry_build(
        action="attempt.received",
        organization_id=organization_id,
        subject_type="attempt",
        subject_id=uuid7(),
        actor=SYSTEM,
        at=START + timedelta(milliseconds=number),
        payload={"digest": "ab" * 32, "contract": "close-case/1", "connector": "http", "number": number},
    )
    LedgerEntry.before_insert([entry])
    return [json.dumps(entry.payload) if name == "payload" else getattr(entry, name) for name in COLUMNS]


def all_sealed(count: int) -> float:
    """Until there are that many leaves; seconds."""
    began = time.monotonic()
    size = 0
    while size < count:
        head = ledger_seal(at=timezone.now(), key=KEY)
        if head is not None:
            size = head.size
            continue
        assert time.monotonic() - began < 900, "sealing does not come to an end"
        time.sleep(0.05)
    return time.monotonic() - began
