"""The contract of rooms breaks where it should: with the options of .importlinter, on small graphs."""

from configparser import ConfigParser
from pathlib import Path

import pytest
from grimp import ImportGraph
from importlinter import ContractCheck

from tests.import_contracts import RoomsContract

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]


def checked(*imports: tuple[str, str], alone: str = "") -> ContractCheck:
    parser = ConfigParser(interpolation=None)
    parser.read(ROOT / ".importlinter")
    options = {
        name: [line.strip() for line in value.strip().splitlines() if not line.strip().startswith("#")]
        for name, value in parser["importlinter:contract:rooms"].items()
        if name not in {"name", "type"}
    }
    graph = ImportGraph()
    for importer, imported in imports:
        graph.add_module(importer)
        graph.add_module(imported)
        graph.add_import(importer=importer, imported=imported)
    if alone:
        graph.add_module(alone)
    return RoomsContract(name="rooms", session_options={}, contract_options=options).check(graph, verbose=False)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("attempts.reviews.api.reviews", "attempts.reviews.services.decide"),
        ("attempts.reviews.services.decide", "attempts.intake.models"),
        ("attempts.intake.services.intake", "attempts.lifecycle.services.transition"),
        ("attempts.quarantine.services.resolve", "attempts.quarantine.services.open"),
        ("workflows.runs.services.start", "attempts.intake.services.intake"),
        ("governance.ledger.models", "governance.sql.guards"),
        ("attempts.admin", "attempts.reviews.admin"),
    ],
)
def test_down_a_ring_within_a_room_and_to_lower_rooms_is_allowed(importer: str, imported: str) -> None:
    assert checked((importer, imported)).kept


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("attempts.reviews.models", "attempts.reviews.services.decide"),
        ("attempts.reviews.services.decide", "attempts.notify.web.slack"),
        ("attempts.lifecycle.services.transition", "attempts.intake.services.intake"),
        ("attempts.quarantine.services.open", "attempts.quarantine.services.resolve"),
        ("workflows.runs.services.start", "attempts.intake.api"),
        ("governance.sql.guards", "governance.ledger.models"),
        ("workflows.kinds.base", "workflows.engine.core"),
    ],
)
def test_up_a_ring_or_to_a_higher_room_breaks_it(importer: str, imported: str) -> None:
    check = checked((importer, imported))
    assert [(broken[0], broken[1]) for broken in check.metadata["broken"]] == [(importer, imported)]


@pytest.mark.parametrize(
    "module", ["attempts.reviews.helpers", "governance.utils", "workflows.parties.services", "attempts.reviews_too"]
)
def test_a_module_without_room_or_ring_breaks_it(module: str) -> None:
    check = checked(alone=module)
    assert not check.kept
    assert check.metadata["lost"] == [module]
