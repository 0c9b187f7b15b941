"""States and moves of this app's machines, as data: models, database triggers and tests read the same tables."""

from enum import StrEnum


class ShutdownState(StrEnum):
    ENGAGED = "engaged"
    RELEASED = "released"


SHUTDOWN_MOVES: frozenset[tuple[str, str]] = frozenset({("engaged", "released")})


class ShutdownScope(StrEnum):
    GLOBAL = "global"
    ORGANIZATION = "organization"
    CONTRACT = "contract"
    CONNECTOR = "connector"
    REGION = "region"
