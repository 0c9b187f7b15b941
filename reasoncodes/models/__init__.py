"""Tables of the vocabulary."""

from reasoncodes.models.reason_code import ReasonCode

__all__ = ["ReasonCode"]
