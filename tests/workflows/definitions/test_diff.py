"""Differences between two versions: places, values and words."""

import pytest

from tests.workflows.pure import changed
from workflows.definitions.rules.diff import changes_in_words, diff, patched
from workflows.definitions.rules.starters.starters import definition_starter

pytestmark = pytest.mark.unit


def test_the_same_has_no_difference():
    assert diff(definition_starter("ai_only"), definition_starter("ai_only")) == []


def test_every_change_has_its_place_and_its_words():
    before = definition_starter("ai_only")
    after = changed(
        "ai_only",
        ai_review={
            "timeout_seconds": 600,
            "max_retries": None,
            "transitions": {"on_complete": "look", "on_failure": "halt_ai"},
        },
        image_check={"params": {"min_count": 3, "image_types": ["DERMOSCOPIC"]}},
        look={"kind": "request_human_review", "params": {"tier": "sa_qa"}, "transitions": {"on_complete": "emit_done"}},
    ) | {"default_mode": "client_driven"}
    del after["description"]
    changes = diff(before, after)
    assert [(change["op"], change["pointer"]) for change in changes] == [
        ("replace", "/default_mode"),
        ("remove", "/description"),
        ("remove", "/steps/ai_review/max_retries"),
        ("replace", "/steps/ai_review/timeout_seconds"),
        ("replace", "/steps/ai_review/transitions/on_complete"),
        ("replace", "/steps/image_check/params/image_types"),
        ("add", "/steps/look"),
    ]
    assert changes_in_words(changes) == [
        "default_mode changed from active to client_driven.",
        'description removed; it was "AI triage only; no human review.".',
        "Step ai_review: max_retries removed; it was 3.",
        "Step ai_review: timeout_seconds changed from 900 to 600.",
        "Step ai_review: on_complete leads to look instead of emit_done.",
        "Step image_check: params.image_types changed from DERMOSCOPIC, MACROSCOPIC to DERMOSCOPIC.",
        "Step look (request_human_review) added.",
    ]
    assert patched(before, changes) == after


def test_before_and_after_are_there_where_they_exist():
    assert diff({"a": 1, "b": 1}, {"b": 2, "c": 3}) == [
        {"op": "remove", "pointer": "/a", "before": 1},
        {"op": "replace", "pointer": "/b", "before": 1, "after": 2},
        {"op": "add", "pointer": "/c", "after": 3},
    ]


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), ([1], [True]), ("1", 1), (None, False), ({}, [])])
def test_what_json_tells_apart_is_different(before, after):
    assert len(diff({"a": before}, {"a": after})) == 1


def test_numbers_that_are_equal_in_json_are_the_same():
    assert diff({"a": [1, {"b": 2}]}, {"a": [1.0, {"b": 2.0}]}) == []


def test_keys_with_slashes_are_escaped():
    changes = diff({"a/b~c": 1}, {"a/b~c": 2})
    assert changes[0]["pointer"] == "/a~1b~0c"
    assert patched({"a/b~c": 1}, changes) == {"a/b~c": 2}


def test_the_whole_may_change():
    assert changes_in_words(diff({}, [])) == ["The whole document changed."]
    assert patched({}, diff({}, [1])) == [1]


def test_removed_transitions_and_steps_are_told():
    before = definition_starter("ai_only")
    after = changed("ai_only", image_check={"transitions": {"on_pass": "ai_review"}})
    del after["steps"]["halt_ai"]
    assert changes_in_words(diff(before, after)) == [
        "Step halt_ai removed.",
        "Step image_check: on_fail no longer leads to halt_images.",
    ]
