"""The documents say what is there: variables, links, paths and problem types are compared with the code."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from attempts.lifecycle.states import AttemptState
from reasoncodes.base.errors import PROBLEMS

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
# `environ` is also what WSGI calls a request; PATH is the machine's, not ours.
# Reads the WSGI environ, and what pytest sets for its own workers.
NOT_FOR_PEOPLE = {ROOT / "config" / "server" / "unread_body.py", ROOT / "config" / "settings" / "test.py"}
NOT_OURS = {"PATH"}
READERS = {"env", "environ", "inherited"}
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,}")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:config|reasoncodes|governance|attempts|workflows|tests|docs|bench|templates)/[\w./-]+)`")
ROUTE = re.compile(r"`[A-Z]+ /[^`]*`")
PROBLEM = re.compile(r"[`/]([a-z]+(?:-[a-z]+)+)(?=`|\s|$)")
PROBLEM_LINE = re.compile(r"/problems/[a-z]|\b[45]\d\d\b")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def is_environment(node: ast.expr) -> bool:
    """`env`, `environ`, `os.environ`, and the supervisor's names for what it was started with."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in READERS


def read_names(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that name a variable in one node: a call, a subscript, or `variable=` of our own helper."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and is_environment(node.func.value) and node.args:
            yield node.args[0]
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "variable")
    elif isinstance(node, ast.Subscript) and is_environment(node.value):
        yield node.slice


def variables_read_in(file: Path) -> set[str]:
    names = [name for node in ast.walk(ast.parse(file.read_text())) for name in read_names(node)]
    constants = {name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)}
    return {name for name in constants if VARIABLE.fullmatch(name)} - NOT_OURS


def variables_in_tables(page: Path) -> set[str]:
    """What the first cell of a table's row names."""
    rows = re.findall(r"^\| ([^|]+) \|", page.read_text(), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", row)}


def anchors(page: Path) -> set[str]:
    """As code hosts make them from headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def problems_mentioned(page: Path) -> set[str]:
    """Hyphenated words in code style on lines that give an error status; states, routes and the demo's slugs look
    alike."""
    lines = [ROUTE.sub("", line) for line in page.read_text().splitlines() if PROBLEM_LINE.search(line)]
    found = {word for line in lines for word in PROBLEM.findall(line) if not word.startswith("demo-")}
    return found - {state.value for state in AttemptState}


def known_problems() -> set[str]:
    for app in ("reasoncodes", "governance", "attempts", "workflows"):
        for path in sorted((ROOT / app).rglob("errors.py")):
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return set(PROBLEMS)


def test_every_environment_variable_that_is_read_is_in_a_table() -> None:
    files = [file for file in (ROOT / "config").rglob("*.py") if file not in NOT_FOR_PEOPLE]
    read = set().union(*map(variables_read_in, files))
    assert {"PORT", "DATABASE_URL", "LOG_LEVEL", "HOLDPOINT_APP_ROLE"} <= read, "the search itself is broken"
    documented = variables_in_tables(ROOT / "README.md") | variables_in_tables(ROOT / "docs" / "operations.md")
    assert read - documented == set()


def test_the_readme_and_the_operations_page_agree_on_what_exists() -> None:
    """Operations has the whole table; what README shows is a part of it."""
    shown = variables_in_tables(ROOT / "README.md")
    assert shown - variables_in_tables(ROOT / "docs" / "operations.md") == set()


@each_page
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@each_page
def test_every_file_that_is_named_exists(page: Path) -> None:
    named = {path for path in PATH.findall(page.read_text()) if "<" not in path}
    assert {path for path in named if not (ROOT / path).exists()} == set()


@each_page
def test_every_problem_type_that_is_mentioned_exists(page: Path) -> None:
    assert problems_mentioned(page) - known_problems() == set()


def test_the_api_tour_mentions_the_problems_of_the_intake_table() -> None:
    mentioned = problems_mentioned(ROOT / "docs" / "api.md")
    assert {"attempt-denied", "attempt-creation-disabled", "metadata-boundary", "idempotency-key-invalid"} <= mentioned


@each_page
def test_no_page_names_a_place_on_somebodys_machine(page: Path) -> None:
    assert re.findall(r"(?<![\w.`])/(?:work|home|Users|tmp)/\S+", page.read_text()) == []


def test_the_licence_is_the_official_text() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert len(text) > 11_000
