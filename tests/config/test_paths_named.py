"""Every file and folder that the documents name in backticks exists: from the root, or (`models/`, `states.py`) at the
end of some path. CHANGELOG tells of what was, and is left alone."""

import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"), *(ROOT / "docs").glob("*.md")])
TOPS = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in {"var", "staticfiles"}}
SKIPPED = {".venv", ".git", "var", "staticfiles", "__pycache__", "node_modules"}
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\s]+)`")
# `governance/models/`, `attempts/services/notify_*`, `tests/config/test_docs.py::test_x`, `states.py`
PATH = re.compile(r"(?P<path>(?:[\w.*-]+/)*[\w.*-]*)(?:::?[\w:.-]+)?")
SUFFIXES = (".py", ".md", ".toml", ".html", ".css", ".sh", ".lark", ".importlinter")

INSIDE_A_BUNDLE = {"report.html", "verify.py"}  # docs/evidence.md lists what a bundle holds


def named(text: str) -> set[str]:
    """What looks like a path of this repository: it begins with one of its folders, or ends like a source file."""
    found = set()
    for word in CODE.findall(FENCE.sub("", text)):
        match = PATH.fullmatch(word)
        path = match["path"] if match else ""
        top, slash, _ = path.partition("/")
        if path not in {"", *INSIDE_A_BUNDLE} and ((slash and top in TOPS) or path.endswith(SUFFIXES)):
            found.add(path)
    return found


@cache
def everything() -> tuple[str, ...]:
    """All files and folders; folders with a slash at their end."""
    found, waiting = [], [ROOT]
    while waiting:
        for path in waiting.pop().iterdir():
            if path.is_dir() and path.name not in SKIPPED:
                waiting.append(path)
                found.append(f"{path.relative_to(ROOT).as_posix()}/")
            elif path.is_file():
                found.append(path.relative_to(ROOT).as_posix())
    return tuple(found)


def exists(path: str) -> bool:
    if path.partition("/")[0] in TOPS and "*" not in path:
        return (ROOT / path).exists()
    patterns = (path, f"*/{path}")
    return any(fnmatch(one, pattern) or fnmatch(one, f"{pattern}/") for one in everything() for pattern in patterns)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_is_named_exists(page: Path) -> None:
    assert sorted(path for path in named(page.read_text()) if not exists(path)) == []


def test_paths_are_told_from_other_words() -> None:
    text = (
        "`governance/models/` `states.py` `attempts/services/x_*` `POST /api/v1` `attempt.held` `a/b` `docs/api.md:12`"
    )
    assert named(text) == {"governance/models/", "states.py", "attempts/services/x_*", "docs/api.md"}
    assert exists("docs/api.md")
    assert exists("test_paths_named.py")
    assert not exists("docs/api_of_old.md")
    assert not exists("docs/api_*.nothing")
