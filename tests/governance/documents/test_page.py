"""The operators' page must say what the schemas say: a field added or renamed without the page fails here."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from governance.contracts.rules.documents import AREAS, OWNER_GROUPS, Area, cross_rules, rules

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "policy-documents.md").read_text(encoding="utf-8")
each_area = pytest.mark.parametrize("entry", AREAS, ids=lambda entry: entry.name)


def section(name: str) -> str:
    return PAGE.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]


def fields(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, part in schema.get("properties", {}).items():
        yield prefix + name, part
        yield from fields(part, f"{prefix}{name}.")
        if isinstance(part.get("items"), dict):
            yield from fields(part["items"], f"{prefix}{name}[].")


@each_area
def test_the_page_has_a_row_for_every_field_and_no_other(entry: Area) -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", section(entry.name), flags=re.MULTILINE)
    assert rows == [path for path, _ in fields(entry.schema)]


@each_area
def test_every_row_gives_the_meaning_and_the_allowed_values_or_bounds(entry: Area) -> None:
    text = section(entry.name)
    for path, part in fields(entry.schema):
        row = next(line for line in text.splitlines() if line.startswith(f"| `{path}` |"))
        assert part["description"] in row
        options = part.get("enum") or part.get("items", {}).get("enum") or ()
        assert all(f"`{option}`" in row for option in options)
        assert all(str(part[bound]) in row for bound in ("minimum", "maximum") if bound in part)


@each_area
def test_the_page_shows_owner_description_and_the_default_itself(entry: Area) -> None:
    text = section(entry.name)
    shown = re.search(r"```json\n(.*?)\n```", text, flags=re.DOTALL)
    assert shown is not None
    assert json.loads(shown[1]) == entry.default
    assert f"Owner: `{entry.owner_group}`" in text
    assert entry.description in " ".join(text.split())
    assert "Why this is safe:" in text


def test_the_page_names_every_rule_that_is_not_in_a_schema() -> None:
    sources = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in (rules, cross_rules)]
    named = {rule for text in sources for rule in re.findall(r'DocumentProblem\(\s*[^,]+,\s*"([a-z_]+)"', text)}
    assert len(named) >= 18
    assert {rule for rule in named if f"`{rule}`" not in PAGE} == set()


def test_the_page_names_every_owner_group() -> None:
    assert all(f"`{group}`" in PAGE for group in OWNER_GROUPS)
