"""The table in docs/policy-documents.md: each setting that somebody approves does something, and a test shows it.

A new field of a document fails here until its row says what it does, and names a test that fails when only this field
is read as in the default document (`make leaves` tries all of them).
"""

import ast
from functools import cache

import pytest

from governance.contracts.rules.documents import default_documents
from tests.leaves.walk import HEADING, PAGE, ROOT, as_default, leaves, rows

pytestmark = pytest.mark.unit


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_setting_has_one_row_and_no_row_is_about_anything_else() -> None:
    named, known = [row.leaf for row in rows()], [str(leaf) for leaf in leaves()]
    missing = [leaf for leaf in known if leaf not in named]
    unknown = [leaf for leaf in named if leaf not in known]
    assert (missing, unknown) == ([], []), f"the table {HEADING.strip()!r} of {PAGE.relative_to(ROOT)}"
    assert len(named) == len(set(named))


def test_every_line_of_the_table_is_read() -> None:
    section = PAGE.read_text(encoding="utf-8").split(HEADING, 1)[1].split("\n## ", 1)[0]
    assert sum(line.startswith("| `") for line in section.splitlines()) == len(rows())


def test_every_row_names_tests_that_exist() -> None:
    unknown = []
    for row in rows():
        for test in row.tests:
            file, _, name = test.partition("[")[0].partition("::")
            if not (ROOT / file).is_file() or name not in functions(file):
                unknown.append(f"{row.leaf}: {test}")
        if not row.tests:
            unknown.append(f"{row.leaf}: no test")
    assert unknown == []


def test_freezing_a_leaf_of_the_default_changes_nothing_and_each_path_leads_somewhere() -> None:
    documents = default_documents()
    for leaf in leaves():
        assert as_default(leaf.area, leaf.path, documents[leaf.area]) == documents[leaf.area], leaf


def test_freezing_a_leaf_undoes_that_leaf_and_no_other() -> None:
    documents = default_documents()
    limits = documents["throttles_and_misuse"]
    limits["limits"][0] |= {"limit": 7, "window_seconds": 7}
    found = as_default("throttles_and_misuse", "limits[tenant].limit", limits)
    assert (found["limits"][0]["limit"], found["limits"][0]["window_seconds"]) == (300, 7)
    regions = documents["regional_compliance"] | {"regions": ["EU"]}
    assert as_default("regional_compliance", "regions[US]", regions)["regions"] == ["US", "EU"]
    identity = documents["attempt_identity_envelope"] | {"signature": "none"}
    assert "signature" not in as_default("attempt_identity_envelope", "signature", identity)
