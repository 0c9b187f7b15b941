"""Charts: numbers that fit their axis, words beside colours, nothing that a content policy refuses."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.console.admin.charts import BOTTOM, HEIGHT, TOP, WIDTH, Series, bars, ceiling, columns

pytestmark = pytest.mark.unit
SERIES = (Series("allow", "allowed", "good"), Series("deny", "denied", "bad"))
SVG = "{http://www.w3.org/2000/svg}"


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), min_size=1, max_size=30))
def test_columns_stay_inside_whatever_the_numbers_are(counts: list[tuple[int, int]]) -> None:
    values = [{"allow": one, "deny": other} for one, other in counts]
    labels = [f"{number:02}:00" for number in range(len(values))]
    drawn = columns(title="Per hour", labels=labels, values=values, series=SERIES)
    root = ET.fromstring(drawn)  # noqa: S314  # our own text
    for rect in root.iter(f"{SVG}rect"):
        x, y, wide, high = (float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert x + wide <= WIDTH + 0.2
        assert y >= TOP - 4
        assert y + high <= HEIGHT - BOTTOM + 0.2
    assert "style=" not in drawn


def test_every_column_says_its_numbers() -> None:
    drawn = columns(title="<x>", labels=["09:00"], values=[{"allow": 1200, "deny": 3}], series=SERIES)
    assert "09:00: allowed 1,200, denied 3" in drawn
    assert 'aria-label="&lt;x&gt;"' in drawn


@pytest.mark.parametrize(("value", "top"), [(0, 1), (1, 1), (9, 9), (11, 20), (99, 100), (101, 200), (12_345, 20_000)])
def test_the_axis_ends_at_a_round_number(value: int, top: int) -> None:
    assert ceiling(value) == top


def test_the_longest_bar_is_whole() -> None:
    assert [(row.name, row.share) for row in bars([("a", 4), ("b", 1), ("c", 0)])] == [("a", 100), ("b", 25), ("c", 0)]
    assert bars([]) == []
