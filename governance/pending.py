"""Rows that several services make in one transaction and that go into the database together, with one statement."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model

from governance.insert import Change, Removal, insert_together


@dataclass(slots=True)
class Pending:
    """Whoever makes one writes it. Until then nothing of it can be read; what does not fit is refused as a whole."""

    _new: dict[type[Model], list[Model]] = field(default_factory=dict)
    _changes: dict[tuple[type[Model], Any], Change] = field(default_factory=dict)
    _removals: list[Removal] = field(default_factory=list)

    def add(self, *rows: Model) -> None:
        for row in rows:
            self._new.setdefault(type(row), []).append(row)

    def add_groups(self, groups: Iterable[Iterable[Model]]) -> None:
        for group in groups:
            self.add(*group)

    def change(self, row: Model, fields: tuple[str, ...]) -> None:
        """Of a row that is to be inserted too, nothing needs changing: it goes in as it is in the end."""
        if not self.holds(row):
            earlier = self._changes.get((type(row), row.pk))
            more = tuple(name for name in fields if not earlier or name not in earlier.fields)
            self._changes[type(row), row.pk] = Change(row, (*earlier.fields, *more) if earlier else fields)

    def remove(self, model: type[Model], column: str, value: Any) -> None:
        self._removals.append(Removal(model, column, value))

    def holds(self, row: Model) -> bool:
        return any(one is row for one in self._new.get(type(row), ()))

    def write(self) -> None:
        insert_together(*self._new.values(), changes=[*self._changes.values()], removals=self._removals)
        self._new, self._changes, self._removals = {}, {}, []
