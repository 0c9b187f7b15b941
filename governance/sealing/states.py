"""The fixed words of sealing: answers of witnesses, entry points of the read audit, the reason code of deny mode."""

from enum import StrEnum


class WitnessResult(StrEnum):
    STORED = "stored"
    FAILED = "failed"
    REFUSED = "refused"


class ReadDoor(StrEnum):
    API = "api"
    CONSOLE = "console"


LEDGER_INCONSISTENT = "ledger_inconsistent"
