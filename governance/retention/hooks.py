"""What can be erased and exported: each app registers its kinds of subjects and its tables in its `apps.py`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Model, Q

from governance.retention.rules import RetentionSubject


@dataclass(frozen=True, slots=True)
class SubjectKind:
    """`door` is the database's function that erases one. `due` finds those whose stamp is over, the next ones by id
    after the given one, `about` those that a reference is about, `get` one by its id; `unstamped` counts those
    without a stamp."""

    name: str
    title: str
    door: str
    due: Callable[[UUID, datetime, UUID, int], list[RetentionSubject]]
    about: Callable[[UUID, str], list[RetentionSubject]]
    get: Callable[[UUID, UUID], RetentionSubject | None]
    unstamped: Callable[[UUID, int], int]


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A file of the archive. `about` narrows the rows to what a context reference is about; without it the table is
    only in an organization's archive. `without` are columns that are secrets or stored twice. `called`: columns that
    have another name in the archive, whose readers know it by that."""

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
    """`left_out`: tables with an organization that are not exported on purpose, by label, and why."""
    for table in tables:
        _tables[table.name] = table
    _left_out.update(left_out)


def subject_kinds() -> list[SubjectKind]:
    return [_kinds[name] for name in sorted(_kinds)]


def subject_kind(name: str) -> SubjectKind:
    return _kinds[name]


def export_tables() -> list[ExportTable]:
    """In the order of their names, which is that of the archive."""
    return [_tables[name] for name in sorted(_tables)]


def export_left_out() -> dict[str, str]:
    return dict(_left_out)


def erasing_doors() -> list[str]:
    """Functions that the application's role must be allowed to call."""
    return sorted({kind.door for kind in _kinds.values()})
