"""The files of a bundle whose hashes the anchor names in the ledger: all rows, the report, the verifier."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from governance.evidence.rules.material import Material, Person, Row, canonical_plain
from governance.evidence.rules.report import ReportFacts, report_html
from governance.ledger.rules.entry import canonical_bytes
from sdk import holdpoint_verify as verifier

# Their rows hold what modules sent and what a run made of it. That never enters a bundle, which is given away: the
# bundle names the digest that covers the row, and the row was compared with it when the bundle was built.
WITHHELD = frozenset({"workflows_workflowinstance", "workflows_workflowstep", "workflows_workflowevent"})


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
    images: list[Row] = field(default_factory=list)
    """The rows as the database bound them to ledger entries."""
    carriers: list[Row] = field(default_factory=list)
    """Entries about something else, without their payload, to which rows of this bundle are bound."""

    def rows(self) -> dict[str, list[Row]]:
        """The rows by the name of their file, as the file has them."""
        return {name: canonical_plain(list(found)) for name, found in content_rows(self).items()}

    def compared(self) -> verifier.Comparison:
        """Everything that goes in, field against field, with what the ledger says about it."""
        entries = [entry.document for entry in self.entries]
        found = verifier.compare(self.rows(), entries, self.images, self.carriers)
        verifier.compare_entries(found)
        return found


def content_rows(collected: Collected) -> dict[str, Iterable[Any]]:
    """The rows by the name of their file."""
    material = collected.material
    return {
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


def content_files(collected: Collected, ties: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, bytes]:
    """File names and bytes. The same input gives the same bytes. `ties`: what of it the ledger ties."""
    material = collected.material
    rows = content_rows(collected)
    # Canonical JSON, because the anchor names hashes: the same rows must have the same bytes everywhere.
    files = {f"{name}.json": canonical_bytes(canonical_plain(list(found))) for name, found in rows.items()}
    told = ReportFacts(
        material=material,
        organization=collected.organization,
        decisions=collected.decisions,
        people=collected.people,
        entries=[(entry.document, entry.told) for entry in collected.entries],
        costs=verifier.costs_of(material.receipts),
        ties=ties or {},
    )
    images = [{**one, "image": None, "salt": None} if one["name"] in WITHHELD else one for one in collected.images]
    files[verifier.IMAGES] = canonical_bytes(canonical_plain(images))
    files["report.html"] = report_html(told).encode()
    files["verify.py"] = _verifier_source()
    return {name: files[name] for name in verifier.CONTENT}


def _verifier_source() -> bytes:
    return verifier.copy_source(Path(verifier.__file__).read_text()).encode()
