"""Where in its row each place stands. Places joined by a main line form a column that stays straight; columns move
towards what they are joined with, as far as their neighbours in the rows allow."""

from collections.abc import Callable
from itertools import pairwise
from math import inf

from workflows.definitions.layers import Hop, Place

_ROUNDS = 24


def place_rows(rows: list[list[Place]], hops: list[Hop], *, width: Callable[[Place], float]) -> dict[Place, float]:
    """The middle of every place. In each row the order holds and nothing overlaps."""
    column_of = _columns(rows, hops)
    apart = _apart(rows, column_of, width)
    pulls = _pulls(hops, column_of)
    at = _packed(apart, column_of)
    order = sorted(at, key=lambda column: (at[column], str(column)))
    for turn in range(_ROUNDS):
        for column in order if turn % 2 else reversed(order):
            at[column] = _moved(column, at, apart, pulls)
    return {place: at[column] for place, column in column_of.items()}


def _columns(rows: list[list[Place]], hops: list[Hop]) -> dict[Place, Place]:
    """Each place's column, by its topmost place. The heaviest lines first; none that would cross a column."""
    stands = {place: (number, index) for number, row in enumerate(rows) for index, place in enumerate(row)}
    joined: dict[Place, Place] = {}  # lower: upper
    taken: set[Place] = set()
    between: dict[int, list[tuple[int, int]]] = {}
    for hop in sorted(hops, key=lambda hop: (-hop.weight, stands[hop.upper], stands[hop.lower])):
        (number, left), (_, right) = stands[hop.upper], stands[hop.lower]
        others = between.setdefault(number, [])
        crosses = any((left - one) * (right - other) < 0 for one, other in others)
        if hop.upper not in taken and hop.lower not in joined and not crosses:
            taken.add(hop.upper)
            joined[hop.lower] = hop.upper
            others.append((left, right))
    column_of: dict[Place, Place] = {}
    for row in rows:
        for place in row:
            column_of[place] = column_of[joined[place]] if place in joined else place
    return column_of


class _Apart:
    """How far columns that are neighbours in some row must stand apart."""

    def __init__(self) -> None:
        self.left: dict[Place, dict[Place, float]] = {}
        self.right: dict[Place, dict[Place, float]] = {}

    def add(self, left: Place, right: Place, distance: float) -> None:
        distance = max(distance, self.left.get(right, {}).get(left, 0.0))
        self.left.setdefault(right, {})[left] = distance
        self.right.setdefault(left, {})[right] = distance


def _apart(rows: list[list[Place]], column_of: dict[Place, Place], width: Callable[[Place], float]) -> _Apart:
    found = _Apart()
    for row in rows:
        for left, right in pairwise(row):
            found.add(column_of[left], column_of[right], (width(left) + width(right)) / 2)
    return found


def _pulls(hops: list[Hop], column_of: dict[Place, Place]) -> dict[Place, list[tuple[Place, int]]]:
    found: dict[Place, list[tuple[Place, int]]] = {}
    for hop in hops:
        upper, lower = column_of[hop.upper], column_of[hop.lower]
        if upper != lower:
            found.setdefault(upper, []).append((lower, hop.weight))
            found.setdefault(lower, []).append((upper, hop.weight))
    return found


def _packed(apart: _Apart, column_of: dict[Place, Place]) -> dict[Place, float]:
    """As far left as possible. Columns do not cross, so "left of" has no circles."""
    at: dict[Place, float] = {}
    missing = {column: len(apart.left.get(column, ())) for column in column_of.values()}
    waiting = [column for column, count in missing.items() if not count]
    for column in waiting:
        at[column] = max((at[left] + far for left, far in apart.left.get(column, {}).items()), default=0.0)
        for right in apart.right.get(column, ()):
            missing[right] -= 1
            if not missing[right]:
                waiting.append(right)
    return at


def _moved(column: Place, at: dict[Place, float], apart: _Apart, pulls: dict[Place, list[tuple[Place, int]]]) -> float:
    wishes = pulls.get(column)
    if not wishes:
        return at[column]
    wish = sum(at[other] * weight for other, weight in wishes) / sum(weight for _, weight in wishes)
    low = max((at[left] + far for left, far in apart.left.get(column, {}).items()), default=-inf)
    high = min((at[right] - far for right, far in apart.right.get(column, {}).items()), default=inf)
    return max(low, min(wish, high))
