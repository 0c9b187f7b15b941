"""From steps and transitions to rows: which step is in which row, and in which order, so that few lines cross.

Lines that pass several rows get a place in each. Lines to the same target share their places, like a bus.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf

_SWEEPS = 12
Cell = str | tuple[str, int]  # a step, or the place that lines to a target take in a row


@dataclass(frozen=True, slots=True)
class Link:
    """A transition; `main` is the first outcome of its kind, which is drawn straight."""

    source: str
    outcome: str
    target: str
    main: bool = False


@dataclass(frozen=True, slots=True)
class Hop:
    """A piece of a line, from one row to the next."""

    upper: Cell
    lower: Cell
    weight: int


@dataclass(frozen=True, slots=True)
class Rows:
    rows: list[list[Cell]]
    row_of: dict[str, int]
    ways: dict[Link, list[Cell]]  # every place that a line passes, downwards
    turned: frozenset[Link]  # lines that go back up: only in drafts that go in circles
    hops: list[Hop]


def arrange(nodes: Iterable[str], links: Iterable[Link]) -> Rows:
    """The same for the same input, whatever it is; `nodes` begin with the start."""
    names, lines = list(nodes), [link for link in links if link.source != link.target]
    turned = _turned(names, lines)
    row_of = _row_of(names, [_downward(link, turned) for link in lines])
    ways = {link: _way(_downward(link, turned), row_of) for link in lines}
    hops = _hops(ways, _spine(names, lines))
    rows = _first_rows(names, row_of, ways)
    return Rows(_untangled(rows, hops), row_of, ways, turned, hops)


def _downward(link: Link, turned: frozenset[Link]) -> tuple[str, str]:
    return (link.target, link.source) if link in turned else (link.source, link.target)


def _turned(names: list[str], links: list[Link]) -> frozenset[Link]:
    """The transitions that close a cycle, found depth first from the start."""
    out: dict[str, list[Link]] = {name: [] for name in names}
    for link in links:
        out[link.source].append(link)
    found: set[Link] = set()
    done: set[str] = set()
    for name in names:
        stack = [] if name in done else [(name, iter(out[name]))]
        open_now = {name}
        while stack:
            at, remaining = stack[-1]
            following = next(remaining, None)
            if following is None:
                stack.pop()
                open_now.discard(at)
                done.add(at)
            elif following.target in open_now:
                found.add(following)
            elif following.target not in done:
                open_now.add(following.target)
                stack.append((following.target, iter(out[following.target])))
    return frozenset(found)


def _row_of(names: list[str], pairs: list[tuple[str, str]]) -> dict[str, int]:
    """Each below all that lead to it."""
    rows = dict.fromkeys(names, 0)
    above: dict[str, int] = dict.fromkeys(names, 0)
    out: dict[str, list[str]] = {name: [] for name in names}
    for upper, lower in pairs:
        out[upper].append(lower)
        above[lower] += 1
    waiting = [name for name in names if not above[name]]
    for name in waiting:
        for lower in out[name]:
            rows[lower] = max(rows[lower], rows[name] + 1)
            above[lower] -= 1
            if not above[lower]:
                waiting.append(lower)
    return rows


def _way(pair: tuple[str, str], row_of: Mapping[str, int]) -> list[Cell]:
    upper, lower = pair
    between = range(row_of[upper] + 1, row_of[lower])
    return [upper, *((lower, row) for row in between), lower]


def _spine(names: list[str], links: list[Link]) -> set[Link]:
    """The main outcomes one after the other, from the start."""
    main = {link.source: link for link in links if link.main}
    found: dict[Link, None] = {}
    link = main.get(names[0]) if names else None
    while link is not None and link not in found:
        found[link] = None
        link = main.get(link.target)
    return set(found)


def _hops(ways: Mapping[Link, list[Cell]], spine: set[Link]) -> list[Hop]:
    """The spine runs straight before all others, then long lines, then main outcomes."""
    found: dict[tuple[Cell, Cell], int] = {}
    for link, way in ways.items():
        for upper, lower in pairwise(way):
            shared = isinstance(upper, tuple) and isinstance(lower, tuple)
            weight = 16 if link in spine else 8 if shared else 4 if link.main else 1
            found[upper, lower] = max(weight, found.get((upper, lower), 0))
    return [Hop(upper, lower, weight) for (upper, lower), weight in found.items()]


def _first_rows(names: list[str], row_of: Mapping[str, int], ways: Mapping[Link, list[Cell]]) -> list[list[Cell]]:
    rows: list[list[Cell]] = [[] for _ in range(max(row_of.values(), default=-1) + 1)]
    for name in names:
        rows[row_of[name]].append(name)
    for cell in dict.fromkeys(cell for way in ways.values() for cell in way if isinstance(cell, tuple)):
        rows[cell[1]].append(cell)
    return rows


def _untangled(rows: list[list[Cell]], hops: list[Hop]) -> list[list[Cell]]:
    """Sorts each row by where its neighbours stand, down and up again, and keeps the best seen."""
    lower = _neighbours((hop.upper, hop.lower) for hop in hops)
    upper = _neighbours((hop.lower, hop.upper) for hop in hops)
    best, fewest = rows, _crossings(rows, lower)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        rows = _swept(rows, upper) if sweep % 2 == 0 else _swept(rows[::-1], lower)[::-1]
        crossings = _crossings(rows, lower)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _neighbours(pairs: Iterable[tuple[Cell, Cell]]) -> dict[Cell, list[Cell]]:
    found: dict[Cell, list[Cell]] = {}
    for one, other in pairs:
        found.setdefault(one, []).append(other)
    return found


def _swept(rows: list[list[Cell]], neighbours: Mapping[Cell, list[Cell]]) -> list[list[Cell]]:
    result = rows[:1]
    for row in rows[1:]:
        stands = {cell: index for index, cell in enumerate(result[-1])}
        keys = {cell: _middle(cell, index, stands, neighbours) for index, cell in enumerate(row)}
        result.append(sorted(row, key=lambda cell: keys[cell]))
    return result


def _middle(
    cell: Cell, index: int, stands: Mapping[Cell, int], neighbours: Mapping[Cell, list[Cell]]
) -> tuple[float, int]:
    found = [stands[other] for other in neighbours.get(cell, ()) if other in stands]
    return (sum(found) / len(found) if found else float(index), index)


def _crossings(rows: list[list[Cell]], lower: Mapping[Cell, list[Cell]]) -> int:
    return sum(_crossings_between(one, other, lower) for one, other in pairwise(rows))


def _crossings_between(row: list[Cell], below: list[Cell], lower: Mapping[Cell, list[Cell]]) -> int:
    stands = {cell: index for index, cell in enumerate(below)}
    ends = [sorted(stands[other] for other in lower.get(cell, ()) if other in stands) for cell in row]
    return _inversions([end for group in ends for end in group])


def _inversions(values: list[int]) -> int:
    """Pairs in the wrong order, by merging: rows of large drafts are long."""
    if len(values) < 2:
        return 0
    half = len(values) // 2
    left, right = values[:half], values[half:]
    count = _inversions(left) + _inversions(right)
    left.sort()
    right.sort()
    passed = 0
    for value in left:
        while passed < len(right) and right[passed] < value:
            passed += 1
        count += passed
    return count


_ROUNDS = 24


def rows_place(rows: list[list[Cell]], hops: list[Hop], *, width: Callable[[Cell], float]) -> dict[Cell, float]:
    """The middle of every place. In each row the order holds and nothing overlaps."""
    column_of = _columns(rows, hops)
    apart = _apart(rows, column_of, width)
    pulls = _pulls(hops, column_of)
    at = _packed(apart, column_of)
    order = sorted(at, key=lambda column: (at[column], str(column)))
    for turn in range(_ROUNDS):
        for column in order if turn % 2 else reversed(order):
            at[column] = _moved(column, at, apart, pulls)
    return {cell: at[column] for cell, column in column_of.items()}


def _columns(rows: list[list[Cell]], hops: list[Hop]) -> dict[Cell, Cell]:
    """Each place's column, by its topmost place. The heaviest lines first; none that would cross a column."""
    stands = {cell: (number, index) for number, row in enumerate(rows) for index, cell in enumerate(row)}
    joined: dict[Cell, Cell] = {}  # lower: upper
    taken: set[Cell] = set()
    between: dict[int, list[tuple[int, int]]] = {}
    for hop in sorted(hops, key=lambda hop: (-hop.weight, stands[hop.upper], stands[hop.lower])):
        (number, left), (_, right) = stands[hop.upper], stands[hop.lower]
        others = between.setdefault(number, [])
        crosses = any((left - one) * (right - other) < 0 for one, other in others)
        if hop.upper not in taken and hop.lower not in joined and not crosses:
            taken.add(hop.upper)
            joined[hop.lower] = hop.upper
            others.append((left, right))
    column_of: dict[Cell, Cell] = {}
    for row in rows:
        for cell in row:
            column_of[cell] = column_of[joined[cell]] if cell in joined else cell
    return column_of


class _Apart:
    """How far columns that are neighbours in some row must stand apart."""

    def __init__(self) -> None:
        self.left: dict[Cell, dict[Cell, float]] = {}
        self.right: dict[Cell, dict[Cell, float]] = {}

    def add(self, left: Cell, right: Cell, distance: float) -> None:
        distance = max(distance, self.left.get(right, {}).get(left, 0.0))
        self.left.setdefault(right, {})[left] = distance
        self.right.setdefault(left, {})[right] = distance


def _apart(rows: list[list[Cell]], column_of: dict[Cell, Cell], width: Callable[[Cell], float]) -> _Apart:
    found = _Apart()
    for row in rows:
        for left, right in pairwise(row):
            found.add(column_of[left], column_of[right], (width(left) + width(right)) / 2)
    return found


def _pulls(hops: list[Hop], column_of: dict[Cell, Cell]) -> dict[Cell, list[tuple[Cell, int]]]:
    found: dict[Cell, list[tuple[Cell, int]]] = {}
    for hop in hops:
        upper, lower = column_of[hop.upper], column_of[hop.lower]
        if upper != lower:
            found.setdefault(upper, []).append((lower, hop.weight))
            found.setdefault(lower, []).append((upper, hop.weight))
    return found


def _packed(apart: _Apart, column_of: dict[Cell, Cell]) -> dict[Cell, float]:
    """As far left as possible. Columns do not cross, so "left of" has no circles."""
    at: dict[Cell, float] = {}
    missing = {column: len(apart.left.get(column, ())) for column in column_of.values()}
    waiting = [column for column, count in missing.items() if not count]
    for column in waiting:
        at[column] = max((at[left] + far for left, far in apart.left.get(column, {}).items()), default=0.0)
        for right in apart.right.get(column, ()):
            missing[right] -= 1
            if not missing[right]:
                waiting.append(right)
    return at


def _moved(column: Cell, at: dict[Cell, float], apart: _Apart, pulls: dict[Cell, list[tuple[Cell, int]]]) -> float:
    wishes = pulls.get(column)
    if not wishes:
        return at[column]
    wish = sum(at[other] * weight for other, weight in wishes) / sum(weight for _, weight in wishes)
    low = max((at[left] + far for left, far in apart.left.get(column, {}).items()), default=-inf)
    high = min((at[right] - far for right, far in apart.right.get(column, {}).items()), default=inf)
    return max(low, min(wish, high))
