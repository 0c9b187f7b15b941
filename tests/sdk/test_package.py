"""The SDK stands alone: it imports the standard library and httpx, and its words are those of the server."""

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import holdpoint_client
import pytest
from holdpoint_client.cli.parser import build_parser
from holdpoint_client.results import State

from attempts.lifecycle.states import AttemptState
from attempts.quarantine.states import QuarantineCategory
from attempts.reviews.states import ReviewKind, ReviewStatus
from config.embedded.paths import PROJECT
from governance.retention.states import HoldScope, HoldState
from governance.shutdown.states import ShutdownScope, ShutdownState
from workflows.runs.states import InstanceStatus

pytestmark = pytest.mark.unit
SDK = PROJECT / "sdk"
PROJECTS_OWN = {"config", "workflows", "attempts", "governance", "reasoncodes", "tests", "bench", "sdk"}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level or str(node.module).partition(".")[0]


def test_the_package_imports_nothing_but_the_standard_library_and_httpx() -> None:
    files = sorted((SDK / "src").rglob("*.py"))
    assert len(files) > 15
    found = {name for path in files for name in imported(path)}
    assert found - set(sys.stdlib_module_names) == {"httpx", "holdpoint_client"}


def test_examples_import_the_package_and_nothing_of_the_project() -> None:
    for path in (SDK / "examples").glob("*.py"):
        names = set(imported(path))
        assert "holdpoint_client" in names, path
        assert not names & PROJECTS_OWN, path


def test_nothing_of_the_project_imports_the_package() -> None:
    folders = PROJECTS_OWN - {"tests", "sdk"}
    files = [path for folder in folders for path in (PROJECT / folder).rglob("*.py")]
    assert not [path for path in files if "holdpoint_client" in path.read_text()]


def test_the_package_is_typed_and_its_version_is_one() -> None:
    project = tomllib.loads((SDK / "pyproject.toml").read_text())["project"]
    assert project["version"] == holdpoint_client.__version__
    assert [one.partition(">")[0] for one in project["dependencies"]] == ["httpx", "cryptography"]
    assert (SDK / "src" / "holdpoint_client" / "py.typed").exists()
    assert all(hasattr(holdpoint_client, name) for name in holdpoint_client.__all__)


def test_the_package_brings_the_verifier_as_a_command() -> None:
    said = tomllib.loads((SDK / "pyproject.toml").read_text())
    assert said["project"]["scripts"]["holdpoint-verify"] == "holdpoint_verify:main"
    assert said["tool"]["setuptools"]["py-modules"] == ["holdpoint_verify", "holdpoint_witness"]
    folders = {path.parent.relative_to(SDK / "src").as_posix() for path in (SDK / "src").rglob("__init__.py")}
    assert {one.replace("/", ".") for one in folders} == set(said["tool"]["setuptools"]["packages"])


def test_both_clients_can_do_the_same() -> None:
    plain, in_loop = (
        {name for name in vars(kind) if not name.startswith("_")}
        for kind in (holdpoint_client.Holdpoint, holdpoint_client.AsyncHoldpoint)
    )
    assert plain == in_loop


def choices(parser: Any, *path: str) -> set[str]:
    """Of the last name of the path: an option or an argument of that command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and path[0] in action.choices:
            return choices(action.choices[path[0]], *path[1:])
        if action.dest == path[0] and len(path) == 1:
            return set(action.choices)
    raise AssertionError(path)


def test_the_words_of_the_command_line_are_those_of_the_server() -> None:
    parser = build_parser()
    assert {state.value for state in State} == set(AttemptState)
    assert choices(parser, "attempts", "list", "state") == set(AttemptState)
    assert choices(parser, "reviews", "list", "status") == set(ReviewStatus)
    assert choices(parser, "reviews", "list", "kind") == set(ReviewKind)
    assert choices(parser, "quarantine", "list", "category") == set(QuarantineCategory)
    assert choices(parser, "instances", "list", "status") == set(InstanceStatus)
    assert choices(parser, "shutdown", "list", "state") == set(ShutdownState)
    assert choices(parser, "shutdown", "engage", "scope") == set(ShutdownScope)
    assert choices(parser, "holds", "list", "state") == set(HoldState)
    assert choices(parser, "holds", "place", "scope") == set(HoldScope)


def test_the_witness_is_one_file_that_needs_nothing_of_the_project() -> None:
    found = set(imported(SDK / "holdpoint_witness.py"))
    assert found - set(sys.stdlib_module_names) == {"cryptography"}
