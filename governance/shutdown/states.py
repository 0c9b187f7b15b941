"""Shutdown states, their legal moves, and scopes. Models, database triggers and tests read these tables."""

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
