"""Outcomes of a receipt. An unknown outcome has no receipt."""

from enum import StrEnum


class ReceiptOutcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
