"""Moves: what one ledger entry tells, in order. Every reader of entries expands them with `moves_of`. Pure. How moves
are joined into an entry is in `entry`."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from governance.ledger.rules.entry import AS_BEFORE, MOVES


class Move(NamedTuple):
    """`facts` is None once the entry's payload was erased by order; the names stay."""

    action: str
    reason_code: str
    facts: dict[str, Any] | None


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
