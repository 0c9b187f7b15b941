"""Pointers that do not repeat what was submitted. A key appears in one only if the contract's schema names it or it is
a harmless identifier; otherwise it is `#n`, its position among the sorted keys."""

from typing import Any

from governance.boundary.rules.keys import key_facts

Path = tuple[Any, ...]


def boundary_pointer(path: Path, *, root: Any, base: str, known: frozenset[str]) -> str:
    parts, container = [base], root
    for step in path:
        parts.append(_step(step, container, known))
        container = _descend(container, step)
    return "/".join(parts)


def _step(step: Any, container: Any, known: frozenset[str]) -> str:
    if not isinstance(container, dict):
        return str(step) if isinstance(step, int) else "#"
    if isinstance(step, str) and (step in known or step not in container or _may_be_shown(step)):
        return step.replace("~", "~0").replace("/", "~1")
    return f"#{sorted(container, key=_canonical_order).index(step)}"


def _may_be_shown(key: str) -> bool:
    facts = key_facts(key)
    return facts.showable and not facts.rules


def _canonical_order(key: Any) -> bytes:
    """The order of RFC 8785, so that a request that was stored and read again gives the same pointer."""
    return str(key).encode("utf-16-be", "surrogatepass")


def _descend(container: Any, step: Any) -> Any:
    try:
        return container[step]
    except (KeyError, IndexError, TypeError):
        return None
