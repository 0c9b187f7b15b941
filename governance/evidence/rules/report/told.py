"""The data of the report, and the names of people and services in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from governance.evidence.rules.material import Material, Person, Row

KINDS = {"clock": "the clock", "system": "Holdpoint"}


@dataclass(frozen=True, slots=True)
class ReportFacts:
    material: Material
    organization: Mapping[str, str]
    decisions: list[Row]
    people: list[Person]
    entries: list[tuple[Row, list[tuple[str, str]]]]
    costs: list[dict[str, Any]]
    ties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For each file: its rows, how many are bound as a whole, and the fields that no ledger entry ties."""

    def who(self, kind: str, reference: str) -> str:
        """The name of an actor; "erased" for a person without a reference; the clock and Holdpoint by fixed names."""
        if kind in KINDS:
            return KINDS[kind]
        found = next((person for person in self.people if person.reference == reference), None)
        if found is not None and found.name:
            return f"{found.name} (service)" if kind == "service" else found.name
        return "a person (erased)" if kind == "person" else reference
