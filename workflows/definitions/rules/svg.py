"""The picture as inline SVG: classes only, no style, so that it passes a strict content security policy.

Colours are in static/workflows/graph.css. What colour says is also said by a sign and by words.
"""

import re
from collections.abc import Mapping, Set
from html import escape
from itertools import pairwise

from workflows.definitions.rules.picture import Box, DrawnLine, Picture, Point

_ID_SIZE, _WHAT_SIZE = 13.0, 11.5
_BOLD = 1.08
_PADDING = 8
# Widths of letters in parts of their size, rather too wide than too narrow: no font is asked, and none is embedded.
_NARROW, _WIDE = frozenset("ijlft.,:;|!'()[]{} "), frozenset("mwMW@%—…")
_GOING = ("in_progress", "waiting_approval", "pending", "failed", "timed_out")
_WORD = re.compile(r"[^a-z0-9_]+")
# Signs of 12 × 12 for states; the state's name is in the box's title as well.
_SIGNS = {
    "pending": "M6 2v4l3 2",
    "in_progress": "M3 2l7 4-7 4z",
    "waiting_approval": "M4 2v8M8 2v8",
    "completed": "M2 6.5l3 3 5-7",
    "failed": "M2.5 2.5l7 7M9.5 2.5l-7 7",
    "timed_out": "M3 2h6L3 10h6z",
    "skipped": "M3 6h6",
    "cancelled": "M2.5 9.5l7-7",
}


def svg(
    picture: Picture,
    *,
    title: str,
    statuses: Mapping[str, str] | None = None,
    taken: Set[tuple[str, str]] | None = None,
    links: Mapping[str, str] | None = None,
    prefix: str = "wf",
) -> str:
    """`statuses` colours steps by id, `taken` are the (step, outcome) that an instance went, `links` make steps links;
    `prefix` keeps the ids of two pictures on a page apart. Where a run is now has the id `<prefix>-now`."""
    states = statuses or {}
    live = "" if statuses is None else " wf-live"
    gone = frozenset() if taken is None else taken
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wf-graph{live}" role="img"'
        f' viewBox="0 0 {picture.width} {picture.height}" width="{picture.width}" height="{picture.height}"'
        f' aria-labelledby="{escape(prefix)}-title {escape(prefix)}-desc">',
        f'<title id="{escape(prefix)}-title">{escape(title)}</title>',
        f'<desc id="{escape(prefix)}-desc">{escape(picture_in_words(picture, states))}</desc>',
        *(_line(line, (line.source, line.outcome) in gone) for line in picture.lines),
        *(_label(line, (line.source, line.outcome) in gone) for line in picture.lines),
    ]
    now = next((box.id for box in picture.boxes if states.get(box.id) in _GOING), "")
    for box in picture.boxes:
        drawn = _linked(box, states.get(box.id, ""), (links or {}).get(box.id, ""))
        parts.append(f'<g id="{escape(prefix)}-now">{drawn}</g>' if box.id == now else drawn)
    return "\n".join([*parts, "</svg>"])


def picture_in_words(picture: Picture, statuses: Mapping[str, str] | None = None) -> str:
    """The picture as text, for screen readers."""
    told = []
    for box in picture.boxes:
        ways = [f"{line.outcome} to {line.target}" for line in picture.lines if line.source == box.id]
        state = (statuses or {}).get(box.id, "").replace("_", " ")
        told.append(", ".join(part for part in [box.id, box.title, state, *ways] if part))
    return ". ".join(told) + "."


def _linked(box: Box, status: str, link: str) -> str:
    drawn = _box(box, status)
    return f'<a href="{escape(link)}">{drawn}</a>' if link else drawn


def _box(box: Box, status: str) -> str:
    classes = ["wf-node", f"wf-role-{box.role}"]
    classes += [f"wf-kind-{_word(box.kind)}"] if box.kind else []
    classes += [f"wf-status-{_word(status)}"] if status else []
    classes += [] if box.reachable else ["wf-unreachable"]
    told = ": ".join(part for part in (box.id, " · ".join(filter(None, [box.title, box.detail]))) if part)
    state = f" ({status.replace('_', ' ')})" if status else ""
    return "".join(
        [
            f'<g class="{" ".join(classes)}" data-step="{escape(box.id)}">',
            f"<title>{escape(told + state)}</title>",
            f'<path class="wf-shape" d="{_shape(box)}"/>',
            *_texts(box),
            _sign(box, status),
            "</g>",
        ]
    )


def _texts(box: Box) -> list[str]:
    """The id, and below it what it does; only the id where nothing more is known."""
    if box.role == "terminal":
        return [_text(box, 33, "wf-id", "End")]
    below = f"{box.title} · {box.detail}" if box.role == "human" else box.detail or box.title
    room = box.width - 2 * (_PADDING + 8 if box.role in ("branch", "halt") else _PADDING)
    name, what = _fitted(box.id, room, size=_ID_SIZE * _BOLD), _fitted(below, room, size=_WHAT_SIZE)
    return [_text(box, 25, "wf-id", name), _text(box, 42, "wf-what", what)]


def _text(box: Box, down: int, name: str, text: str) -> str:
    return f'<text class="{name}" x="{box.middle}" y="{box.y + down}" text-anchor="middle">{escape(text)}</text>'


def _sign(box: Box, status: str) -> str:
    drawn = _SIGNS.get(status)
    if drawn is None:
        return ""
    x, y = box.x + box.width - 12, box.y - 8
    return (
        f'<g class="wf-sign" transform="translate({x} {y})"><circle class="wf-sign-disc" cx="6" cy="6" r="10"/>'
        f'<path class="wf-sign-line" d="{drawn}"/></g>'
    )


def _shape(box: Box) -> str:
    x, y, wide, high = box.x, box.y, box.width, box.height
    right, low = x + wide, y + high
    if box.role == "branch":
        half, cut = y + high // 2, 18
        return f"M{x} {half}L{x + cut} {y}H{right - cut}L{right} {half}L{right - cut} {low}H{x + cut}Z"
    if box.role == "halt":
        cut = 14
        return (
            f"M{x + cut} {y}H{right - cut}L{right} {y + cut}V{low - cut}L{right - cut} {low}"
            f"H{x + cut}L{x} {low - cut}V{y + cut}Z"
        )
    round_ = high // 2 if box.role in ("final", "terminal") else 10
    corner = f"a{round_} {round_} 0 0 1 "
    return (
        f"M{x + round_} {y}H{right - round_}{corner}{round_} {round_}V{low - round_}{corner}-{round_} {round_}"
        f"H{x + round_}{corner}-{round_} -{round_}V{y + round_}{corner}{round_} -{round_}Z"
    )


def _line(line: DrawnLine, taken: bool) -> str:
    classes = "wf-edge" + (" wf-back" if line.back else "") + (" wf-taken" if taken else "")
    arrow = f'<path class="wf-arrow" d="{_arrow(line)}"/>'
    return f'<g class="{classes}"><path class="wf-line" d="{_curve(line)}"/>{arrow}</g>'


def _curve(line: DrawnLine) -> str:
    if line.source == line.target:
        (x, low), (_, high) = line.points
        return f"M{x} {low}C{x + 34} {low} {x + 34} {high} {x} {high}"
    way = _shortened(line)
    drawn = [f"M{way[0][0]} {way[0][1]}"]
    for index, ((x, y), (to_x, to_y)) in enumerate(pairwise(way)):
        # Down first, then aside: the outcome's name stands above the bend.
        early, late = round(y + (to_y - y) * 0.8), round(y + (to_y - y) * 0.2)
        straight = x == to_x or index % 2 == 1
        drawn.append(f"L{to_x} {to_y}" if straight else f"C{x} {early} {to_x} {late} {to_x} {to_y}")
    return "".join(drawn)


def _shortened(line: DrawnLine) -> list[Point]:
    """Ends where the arrow's head begins."""
    x, y = line.points[-1]
    return [*line.points[:-1], (x, y + 7 if line.back else y - 7)]


def _arrow(line: DrawnLine) -> str:
    x, y = line.points[-1]
    if line.source == line.target:
        return f"M{x} {y}l9 -5v10Z"
    away = 9 if line.back else -9
    return f"M{x} {y}l-5 {away}h10Z"


def _label(line: DrawnLine, taken: bool) -> str:
    x, y = line.label
    name = "wf-outcome wf-taken" if taken else "wf-outcome"
    return f'<text class="{name}" x="{x}" y="{y}" text-anchor="{line.anchor}">{escape(line.outcome)}</text>'


def text_width(text: str, *, size: float) -> float:
    """About how wide the text is; not less than in the fonts that pages here use."""
    return sum(_letter(letter) for letter in text) * size


def _letter(letter: str) -> float:
    if letter in _NARROW:
        return 0.32
    if letter in _WIDE or ord(letter) > 0x2E80:
        return 1.0
    return 0.7 if letter.isupper() else 0.56


def _fitted(text: str, room: float, *, size: float) -> str:
    """Whole if it fits, else cut with an ellipsis."""
    if text_width(text, size=size) <= room:
        return text
    while text and text_width(f"{text}…", size=size) > room:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _word(text: str) -> str:
    return _WORD.sub("-", text.lower())
