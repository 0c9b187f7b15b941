"""Static analysis of a condition: the paths that it can read and the helpers that it calls."""

from collections.abc import Iterator

from governance.conditions.ast import Expression, Helper, HelperCall, Path, children, walk


def paths(expression: Expression) -> frozenset[tuple[str, ...]]:
    """Every path that the expression could read, on any branch."""
    return frozenset(node.segments for node, _ in walk(expression) if isinstance(node, Path))


def required_paths(expression: Expression) -> frozenset[tuple[str, ...]]:
    """The paths that must have a value: at least one use is not inside coalesce."""
    return frozenset(_required(expression, received=False))


def uses_helper(expression: Expression, helper: Helper) -> bool:
    return any(isinstance(node, HelperCall) and node.helper == helper for node, _ in walk(expression))


def _required(node: Expression, *, received: bool) -> Iterator[tuple[str, ...]]:
    """`received`: a coalesce around this node handles a missing value."""
    if isinstance(node, Path):
        if not received:
            yield node.segments
    elif isinstance(node, HelperCall) and node.helper == "coalesce":
        first, second = node.arguments
        yield from _required(first, received=True)
        yield from _required(second, received=received)
    else:
        for child in children(node):
            yield from _required(child, received=False)
