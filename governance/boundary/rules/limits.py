"""Limits of size and depth. They are checked before anything else, so that they bound the work of all other checks."""

import json
from typing import Any

_ENCODE = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False, skipkeys=True, default=lambda _: None
).encode
_CONTAINERS = (dict, list, tuple)
# Far beyond any JSON number. Without the limit, encoding a very long integer raises ValueError in Python.
_LARGEST_INTEGER_BITS = 512


def broken_limit(value: dict[str, Any], *, max_bytes: int, max_depth: int) -> str | None:
    """`too_deep`, `too_large` or None. The object itself is level one."""
    # Level by level and not recursively: a value that contains itself ends as too deep.
    level: list[Any] = [value]
    nodes = depth = 0
    while level:
        depth += 1
        if depth > max_depth:
            return "too_deep"
        nodes += sum(map(len, level))
        # Every node takes at least one byte, so a huge value is refused long before all of it was walked.
        if nodes > max_bytes:
            return "too_large"
        inner: list[Any] = []
        for container in level:
            for child in container.values() if isinstance(container, dict) else container:
                if isinstance(child, _CONTAINERS):
                    inner.append(child)
                elif type(child) is int and child.bit_length() > _LARGEST_INTEGER_BITS:
                    return "too_large"
        level = inner
    return "too_large" if _size(value) > max_bytes else None


def _size(value: dict[str, Any]) -> int:
    """Bytes of compact UTF-8 JSON. The order of keys does not change it."""
    text = _ENCODE(value)
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
