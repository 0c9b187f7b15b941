"""States and moves of this app's machines, as data: models, database triggers and tests read the same tables."""

from enum import StrEnum


class WitnessResult(StrEnum):
    STORED = "stored"
    FAILED = "failed"
    REFUSED = "refused"


class ReadDoor(StrEnum):
    API = "api"
    CONSOLE = "console"


LEDGER_INCONSISTENT = "ledger_inconsistent"
