"""A pytest plugin that freezes leaves: `-p tests.leaves.plugin`, with the files of the table's tests.

It runs each test that the table names, and then again for each leaf whose row names it, while this one leaf is frozen.
For every leaf one of its tests must fail then; otherwise the leaf *survived*: nothing shows that somebody reads it.
Each test also runs while a leaf is frozen that has nothing to do with it, and must pass: otherwise freezing breaks it.
"""

import os
from collections import defaultdict
from importlib import import_module
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from bench.record import record
from tests.leaves.walk import rows

ROWS = {row.leaf: row for row in rows()}
UNRELATED = ("regional_compliance: retention_years", "metadata_boundary: forbidden_keys")


class Killing:
    """Runs each named test, then again per leaf."""

    def __init__(self) -> None:
        self.leaves_of: dict[str, list[str]] = defaultdict(list)
        for row in ROWS.values():
            for test in row.tests:
                self.leaves_of[test].append(row.leaf)
        self.seen: set[str] = set()
        self.killed: set[str] = set()
        self.broken: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.leaves_of]

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        self.seen.add(item.nodeid)
        # The module as the next item: what the function set up is torn down, what the module shares stays.
        again_here: Any = item.parent
        plain = runtestprotocol(item, log=False, nextitem=again_here)
        for report in plain:
            item.ihook.pytest_runtest_logreport(report=report)
        mine = self.leaves_of[item.nodeid]
        for leaf in [*mine, next(leaf for leaf in UNRELATED if leaf not in mine)]:
            item._initrequest()  # type: ignore[attr-defined]
            # Not at the top: a plugin is loaded before Django is set up.
            with import_module("tests.leaves.frozen").frozen(leaf):
                again = runtestprotocol(item, log=False, nextitem=again_here)
            if any(report.failed for report in again):
                (self.killed if leaf in mine else self.broken).add(leaf if leaf in mine else item.nodeid)
        item.session._setupstate.teardown_exact(nextitem)
        return True

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        survived = sorted(set(ROWS) - self.killed)
        missing = sorted(set(self.leaves_of) - self.seen)
        terminalreporter.write_line(
            f"LEAVES {len(ROWS)} TESTS {len(self.leaves_of)} KILLED {len(self.killed)} SURVIVED {len(survived)}"
        )
        for leaf in survived:
            terminalreporter.write_line(f"SURVIVED {leaf}: {', '.join(ROWS[leaf].tests)}")
        for test in sorted(self.broken):
            terminalreporter.write_line(f"BROKEN BY FREEZING {test}")
        for test in missing:
            terminalreporter.write_line(f"NOT FOUND {test}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if set(ROWS) - self.killed or set(self.leaves_of) - self.seen or self.broken:
            session.exitstatus = 1
        if os.environ.get("RECORD"):
            figures = {"leaves": len(ROWS), "tests": len(self.seen), "killed": len(self.killed)}
            record(name="leaves", figures=figures | {"broken_by_freezing": len(self.broken)})


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Killing())
