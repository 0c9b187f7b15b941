"""Policy states and their legal moves. Models, database triggers and tests read these tables."""

from enum import StrEnum


class PolicyState(StrEnum):
    DRAFT = "draft"
    ACTIVE = "active"
    ARCHIVED = "archived"


POLICY_MOVES: frozenset[tuple[str, str]] = frozenset(
    {("draft", "active"), ("active", "archived"), ("draft", "archived")}
)
