"""The page of the sentences is what the tests are."""

import pytest

from tests.conformance.table import PAGE, page, sentences

pytestmark = pytest.mark.unit


def test_the_page_is_made_from_the_tests() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.conformance.table"


def test_every_test_names_its_source_and_no_sentence_stands_twice_in_one() -> None:
    found = list(sentences())
    assert {section[:2] for section, *_ in found} == {"S1", "S2", "S3"}
    assert all(len(section) > 3 for section, *_ in found)
    assert len(found) == len({test for *_, test in found})
