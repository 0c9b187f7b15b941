"""Registries of what can be erased and exported. Each app registers its kinds of subjects and its tables in its
`apps.py`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Model, Q

from governance.retention.rules import RetentionSubject


@dataclass(frozen=True, slots=True)
class SubjectKind:
    """A kind of subject of erasure. `door` is the database function that erases one. `due` finds those whose
    `retention_until` has passed, by id after the given one. `about` finds those about a context reference, `get` one by
    its id. `unstamped` counts those without `retention_until`."""

    name: str
    title: str
    door: str
    due: Callable[[UUID, datetime, UUID, int], list[RetentionSubject]]
    about: Callable[[UUID, str], list[RetentionSubject]]
    get: Callable[[UUID, UUID], RetentionSubject | None]
    unstamped: Callable[[UUID, int], int]


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A table in an export. `about` selects the rows about a context reference; without it the table is only in an
    organization's archive. `without`: columns that are secrets or stored twice. `called`: columns that have another
    name in the archive."""

    model: type[Model]
    organization: str = "organization_id"
    about: Callable[[UUID, str], Q] | None = None
    without: frozenset[str] = frozenset()
    called: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.model._meta.label_lower}.ndjson"


_kinds: dict[str, SubjectKind] = {}
_tables: dict[str, ExportTable] = {}
_left_out: dict[str, str] = {}


def register_kind(kind: SubjectKind) -> None:
    _kinds[kind.name] = kind


def register_export(tables: Iterable[ExportTable], *, left_out: Mapping[str, str]) -> None:
    """Register tables. `left_out`: tables with an organization that are not exported, by label, with the reason."""
    for table in tables:
        _tables[table.name] = table
    _left_out.update(left_out)


def subject_kinds() -> list[SubjectKind]:
    return [_kinds[name] for name in sorted(_kinds)]


def subject_kind(name: str) -> SubjectKind:
    return _kinds[name]


def export_tables() -> list[ExportTable]:
    """Ordered by name. The archive has the same order, so that the same rows give the same bytes."""
    return [_tables[name] for name in sorted(_tables)]


def export_left_out() -> dict[str, str]:
    return dict(_left_out)


def erasing_doors() -> list[str]:
    """The erasing functions, which the application's role must be allowed to call."""
    return sorted({kind.door for kind in _kinds.values()})
