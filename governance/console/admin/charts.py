"""Charts as inline SVG. They use classes only, so that they pass the content security policy, print, and follow light
and dark mode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 960, 170
LEFT, TOP, BOTTOM = 60, 14, 30


@dataclass(frozen=True, slots=True)
class Series:
    """One verdict or state in a chart: its name in the data, words for people, and `tone`, a shared state colour."""

    name: str
    words: str
    tone: str


@dataclass(frozen=True, slots=True)
class Row:
    """One bar of a table: `share` is its length in per cent of the longest."""

    name: str
    count: int
    share: int
    url: str = ""


def ceiling(value: int) -> int:
    """The next round number, for the axis."""
    step = 1
    while value > step * 10:
        step *= 10
    return max(1, -(-value // step) * step)


def columns(
    *, title: str, labels: Sequence[str], values: Sequence[Mapping[str, int]], series: Sequence[Series], every: int = 4
) -> str:
    """Stacked columns from left to right. A column's title has its numbers."""
    top = ceiling(max((sum(counts.values()) for counts in values), default=0))
    room, wide = HEIGHT - TOP - BOTTOM, (WIDTH - LEFT) / max(1, len(values))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hp-chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="{escape(title)}">',
        *_axis(top, room),
    ]
    for index, (label, counts) in enumerate(zip(labels, values, strict=True)):
        x = LEFT + index * wide
        said = ", ".join(f"{one.words} {counts.get(one.name, 0):,}" for one in series)
        parts.append(f'<g class="hp-column"><title>{escape(label)}: {escape(said)}</title>')
        parts.append(f'<rect class="hp-ground" x="{x:.1f}" y="{TOP}" width="{wide:.1f}" height="{room}"/>')
        parts += _stack(x + wide * 0.12, wide * 0.76, counts, series, room / top)
        if index % every == 0:
            parts.append(f'<text class="hp-tick" x="{x + wide / 2:.1f}" y="{HEIGHT - 8}">{escape(label)}</text>')
        parts.append("</g>")
    return "".join([*parts, "</svg>"])


def _axis(top: int, room: int) -> list[str]:
    found = []
    for share in (0.0, 0.5, 1.0) if top > 1 else (0.0, 1.0):
        y = TOP + room * (1 - share)
        found.append(f'<line class="hp-grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        found.append(f'<text class="hp-value" x="{LEFT - 6}" y="{y + 4:.1f}">{top * share:,.0f}</text>')
    return found


def _stack(x: float, wide: float, counts: Mapping[str, int], series: Sequence[Series], scale: float) -> list[str]:
    y, found = float(HEIGHT - BOTTOM), []
    for one in series:
        high = counts.get(one.name, 0) * scale
        if high > 0:
            # One denied request among a million is less than a pixel, and must still be visible.
            high = max(high, 1.5)
            y -= high
            found.append(
                f'<rect class="hp-fill-{one.tone}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"/>'
            )
    return found


def bars(counts: Sequence[tuple[str, int]], *, urls: Mapping[str, str] | None = None) -> list[Row]:
    """Rows of a table with bars."""
    longest = max((count for _, count in counts), default=0) or 1
    return [Row(name, count, round(100 * count / longest), (urls or {}).get(name, "")) for name, count in counts]
