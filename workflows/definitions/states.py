"""States and moves of definitions, and the modes of a run, as data: models, migrations (triggers) and tests use the
same."""

from enum import StrEnum


class DefinitionStatus(StrEnum):
    DRAFT = "draft"
    ACTIVE = "active"
    ARCHIVED = "archived"


# Back to active only when the version that replaced it is unpublished.
DEFINITION_MOVES: frozenset[tuple[str, str]] = frozenset(
    {("draft", "active"), ("active", "archived"), ("draft", "archived"), ("archived", "active")}
)


class Mode(StrEnum):
    ACTIVE = "active"
    CLIENT_DRIVEN = "client_driven"
