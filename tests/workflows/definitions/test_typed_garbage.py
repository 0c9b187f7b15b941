"""Whatever is submitted as a document of format 2, findings come back and nothing is raised."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.properties import examples
from tests.workflows.definitions.test_typed_property import Maker
from tests.workflows.definitions.typed import KINDS, findings, refund
from tests.workflows.pure import JSON, SCALARS
from workflows.definitions.rules.document import read_definition
from workflows.definitions.rules.validate import draft_findings
from workflows.kinds.base import Json

pytestmark = pytest.mark.unit

NAMES = st.sampled_from(["fraud", "small", "after", "book_entry", "JOIN", "TERMINAL", "Ä", "", "input", "item", "x.y"])
TEXTS = st.sampled_from(
    ["input.amount_cents", "{{input.order_ref}}", "{{", "item + 1", "round < 2", "pay.x.y", "((", "[after]"]
)
VALUES = (
    SCALARS | NAMES | TEXTS | JSON | st.dictionaries(NAMES, NAMES | TEXTS, max_size=3) | st.lists(NAMES, max_size=3)
)
FUZZ = examples(60, suppress_health_check=[HealthCheck.too_slow])


def places(part: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(part, dict | list):
        return [here]
    items = part.items() if isinstance(part, dict) else enumerate(part)
    return [here, *(place for key, value in items for place in places(value, (*here, key)))]


def with_value(document: Json, place: tuple[Any, ...], value: Any) -> Json:
    changed = deepcopy(document)
    part: Any = changed
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return changed


def judged(document: Any) -> None:
    found = findings(document)
    assert found == findings(document)
    assert all(one.message[-1] in ".?" and one.rule for one in found), found
    assert all(one.pointer == "" or one.pointer.startswith("/") for one in found)
    draft_findings(document, kinds=KINDS)
    if not found:
        assert set(read_definition(document, definition_id="d").steps) == set(document["steps"])


@given(st.data())
@FUZZ
def test_the_refund_with_one_thing_broken(data: st.DataObject) -> None:
    document = refund()
    place = data.draw(st.sampled_from([place for place in places(document) if place]))
    judged(with_value(document, place, data.draw(VALUES)))


@given(st.data(), st.randoms(use_true_random=False))
@FUZZ
def test_blocks_with_two_things_broken(data: st.DataObject, random: Any) -> None:
    document = Maker(random).make()
    for _ in range(2):
        place = data.draw(st.sampled_from([place for place in places(document) if place]))
        document = with_value(
            document, place, data.draw(VALUES | st.sampled_from(sorted(document.get("steps") or "x")))
        )
        if not isinstance(document.get("steps"), dict):
            break
    judged(document)


@given(st.dictionaries(st.sampled_from(["name", "start_step", "steps", "input", "output", "more"]), JSON))
@FUZZ
def test_no_document_makes_it_raise(document: Json) -> None:
    judged(document | {"format": 2})
