"""A tenth kind is one new module, and a kind that contradicts itself does not get in."""

import importlib
import sys
from dataclasses import replace
from types import ModuleType

import pytest

from tests.workflows.pure import changed, findings, tenth
from workflows.events.rules import event_type
from workflows.kinds import registry
from workflows.kinds.base import EventType, StepAnswer
from workflows.kinds.registry import UnsoundKind, discover, kind, kinds, register, unregister

pytestmark = pytest.mark.unit

EMPTY = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
REQUEST = EventType(name="signal.requested", direction="out", description="Asks.", schema=EMPTY)
COMPLETION = EventType(name="signal.completed", direction="in", description="Answers.", schema=EMPTY)


@pytest.fixture(autouse=True)
def _as_before():
    yield
    unregister("wait_for_signal")


def test_a_tenth_kind_is_known_everywhere_at_once():
    new = tenth(effect="none", instant=None, request=REQUEST, completion=COMPLETION, answer=lambda *_: StepAnswer)
    assert event_type("signal.completed") is None
    before = kinds()
    register(new)
    assert kind("wait_for_signal") is new
    assert kinds() == before | {"wait_for_signal": new}
    assert event_type("signal.completed") is COMPLETION
    document = changed(
        "ai_only",
        image_check={"transitions": {"on_pass": "signal", "on_fail": "halt_images"}},
        signal={"kind": "wait_for_signal", "transitions": {"on_complete": "ai_review"}},
    )
    assert findings(document) == []


def test_a_module_or_package_of_another_app_is_found_by_its_kind():
    module = ModuleType("some_app_step_kinds")
    module.KIND = tenth()
    discover(module)
    assert kind("wait_for_signal") is module.KIND


def test_a_package_is_looked_through(tmp_path, monkeypatch):
    package = tmp_path / "someapp_kinds"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "signal_kind.py").write_text("from tests.workflows.pure import tenth\nKIND = tenth()\n")
    monkeypatch.syspath_prepend(tmp_path)
    discover(importlib.import_module("someapp_kinds"))
    assert kind("wait_for_signal") is sys.modules["someapp_kinds.signal_kind"].KIND


def test_registering_the_same_twice_changes_nothing_and_another_of_its_name_is_refused():
    new = tenth()
    register(new)
    register(new)
    with pytest.raises(UnsoundKind, match="already"):
        register(tenth())
    with pytest.raises(UnsoundKind, match="already"):
        register(replace(kinds()["halt"]))


def test_the_table_stays_the_same_object_until_a_kind_is_added():
    before = registry.kind_table()
    assert registry.kind_table() is before
    register(tenth())
    assert registry.kind_table() is not before


OPEN_SCHEMA = {"type": "object", "properties": {}}
ASKING = {"instant": None, "request": REQUEST, "completion": COMPLETION, "answer": lambda *_: None}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "Wait For"}, "lower case"),
        ({"effect": "maybe"}, "effect"),
        ({"default_timeout_seconds": 0}, "positive"),
        ({"failure_outcome": "on_failure"}, "failure_outcome"),
        ({"must_target": {"on_end": "TERMINAL"}}, "must_target"),
        ({"outcomes": ()}, "no effect of its own"),
        ({"instant": None}, "nothing answers"),
        ({"instant": None, "request": REQUEST, "completion": COMPLETION}, "nothing answers"),
        ({"human_tier": "tier"}, "does not have"),
        ({"expressions": ("expr",)}, "does not have"),
        ({"params_schema": OPEN_SCHEMA}, "params_schema"),
        ({"output_schema": {"type": "objekt"}}, "output_schema"),
        (ASKING | {"request": replace(REQUEST, direction="in")}, "direction out"),
        (ASKING | {"completion": replace(COMPLETION, direction="out")}, "direction in"),
        (ASKING | {"completion": replace(COMPLETION, name="Signal")}, "no name"),
        (ASKING | {"completion": replace(COMPLETION, name="workflow.completed")}, "Holdpoint's own"),
        (ASKING | {"completion": replace(COMPLETION, dropped=("error",))}, "drops"),
        (ASKING | {"completion": replace(COMPLETION, name="ai_review.completed")}, "something else already"),
    ],
)
def test_a_kind_that_contradicts_itself_or_others_is_refused_with_the_reason(changes, words):
    before = kinds()
    with pytest.raises(UnsoundKind, match=words):
        register(tenth(**changes))
    assert kinds() == before
