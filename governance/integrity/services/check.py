"""The whole check of the record: the ledger with its tree, heads and witnesses, then every governed row against it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from governance.integrity.models import RecordProgress
from governance.integrity.selectors.standing import progress_get
from governance.record.services.verify import Progress, RecordDifference, record_rows_verify
from governance.sealing.adapters.base import Witness
from governance.sealing.services.verify import Verified, ledger_verify
from governance.sealing.services.witnesses import PublicKeys

LEDGER = "governance_ledgerentry"


@dataclass(slots=True)
class RecordChecked:
    entries: int = 0
    rows: int = 0
    tables: int = 0
    count: int = 0
    faults: list[RecordDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ledger: Verified = field(default_factory=Verified)

    @property
    def valid(self) -> bool:
        return not self.count

    def as_page(self) -> dict[str, Any]:
        """For the console: what the ledger alone shows, and the rows."""
        words = [f"{one.table} {one.id}: {one.what}" for one in self.faults if one.table != LEDGER]
        ledger = self.ledger.as_json()
        return ledger | {
            "valid": self.valid,
            "rows": self.rows,
            "tables": self.tables,
            "faults": self.count,
            "wrong": [*ledger["wrong"], *words],
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "valid": self.valid,
            "checked": {"entries": self.entries, "rows": self.rows, "tables": self.tables},
            "count": self.count,
            "faults": [one.as_json() for one in self.faults],
            "notes": self.notes,
        }


def record_check(
    *,
    full: bool,
    at: datetime,
    processes: int = 1,
    progress: Progress = lambda done, total: None,
    witnesses: Iterable[Witness] = (),
    keys: PublicKeys = (),
) -> RecordChecked:
    """Check everything. Without `full`, only rows that came since the last check are compared; the ledger itself is
    always checked as a whole. Faults are returned, not recorded: a check must not depend on writing."""
    first = 0 if full else progress_get().checked_to
    ledger = ledger_verify(processes=processes, progress=progress, witnesses=witnesses, keys=keys)
    rows = record_rows_verify(first=first, processes=processes, progress=progress)
    checked = RecordChecked(entries=ledger.entries, rows=rows.rows, tables=rows.tables, ledger=ledger)
    checked.faults = [RecordDifference(LEDGER, "", text) for text in ledger.wrong] + rows.faults
    checked.count = ledger.faults + rows.count
    checked.notes = [*ledger.notes, *rows.notes]
    if full:
        RecordProgress.objects.update_or_create(id=1, defaults={"full_at": at, "full_result": checked.as_json()})
    return checked
