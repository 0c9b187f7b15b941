"""The share of forbidden values that the detectors find, and that they raise no false alarm: figures that the
documentation states."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

from governance.boundary.rules import (
    CURRENT,
    FIRST,
    BoundaryPolicy,
    inspect_metadata,
    inspect_note,
    inspect_reference,
    vocabularies,
)
from tests.governance.boundary.samples import FORBIDDEN, HARMLESS

pytestmark = pytest.mark.unit

POLICY = BoundaryPolicy(schema=None)
DOCS = Path(__file__).parents[3] / "docs" / "metadata-boundary.md"
WORDS_OF_A_REFERENCE = 2


def refused(value: str, *, edition: int = CURRENT) -> bool:
    return bool(inspect_metadata({"link": value}, policy=POLICY, edition=edition))


def test_the_lists_are_long_enough_and_no_value_stands_in_them_twice():
    assert len(HARMLESS) >= 500
    assert len(FORBIDDEN) >= 150
    for values in (HARMLESS, FORBIDDEN):
        assert len({value for _, value in values}) == len(values)
    assert not {value for _, value in HARMLESS} & {value for _, value in FORBIDDEN}


def test_no_harmless_value_is_refused_as_metadata():
    assert [value for _, value in HARMLESS if refused(value)] == []


def test_no_harmless_value_is_refused_in_a_note():
    assert [value for _, value in HARMLESS if inspect_note(value)] == []


def test_no_harmless_identifier_is_refused_as_a_reference():
    """Texts of several words are labels; as references they are refused because they are words."""
    names = [value for kind, value in HARMLESS if kind not in {"label", "amount", "cron"}]
    short = [value for value in names if len(value.split()) < WORDS_OF_A_REFERENCE]
    assert len(short) >= 500
    assert [value for value in short if inspect_reference(value, pointer="/action/target_ref")] == []


def test_the_share_that_is_found_is_what_the_documentation_says():
    found = sum(refused(value) for _, value in FORBIDDEN)
    first = sum(refused(value, edition=FIRST) for _, value in FORBIDDEN)
    said = re.search(
        r"find \*\*(\d+) of (\d+)\*\* forbidden.*?first edition (\d+).*?(\d+) harmless", DOCS.read_text(), re.S
    )
    assert said is not None
    assert tuple(map(int, said.groups())) == (found, len(FORBIDDEN), first, len(HARMLESS))


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in FORBIDDEN} - {"hard"}))
def test_of_each_kind_at_least_nine_of_ten_are_found(kind: str):
    values = [value for one, value in FORBIDDEN if one == kind]
    assert sum(map(refused, values)) >= 0.9 * len(values)


def test_what_is_found_is_repeated_nowhere():
    for _, value in FORBIDDEN:
        for finding in inspect_metadata({"link": value}, policy=POLICY):
            assert value not in f"{finding.pointer} {finding.message} {finding.remedy}"


def test_the_first_edition_and_its_successor_agree_on_what_is_harmless():
    assert [value for _, value in HARMLESS if refused(value, edition=FIRST) and not value.endswith("?")] == []


def test_the_vocabulary_of_an_edition_never_changes():
    """Stored decisions were made with it: a new one is another file and another edition."""
    file = Path(vocabularies.__file__).with_name("clinical-1.json")
    assert sha256(file.read_bytes()).hexdigest() == "a268c918286245f525a074024ae089e378cb924da032de40d52b0081a0aff09e"
