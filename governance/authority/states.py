"""States of an authority change and their legal moves. Model, database trigger and tests read this table."""

from enum import StrEnum


class AuthorityState(StrEnum):
    PROPOSED = "proposed"
    IN_FORCE = "in_force"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    LAPSED = "lapsed"


AUTHORITY_MOVES: frozenset[tuple[str, str]] = frozenset(
    (AuthorityState.PROPOSED.value, end.value) for end in AuthorityState if end is not AuthorityState.PROPOSED
)
