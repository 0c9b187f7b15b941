"""The leaves of the ten documents: every single setting that an owner approves, by area and path.

`limits.per_tenant` is a field. `regions[AE]` is one entry of a list that may be left out, `limits[tenant].limit` is a
field of the entry about `tenant`. A list that takes anything, the metadata schema and the facts are one leaf.
"""

import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from governance.contracts.rules.documents import AREAS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "policy-documents.md"
HEADING = "\n## What each setting does\n"
ROW = re.compile(r"^\| `(?P<area>\w+): (?P<path>[^`]+)` \| (?P<does>.+?) \| (?P<tests>.+?) \|$", re.MULTILINE)
PART = re.compile(r"(?P<name>\w+)(?:\[(?P<entry>[^\]]+)\])?")


@dataclass(frozen=True, slots=True)
class Leaf:
    area: str
    path: str
    fixed: bool
    """It has one possible value."""

    def __str__(self) -> str:
        return f"{self.area}: {self.path}"


@dataclass(frozen=True, slots=True)
class Row:
    leaf: str
    does: str
    tests: tuple[str, ...]


def leaves() -> list[Leaf]:
    return [Leaf(entry.name, path, fixed) for entry in AREAS for path, fixed in _below(entry.schema, "")]


def _below(schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, bool]]:
    for name, part in schema["properties"].items():
        yield from _leaf(part, prefix + name)


def _leaf(part: dict[str, Any], path: str) -> Iterator[tuple[str, bool]]:
    if "properties" in part:
        yield from _below(part, f"{path}.")
    elif options := part.get("items", {}).get("enum"):
        if part["minItems"] == len(options):
            yield path, True
        else:
            yield from ((f"{path}[{option}]", False) for option in options)
    elif "enum" in next(iter(part.get("items", {}).get("properties", {}).values()), {}):
        key, *others = part["items"]["properties"]
        for option in part["items"]["properties"][key]["enum"]:
            yield from ((f"{path}[{option}].{other}", False) for other in others)
    else:
        yield path, "const" in part or len(part.get("enum", "..")) == 1


def rows() -> list[Row]:
    """The table of the page."""
    section = PAGE.read_text(encoding="utf-8").split(HEADING, 1)[1].split("\n## ", 1)[0]
    return [
        Row(f"{row['area']}: {row['path']}", row["does"], tuple(re.findall(r"`([^`]+)`", row["tests"])))
        for row in ROW.finditer(section)
    ]


def as_default(area: str, path: str, document: Any) -> Any:
    """A copy of the document in which this one leaf has the value of the default document."""
    found, safe = deepcopy(document), next(entry.default for entry in AREAS if entry.name == area)
    *above, last = path.split(".")
    holders, safe_holders = [found], [safe]
    for part in above:
        holders, safe_holders = _inside(holders, part), _inside(safe_holders, part)
    for holder in holders:
        # Nothing where the default leaves the object out.
        _put(holder, safe_holders[0] if safe_holders else {}, *_parsed(last))
    return found


def _parsed(part: str) -> tuple[str, str | None]:
    match = PART.fullmatch(part)
    assert match, part
    return match["name"], match["entry"]


def _inside(holders: list[Any], part: str) -> list[Any]:
    """What the part leads to: an object, or all entries of a list that are about the named one."""
    name, entry = _parsed(part)
    values = [holder[name] for holder in holders if isinstance(holder, dict) and name in holder]
    if entry is None:
        return values
    rows = [row for value in values if isinstance(value, list) for row in value if isinstance(row, dict)]
    return [row for row in rows if entry in row.values()]


def _put(holder: Any, safe: dict[str, Any], name: str, entry: str | None) -> None:
    if not isinstance(holder, dict):
        return
    if entry is not None:
        # The order of the default: it matters to nothing but the hash.
        listed = [one for one in safe[name] if (one == entry or one in holder[name])]
        holder[name] = [*listed, *(one for one in holder[name] if one != entry and one not in listed)]
    elif name in safe:
        holder[name] = deepcopy(safe[name])
    else:
        holder.pop(name, None)


if __name__ == "__main__":
    # The files of the table's tests, for `make leaves`.
    sys.stdout.write(" ".join(sorted({test.partition("::")[0] for row in rows() for test in row.tests})))
