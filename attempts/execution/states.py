"""States and moves of an attempt, as data: model, database trigger and tests read the same (S1, exactly these)."""

from enum import StrEnum


class ReceiptOutcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
