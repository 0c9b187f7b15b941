"""The map is the land: the tables "The way of …" in docs/architecture.md, beside what really is passed.

With PRINT_FLOWS=1 the files of every flow are printed in order (run pytest with `-s`), with PRINT_FLOWS=<file> written.
"""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from attempts.lifecycle.services.freed import WANTED
from governance.outside.valkey import valkey
from tests.attempts.execution.support import ROUTE
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.flows import HELD_ATTEMPT, ROOT, Flows, hop, hops

PAGE = ROOT / "docs" / "architecture.md"
FLOWS = ("request", "approval", "execution", "event", "seal")
# 45 after part 8; one more since an ended attempt asks whether its contract wants an evidence bundle; six since it is
# decided again at the act and an effect can be known by its identity; one since a decision names the standbys; four
# since a worker chooses whose turn it is; two for the slot that is taken when people release it, and given back. Of an
# event: two since a run's rows, and what comes next in it, have modules of their own (several steps can be open); two
# since a key may be bound to a module.
MOST_HOPS = {"held attempt": 59, "event": 29}
SECTION = re.compile(r"^#+ (The way of .*)\n((?:(?!#).*\n?)*)", re.MULTILINE)
ROW = re.compile(r"^\| *\d+ *\| *([^|]+?) *\|", re.MULTILINE)
FILE = re.compile(r"`([\w./-]+)`")
MADE: dict[str, list[str]] = {}
Table = list[list[str]]  # rows of files, or of folders that end in a slash


def flow_of(heading: str) -> str:
    """`The way of an event: POST /api/v1/events` is the table of `event`."""
    words = re.findall(r"[a-z]+", re.sub(r"`.*?`", "", heading))
    return next((word for word in words if word in FLOWS), heading)


def tables(text: str) -> dict[str, Table]:
    return {flow_of(title): [FILE.findall(row) for row in ROW.findall(rows)] for title, rows in SECTION.findall(text)}


def first_entry(name: str, files: list[str]) -> int | None:
    """When the file, or the first one of the folder, was passed."""
    return next((number for number, file in enumerate(files) if matches(name, file)), None)


def matches(name: str, file: str) -> bool:
    return file.startswith(name) if name.endswith("/") else file == name


def never_passed(table: Table, files: list[str]) -> list[str]:
    return [name for row in table for name in row if first_entry(name, files) is None]


def out_of_order(table: Table, files: list[str]) -> list[str]:
    """Rows whose first file was passed before that of the row above. A file named again, further down, is no new one:
    a row of such files may stand anywhere."""
    wrong, latest, known = [], -1, set[str]()
    for row in table:
        entries = [entry for name in row if name not in known and (entry := first_entry(name, files)) is not None]
        known |= set(row)
        if entries and min(entries) < latest:
            wrong.append(", ".join(row))
        latest = max(latest, min(entries, default=latest))
    return wrong


def left_out(table: Table, files: list[str]) -> list[str]:
    """Hops that no row names. Of a box, its folder or any of its files will do."""
    named = [name for row in table for name in row]
    boxes = {hop(name) for name in named}
    return [one for one in hops(files) if one not in boxes and not any(matches(name, one) for name in named)]


@pytest.fixture
def way(transactional_db: None, settings: Any) -> dict[str, list[str]]:
    """Every flow, with transactions that really commit: what follows a commit is on the way too. Made once."""
    if not MADE:
        valkey().delete(WANTED)  # of another test: somebody waited for a slot, so an end would wake the queue up
        target = CountingTarget()
        settings.HOLDPOINT_HTTP_TARGETS = {ROUTE: target.url}
        settings.HOLDPOINT_HTTP_ALLOW_PRIVATE = [target.host]
        try:
            MADE.update(Flows(Cast(), target).all())
        finally:
            target.stop()
        show(MADE)
    return MADE


def show(flows: dict[str, list[str]]) -> None:
    wanted = os.environ.get("PRINT_FLOWS", "")
    lines = [f"held attempt: {len(hops(*(flows[part] for part in HELD_ATTEMPT)))} hops"]
    for name, files in flows.items():
        lines += ["", f"== {name}: {len(files)} files, {len(hops(files))} hops"]
        lines += [f"{'*' if hop(file) else ' '} {file}" for file in files]
    if wanted == "1":
        print("\n".join(lines))  # noqa: T201
    elif wanted:
        Path(wanted).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("flow", FLOWS)
def test_the_table_names_what_is_passed_in_its_order(way: dict[str, list[str]], flow: str) -> None:
    table = tables(PAGE.read_text())[flow]
    assert never_passed(table, way[flow]) == []
    assert out_of_order(table, way[flow]) == []
    assert left_out(table, way[flow]) == []


def test_a_held_attempt_and_an_event_pass_few_files(way: dict[str, list[str]]) -> None:
    counts = {"held attempt": len(hops(*(way[part] for part in HELD_ATTEMPT))), "event": len(hops(way["event"]))}
    assert {name: count for name, count in counts.items() if count > MOST_HOPS[name]} == {}


@pytest.mark.unit
def test_every_table_is_one_of_a_flow_and_every_flow_has_its_table() -> None:
    assert sorted(tables(PAGE.read_text())) == sorted(FLOWS)


@pytest.mark.unit
def test_a_table_that_drifted_is_noticed() -> None:
    head = "## The way of an event: `POST /x`\n\n| | file | what |\n|---|---|---|\n"
    table = tables(f"{head}| 1 | `a/b.py`, `a/c.py` | x |\n| 2 | `d/` | `z` |\n\n## Else\n")["event"]
    assert table == [["a/b.py", "a/c.py"], ["d/"]]
    assert (never_passed(table, ["a/b.py", "d/e.py"]), out_of_order(table, ["a/b.py", "d/e.py"])) == (["a/c.py"], [])
    assert out_of_order(table, ["d/e.py", "a/b.py", "a/c.py"]) == ["d/"]
    assert left_out(table, ["a/b.py", "x/y.py", "d/e.py", "x/errors.py"]) == ["x/y.py"]
