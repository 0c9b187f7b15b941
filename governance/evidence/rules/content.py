"""The files of a bundle whose hashes the anchor names in the ledger: all rows, the report, the verifier."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from governance.evidence.rules.material import Material, Person, Row, canonical_plain
from governance.evidence.rules.report import ReportFacts, report_html
from governance.ledger.rules.entry import canonical_bytes
from sdk import holdpoint_verify as verifier


@dataclass(frozen=True, slots=True)
class CollectedEntry:
    """A ledger entry as the bundle contains it, without position and proof: those exist only after sealing."""

    document: Row
    told: list[tuple[str, str]]
    """Its moves: the words and the reason code of each."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything that was read for a bundle, in one transaction."""

    material: Material
    organization: Mapping[str, str]
    decisions: list[Row]
    snapshots: list[Row]
    people: list[Person]
    entries: list[CollectedEntry]


def content_files(collected: Collected) -> dict[str, bytes]:
    """File names and bytes. The same input gives the same bytes."""
    material = collected.material
    rows: dict[str, Iterable[Any]] = {
        "costs": verifier.costs_of(material.receipts),
        "decisions": collected.decisions,
        "envelope": material.attempts,
        "events": material.events,
        "instance": material.instance,
        "intents": material.intents,
        "interventions": material.interventions,
        "people": [person.as_json() for person in collected.people],
        "quarantine": material.quarantine,
        "receipts": material.receipts,
        "reviews": material.reviews,
        "snapshots": collected.snapshots,
        "steps": material.steps,
        "transitions": material.transitions,
        "votes": material.votes,
    }
    # Canonical JSON, because the anchor names hashes: the same rows must have the same bytes everywhere.
    files = {f"{name}.json": canonical_bytes(canonical_plain(list(found))) for name, found in rows.items()}
    told = ReportFacts(
        material=material,
        organization=collected.organization,
        decisions=collected.decisions,
        people=collected.people,
        entries=[(entry.document, entry.told) for entry in collected.entries],
        costs=verifier.costs_of(material.receipts),
    )
    files["report.html"] = report_html(told).encode()
    files["verify.py"] = _verifier_source()
    return {name: files[name] for name in verifier.CONTENT}


def _verifier_source() -> bytes:
    return Path(verifier.__file__).read_bytes()
