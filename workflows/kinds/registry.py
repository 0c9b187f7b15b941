"""All step kinds by name. A kind is one module with a `KIND`, in this package or in another app's `step_kinds`.

Pure: it finds the modules of this package itself; `workflows/apps.py` passes the modules of other apps to `discover`.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, ModuleType

import workflows.kinds as package
from workflows.kinds.base import EventType, StepKind
from workflows.kinds.soundness import faults

_ADDED: dict[str, StepKind] = {}


class UnsoundKind(Exception):
    """A step kind that contradicts itself or another one: a fault in the program, found when it starts."""


def kind(name: str) -> StepKind | None:
    return kind_table().get(name)


def kinds() -> dict[str, StepKind]:
    """By name, in order of names."""
    return dict(kind_table())


@cache
def kind_table() -> Mapping[str, StepKind]:
    """The same object until a kind is added, so that others can cache what they derive from it."""
    return MappingProxyType(dict(sorted({**shipped(), **_ADDED}.items())))


def register(new: StepKind) -> None:
    """Add a kind. Adding the same one again does nothing."""
    known = kind(new.name)
    if known is new:
        return
    if known is not None:
        raise UnsoundKind(f"there is a step kind {new.name} already")
    _check(new, others=kinds())
    _ADDED[new.name] = new
    kind_table.cache_clear()


def unregister(name: str) -> None:
    """Remove an added kind. Only for tests: runs that use it would no longer find it."""
    _ADDED.pop(name, None)
    kind_table.cache_clear()


def discover(module: ModuleType) -> None:
    """Registers the `KIND` of a module, and of the modules of a package."""
    for found in _kinds_of(module):
        register(found)


@cache
def shipped() -> Mapping[str, StepKind]:
    """The kinds of this package, without those of other apps."""
    found: dict[str, StepKind] = {}
    for one in _kinds_of(package):
        _check(one, others=found)
        found[one.name] = one
    return MappingProxyType(found)


def _kinds_of(module: ModuleType) -> list[StepKind]:
    names = [item.name for item in pkgutil.iter_modules(getattr(module, "__path__", []))]
    modules = [module, *(importlib.import_module(f"{module.__name__}.{name}") for name in sorted(names))]
    return [one for one in (getattr(item, "KIND", None) for item in modules) if isinstance(one, StepKind)]


def _check(new: StepKind, *, others: dict[str, StepKind]) -> None:
    """Raise if the kind contradicts itself or another one. Kinds may share an event type only with the same schema."""
    problems = faults(new)
    taken: dict[tuple[str, str], EventType] = {
        (event.name, event.version): event for other in others.values() for event in other.events
    }
    for event in new.events:
        same = taken.get((event.name, event.version))
        if same is not None and (same.schema, same.direction) != (event.schema, event.direction):
            problems.append(f"event {event.name} {event.version} means something else already")
    if new.name in others:
        problems.append("there is one of that name already")
    if problems:
        raise UnsoundKind(f"step kind {new.name}: " + "; ".join(problems))
