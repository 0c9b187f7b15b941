"""A definition as a picture: boxes in rows from top to bottom, lines between them. Always the same; also for drafts.

Pure geometry: `svg.py` draws it, the API may send it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions.rules.document import TERMINAL
from workflows.definitions.rules.layout import Cell, Link, Rows, arrange, rows_place
from workflows.kinds import registry
from workflows.kinds.base import Json, StepKind, bound_kind

WIDTH, HEIGHT = 208, 56
TERMINAL_WIDTH = 120
GAP, ROW_GAP, MARGIN = 36, 62, 24
LINE_WIDTH = 20
PORT = 54
Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Box:
    """`x` and `y` are its left upper corner; `role` is what it is drawn as."""

    id: str
    kind: str
    role: str  # step, human, branch, halt, final, terminal or missing
    title: str
    detail: str
    x: int
    y: int
    width: int
    height: int
    row: int
    reachable: bool = True

    @property
    def middle(self) -> int:
        return self.x + self.width // 2


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """`points` go down in pairs: a curve from each to the next row, straight through the row."""

    source: str
    outcome: str
    target: str
    points: tuple[Point, ...]
    label: Point
    anchor: str  # start, middle or end: on which side of the point the label stands
    back: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[DrawnLine, ...]
    rows: tuple[tuple[str, ...], ...] = field(default=())

    def as_json(self) -> Json:
        return {
            "width": self.width,
            "height": self.height,
            "layers": [list(row) for row in self.rows],
            "nodes": [{name: getattr(box, name) for name in Box.__slots__} for box in self.boxes],
            "edges": [
                {"source": line.source, "outcome": line.outcome, "target": line.target, "points": list(line.points)}
                for line in self.lines
            ],
        }


def layout(document: Mapping[str, Any], *, kinds: Mapping[str, StepKind] | None = None) -> Picture:
    """Any document: what is not a step is left out, what a transition names and does not exist is drawn as missing."""
    known = registry.kind_table() if kinds is None else kinds
    steps, start = _steps(document), document.get("start_step")
    links = list(_links(steps, known))
    nodes = _order(steps, links, start if isinstance(start, str) else "")
    if not nodes:
        return Picture(2 * MARGIN, 2 * MARGIN, (), ())
    rows = arrange(nodes, links)
    at = rows_place(rows.rows, rows.hops, width=_cell_width)
    left = min(at[cell] - _width(cell) / 2 for cell in at)
    middles = {cell: round(at[cell] - left) + MARGIN for cell in at}
    reached = _reached(links, start)
    boxes = {
        name: _box(name, steps.get(name), known, middles[name], rows.row_of[name], name in reached) for name in nodes
    }
    lines = _lines(rows, boxes, middles) + _loops(links, boxes)
    right = max(middles[cell] + _width(cell) / 2 for cell in middles)
    labels = max((line.label[0] + 80 for line in lines), default=0)
    shown = tuple(tuple(cell for cell in row if isinstance(cell, str)) for row in rows.rows)
    height = len(rows.rows) * (HEIGHT + ROW_GAP) - ROW_GAP + 2 * MARGIN
    return Picture(round(max(right, labels)) + MARGIN, height, tuple(boxes.values()), tuple(lines), shown)


def _steps(document: Mapping[str, Any]) -> dict[str, Json]:
    steps = document.get("steps")
    given = steps.items() if isinstance(steps, dict) else ()
    return {name: step for name, step in sorted(given) if isinstance(step, dict)}


def _links(steps: Mapping[str, Json], kinds: Mapping[str, StepKind]) -> Iterator[Link]:
    """Outcomes in the order of the kind: stored JSON keeps none."""
    for name, step in steps.items():
        kind = _kind(step, kinds)
        transitions = step.get("transitions")
        given = transitions if isinstance(transitions, dict) else {}
        first = [outcome for outcome in (kind.outcomes if kind else ()) if outcome in given]
        for index, outcome in enumerate(first + sorted(set(given) - set(first))):
            if isinstance(given[outcome], str):
                yield Link(name, outcome, given[outcome], main=index == 0)


def _kind(step: Json | None, kinds: Mapping[str, StepKind]) -> StepKind | None:
    known = kinds.get(step["kind"]) if step and isinstance(step.get("kind"), str) else None
    return bound_kind(known, step.get("params")) if step and known else None


def _order(steps: Mapping[str, Json], links: list[Link], start: str) -> list[str]:
    """Depth first from the start along the main outcomes, so that they stand in front; then what is not reached."""
    out: dict[str, list[str]] = {}
    for link in links:
        out.setdefault(link.source, []).append(link.target)
    seen: dict[str, None] = {}
    for root in [start, *steps] if start in steps else steps:
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen[name] = None
                waiting.extend(reversed(out.get(name, ())))
    return list(seen)


def _reached(links: list[Link], start: Any) -> set[str]:
    reached, waiting = {start}, [start]
    out: dict[str, list[str]] = {}
    for link in links:
        out.setdefault(link.source, []).append(link.target)
    while waiting:
        new = set(out.get(waiting.pop(), ())) - reached
        reached |= new
        waiting.extend(sorted(new))
    return reached


def _width(cell: Cell) -> int:
    if isinstance(cell, tuple):
        return LINE_WIDTH
    return TERMINAL_WIDTH if cell == TERMINAL else WIDTH


def _cell_width(cell: Cell) -> float:
    return _width(cell) + GAP


def _box(name: str, step: Json | None, kinds: Mapping[str, StepKind], middle: int, row: int, reachable: bool) -> Box:
    kind = _kind(step, kinds)
    width = _width(name)
    return Box(
        id=name,
        kind=kind.name if kind else "",
        role=_role(name, step, kind),
        title=_title(name, step, kind),
        detail=_detail(step or {}, kind),
        x=middle - width // 2,
        y=MARGIN + row * (HEIGHT + ROW_GAP),
        width=width,
        height=HEIGHT,
        row=row,
        reachable=reachable,
    )


def _title(name: str, step: Json | None, kind: StepKind | None) -> str:
    if kind is not None:
        return kind.title
    return "unknown kind" if step is not None else "the good end" if name == TERMINAL else "no such step"


def _role(name: str, step: Json | None, kind: StepKind | None) -> str:
    if step is None:
        return "terminal" if name == TERMINAL else "missing"
    if kind is None:
        return "missing"
    traits = ((kind.is_terminal, "halt"), (kind.is_final, "final"), (bool(kind.expressions), "branch"))
    return next((role for is_so, role in traits if is_so), "human" if kind.human_tier else "step")


def _detail(step: Json, kind: StepKind | None) -> str:
    """The one param that tells most: the expression, the tier, the reason."""
    params = step.get("params")
    values = {**(params if isinstance(params, dict) else {}), "expr": step.get("expr")}
    names = (*kind.expressions, kind.human_tier, *kind.reason_codes) if kind else ()
    return next((values[name] for name in names if isinstance(values.get(name), str)), "")


def _lines(rows: Rows, boxes: Mapping[str, Box], middles: Mapping[Cell, int]) -> list[DrawnLine]:
    leaving: dict[str, list[Link]] = {}
    for link, way in rows.ways.items():
        leaving.setdefault(str(way[0]), []).append(link)
    found = []
    for name in (box for box in boxes if box in leaving):
        links = leaving[name]
        links.sort(key=lambda link: (middles[rows.ways[link][1]], not link.main, link.outcome))
        ports = _ports([middles[rows.ways[link][1]] - boxes[name].middle for link in links], boxes[name].width)
        for index, (link, port) in enumerate(zip(links, ports, strict=True)):
            found.append(_line(rows, boxes, middles, link, port, index, len(links)))
    return found


def _ports(wishes: list[int], width: int) -> list[int]:
    """Where lines leave a box, from its middle: the one that goes straight down from there, the others beside it."""
    nearest = min(range(len(wishes)), key=lambda index: abs(wishes[index]))
    centre = nearest if abs(wishes[nearest]) < width / 2 else (len(wishes) - 1) / 2
    step = min(PORT, (width - 32) / max(2 * (len(wishes) - 1), 1))
    return [round((index - centre) * step) for index in range(len(wishes))]


def _line(
    rows: Rows, boxes: Mapping[str, Box], middles: Mapping[Cell, int], link: Link, port: int, index: int, of: int
) -> DrawnLine:
    way = rows.ways[link]
    first = boxes[str(way[0])]
    points = [(first.middle + port, first.y + first.height)]
    for row, cell in enumerate(way[1:], start=first.row + 1):
        top = MARGIN + row * (HEIGHT + ROW_GAP)
        points.append((middles[cell], top))
        if isinstance(cell, tuple):
            points.append((middles[cell], top + HEIGHT))
    anchor = "start" if index == of - 1 else "end"
    # A line that bends away sideways passes under its label.
    aside = max(7, min(24, abs(points[1][0] - points[0][0]) // 6))
    down = 30 if 0 < index < of - 1 else 14
    label = (points[0][0] + (aside if anchor == "start" else -aside), points[0][1] + down)
    back = link in rows.turned
    return DrawnLine(
        link.source, link.outcome, link.target, tuple(points[::-1] if back else points), label, anchor, back
    )


def _loops(links: list[Link], boxes: Mapping[str, Box]) -> list[DrawnLine]:
    """A step that leads to itself: a handle at its right side."""
    found = []
    for link in links:
        if link.source == link.target:
            box = boxes[link.source]
            right, low = box.x + box.width, box.y + box.height
            points = ((right, low - 14), (right, box.y + 14))
            found.append(
                DrawnLine(link.source, link.outcome, link.target, points, (right + 4, low + 14), "start", back=True)
            )
    return found
