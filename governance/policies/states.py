"""States and moves of this app's machines, as data: models, database triggers and tests read the same tables."""

from enum import StrEnum


class PolicyState(StrEnum):
    DRAFT = "draft"
    ACTIVE = "active"
    ARCHIVED = "archived"


POLICY_MOVES: frozenset[tuple[str, str]] = frozenset(
    {("draft", "active"), ("active", "archived"), ("draft", "archived")}
)
