"""Moves: what one ledger entry tells, in order. Joins the moves of one transaction into one entry, and expands an entry
into its moves again. Pure: every reader of entries uses `moves_of`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

# Only moves of these may share an entry. All others are looked up by their action in SQL (keys, epochs, erasures), so
# each of them is the action of an entry of its own.
JOINING: Final = ("attempt.", "review.", "workflow.")
# Keys of a payload that holds the facts of several moves.
MOVES: Final = "moves"
AS_BEFORE: Final = "as_before"


class Move(NamedTuple):
    """`facts` is None once the entry's payload was erased by order; the names stay."""

    action: str
    reason_code: str
    facts: dict[str, Any] | None


def may_join(action: str) -> bool:
    """Whether an entry can hold this move among others."""
    return action.startswith(JOINING)


def facts_joined(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The payload of an entry with several moves. A fact that the latest earlier move with this name says too is only
    named: hashes and ids are most of an entry, and moves of one transaction repeat them."""
    told: dict[str, Any] = {}
    moves = []
    for one in facts:
        if AS_BEFORE in one:
            raise ValueError(f"a fact cannot be called {AS_BEFORE}")
        repeated = [name for name, value in one.items() if name in told and _same(told[name], value)]
        said = {name: value for name, value in one.items() if name not in repeated}
        moves.append(said | {AS_BEFORE: repeated} if repeated else said)
        told.update(one)
    return {MOVES: moves}


def _same(one: Any, other: Any) -> bool:
    # Of the same type too: for Python 1, 1.0 and True are equal, as JSON they are not.
    return type(one) is type(other) and isinstance(one, str | int) and bool(one == other)


def moves_of(
    *, action: str, reason_code: str, earlier: Iterable[str] | None, payload: Mapping[str, Any] | None
) -> list[Move]:
    """The moves of an entry, in order. The last one, its deciding move, has the entry's action and reason code."""
    names = [*(earlier or ()), action]
    if len(names) == 1:
        return [Move(action, reason_code, None if payload is None else dict(payload))]
    found = [None] * len(names) if payload is None else _facts_apart(payload[MOVES])
    codes = [*[""] * (len(names) - 1), reason_code]
    return [Move(*one) for one in zip(names, codes, found, strict=True)]


def _facts_apart(moves: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
    told: dict[str, Any] = {}
    found: list[dict[str, Any] | None] = []
    for said in moves:
        facts = {name: told[name] for name in said.get(AS_BEFORE, ())}
        facts |= {name: value for name, value in said.items() if name != AS_BEFORE}
        told.update(facts)
        found.append(facts)
    return found
