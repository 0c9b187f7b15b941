"""Who finds faults of the record, and the reason code under which they stop work."""

from enum import StrEnum

RECORD_DIFFERS = "record_differs"


class FoundBy(StrEnum):
    CLOCK = "clock"
    COMMAND = "command"
    CONSOLE = "console"
