"""The graph against the slow way of asking the same: walking every path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from workflows.definitions.rules.reading import Edge, Graph

pytestmark = pytest.mark.unit

NAMES = ["s", "a", "b", "c", "d", "e"]
EDGES = st.builds(
    Edge,
    st.sampled_from(NAMES),
    st.sampled_from(["on_x", "on_y"]),
    st.sampled_from([*NAMES, "TERMINAL", "nowhere"]),
    st.booleans(),
)


def graph(edges):
    return Graph(nodes=NAMES, edges=edges, start="s")


def paths_to(edges, goal, at="s", so_far=()):
    """Every way from the start to a step that passes no step twice, as the edges it takes."""
    if at == goal:
        yield so_far
    passed = {"s", *(edge.target for edge in so_far)}
    for edge in edges:
        if edge.source == at and edge.target in NAMES and edge.target not in passed:
            yield from paths_to(edges, goal, edge.target, (*so_far, edge))


@given(st.lists(EDGES, max_size=12))
@examples(100)
def test_reachable_is_what_some_path_leads_to(edges):
    assert graph(edges).reachable == {name for name in NAMES if any(True for _ in paths_to(edges, name))}


@given(st.lists(EDGES, max_size=12))
@examples(100)
def test_certain_is_what_every_path_brings(edges):
    """A path that goes in a circle brings no less than the same path without the circle."""
    found = graph(edges)
    for name in found.reachable:
        brought = [{edge.source for edge in path if edge.gives_output} for path in paths_to(edges, name)]
        assert found.certain(name) == set.intersection(*brought)


@given(st.lists(EDGES, max_size=12))
@examples(100)
def test_a_circle_is_closed_and_none_is_missed(edges):
    found = graph(edges)
    for circle in found.cycles:
        assert [edge.target for edge in circle] == [*(edge.source for edge in circle[1:]), circle[0].source]
        assert len({edge.source for edge in circle}) == len(circle)
    in_circles = {name for name in NAMES if name in found.after(name)}
    named = {edge.source for circle in found.cycles for edge in circle}
    assert bool(in_circles) == bool(named)
    assert named <= in_circles
    assert all(found.after(name) & named for name in in_circles)


@given(st.lists(EDGES, max_size=12))
@examples(50)
def test_before_and_after_mirror_each_other(edges):
    found = graph(edges)
    for name in NAMES:
        assert found.before(name) == {other for other in NAMES if name in found.after(other)}


def test_what_is_no_step_is_kept_apart():
    found = graph([Edge("s", "on_x", "TERMINAL"), Edge("s", "on_y", "a")])
    assert [edge.target for edge in found.leaving] == ["TERMINAL"]
    assert found.reachable == {"s", "a"}


def test_without_a_start_nothing_is_reachable():
    assert Graph(nodes=NAMES, edges=[], start="x").reachable == set()
