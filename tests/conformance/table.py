"""`docs/conformance.md` from the tests: source and section, sentence, test. `python -m tests.conformance.table`."""

import ast
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"
HEAD = """# Conformance with the sources

Each testable sentence of the sources S1, S2 and S3 has a test that is named after it (S4: `tests/workflows/`).
Words in italics say what the design decides instead, where the sources disagree. An ellipsis: the test runs for several
cases. The page is made from the tests by `python -m tests.conformance.table`, and a test compares them.

| source | sentence | test |
|---|---|---|
"""


def sentences() -> Iterator[tuple[str, str, str, str]]:
    """Section, sentence, what is decided instead, and the test."""
    for file in sorted(HERE.glob("test_s[0-9]*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                section, _, instead = " ".join((ast.get_docstring(node) or "").split()).partition(" — ")
                words = node.name.removeprefix("test_").replace("_", " ")
                many = any("parametrize" in ast.unparse(one) for one in node.decorator_list)
                yield section, words + (" …" if many else ""), instead, f"{file.stem}::{node.name}"


def page() -> str:
    rows = (
        f"| {section} | {words}{f'. *{instead[0].upper()}{instead[1:]}*' if instead else ''} | `{test}` |"
        for section, words, instead, test in sentences()
    )
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
