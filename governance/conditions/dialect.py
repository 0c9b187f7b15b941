"""The two dialects. A text means the same in both, if both can read it; the extended one also reads arithmetic."""

from enum import StrEnum


class Dialect(StrEnum):
    """`plain`: policies and workflows of format 1. `extended`: workflows of format 2."""

    PLAIN = "plain"
    EXTENDED = "extended"
