"""What a module may declare, what its key may publish, and which schemas fit each other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.boundary.rules.schema import compile_schema
from tests.workflows.modules.support import FRAUD, PAYMENTS, REFUND, SCORE, TEXT, closed
from workflows.kinds.call_events import call_event, call_event_name, named_call
from workflows.kinds.registry import kind_table
from workflows.modules.rules.fit import returns_misfits, send_misfits
from workflows.modules.rules.matrix import module_may_publish, unbound_may_publish
from workflows.modules.rules.terms import closed_schema, operations_complete, terms_problems

pytestmark = pytest.mark.unit


def problems(terms: dict[str, Any]) -> list[str]:
    found = terms_problems(
        slug=terms["slug"], operations=terms["operations"], publishes=terms["publishes"], kinds=kind_table()
    )
    return [pointer for pointer, _ in found]


def test_the_two_modules_of_the_refund_are_fine() -> None:
    assert problems(PAYMENTS) == problems(FRAUD) == []


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("a slug with capitals", {"slug": "Payments"}, "/slug"),
    ("a slug that is too long", {"slug": "p" * 31}, "/slug"),
    ("nothing offered", {"operations": {}}, "/operations"),
    ("a name with a dash", {"operations": {"re-fund": REFUND}}, "/operations"),
    ("an unknown effect", {"operations": {"refund": REFUND | {"effect": "sometimes"}}}, "/operations/refund/effect"),
    ("an unknown method", {"operations": {"refund": REFUND | {"method": "TRACE"}}}, "/operations/refund/method"),
    ("GET that pays", {"operations": {"refund": REFUND | {"method": "GET"}}}, "/operations/refund/method"),
    ("a path that climbs", {"operations": {"refund": REFUND | {"path": "/../admin?x=1"}}}, "/operations/refund/path"),
    ("a path of another host", {"operations": {"refund": REFUND | {"path": "//evil"}}}, "/operations/refund/path"),
    (
        "an open schema",
        {"operations": {"refund": REFUND | {"returns": closed(a=TEXT) | {"additionalProperties": True}}}},
        "/operations/refund/returns",
    ),
    (
        "a reference",
        {"operations": {"refund": REFUND | {"returns": {"type": "object", "$ref": "https://x"}}}},
        "/operations/refund/returns",
    ),
    (
        "a list as answer",
        {"operations": {"refund": REFUND | {"returns": {"type": "array"}}}},
        "/operations/refund/returns",
    ),
    (
        "a broken pattern",
        {"operations": {"refund": REFUND | {"send": closed(a={"type": "string", "pattern": "("})}}},
        "/operations/refund/send",
    ),
    ("another module's answer", {"publishes": ["module.fraud-score.score.completed"]}, "/publishes/0"),
    ("its own request", {"publishes": ["module.payments.refund.requested"]}, "/publishes/0"),
    ("an answer of ai-review", {"publishes": ["ai_review.completed"]}, "/publishes/0"),
    ("a request of ours", {"publishes": ["ai_review.requested"]}, "/publishes/0"),
    ("an event of ours", {"publishes": ["workflow.halted"]}, "/publishes/0"),
    ("no name", {"publishes": ["Shipment"]}, "/publishes/0"),
]


@pytest.mark.parametrize(("changes", "pointer"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_what_a_module_may_not_declare(changes: dict[str, Any], pointer: str) -> None:
    assert problems(PAYMENTS | changes) == [pointer]


def test_a_module_may_declare_events_of_its_own_kinds_and_new_ones() -> None:
    assert problems(PAYMENTS | {"publishes": ["shipment.arrived", "case.created", "run.requested"]}) == []
    assert problems({"slug": "ai-review", "operations": {}, "publishes": ["ai_review.completed"]}) == []


def test_what_is_left_out_is_written_down_in_its_strict_form() -> None:
    (complete,) = operations_complete({"pay": {"returns": {"type": "object", "properties": {"a": TEXT}}}}).values()
    assert complete["effect"] == "once"
    assert complete["method"] == "POST"
    assert complete["returns"] == {"type": "object", "additionalProperties": False, "properties": {"a": TEXT}}
    assert complete["send"] == {"type": "object", "additionalProperties": False, "properties": {}}


def may(event_type: str, module: str, *publishes: str) -> bool:
    return module_may_publish(event_type, module=module, publishes=set(publishes), kinds=kind_table())


@pytest.mark.parametrize("kind", [one for one in kind_table().values() if one.completion and one.module])
def test_only_its_module_answers_a_kind(kind: Any) -> None:
    for event in (kind.completion, kind.failure):
        if event is not None:
            assert may(event.name, kind.module, event.name)
            assert not may(event.name, kind.module)
            assert not may(event.name, "payments", event.name)


def test_only_its_module_answers_a_call() -> None:
    assert may("module.payments.refund.completed", "payments")
    assert may("module.payments.refund.failed", "payments")
    assert not may("module.payments.refund.requested", "payments")
    assert not may("module.payments.refund.completed", "fraud-score", "module.payments.refund.completed")


def test_other_events_need_a_declaration() -> None:
    assert may("shipment.arrived", "parcels", "shipment.arrived")
    assert not may("shipment.arrived", "parcels")
    assert unbound_may_publish("case.created")
    assert not unbound_may_publish("ai_review.completed")


SLUGS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?", fullmatch=True)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True)


@given(SLUGS, NAMES, st.sampled_from(["requested", "completed", "failed"]))
def test_a_call_is_read_back_from_its_name_which_fits_the_columns(slug: str, operation: str, word: str) -> None:
    name = call_event_name(slug, operation, word)
    call, event = named_call(name), call_event(name)
    assert call is not None
    assert event is not None
    assert (call.module, call.operation, call.word) == (slug, operation, word)
    assert event.direction == ("out" if word == "requested" else "in")
    assert len(name) <= 80


# -- which schema admits another --------------------------------------------------------------------------------------
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-3, 3), st.text("ab", max_size=3), st.just([]), st.just({})
)
LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={"minimum": st.integers(-2, 2), "maximum": st.integers(-2, 2)},
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"minLength": st.integers(0, 2), "maxLength": st.integers(0, 3), "pattern": st.just("^a*$")},
    ),
    st.fixed_dictionaries({"type": st.lists(st.sampled_from(["string", "null", "boolean"]), min_size=1, unique=True)}),
    st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=3)}),
)
OBJECTS = st.builds(
    lambda properties, needed: {
        "type": "object",
        "additionalProperties": False,
        "required": sorted(set(properties) & set(needed)),
        "properties": properties,
    },
    st.dictionaries(st.sampled_from("abc"), LEAVES, max_size=3),
    st.lists(st.sampled_from("abc"), max_size=3),
)


@given(OBJECTS, OBJECTS, st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3))
def test_where_nothing_misfits_every_answer_of_the_operation_is_admitted(
    declared: dict[str, Any], expected: dict[str, Any], value: dict[str, Any]
) -> None:
    if compile_schema(declared).is_valid(value) and not returns_misfits(declared=declared, expected=expected):
        assert compile_schema(expected).is_valid(value)


@given(OBJECTS)
def test_a_schema_admits_itself(schema: dict[str, Any]) -> None:
    assert returns_misfits(declared=schema, expected=schema) == []


def test_what_a_step_expects_must_admit_what_the_operation_returns() -> None:
    score = SCORE["returns"]
    assert returns_misfits(declared=score, expected=closed(score={"type": "number"})) == []
    narrow = returns_misfits(declared=score, expected=closed(score={"type": "number", "maximum": 0.5}))
    assert [pointer for pointer, _ in narrow] == ["/properties/score/maximum"]
    lacking = returns_misfits(declared=score, expected=closed())
    assert [pointer for pointer, _ in lacking] == ["/properties"]
    more = returns_misfits(declared=score, expected=closed(score={"type": "number"}, why=TEXT))
    assert [pointer for pointer, _ in more] == ["/required"]


def test_what_a_step_sends_is_judged_as_far_as_it_is_fixed() -> None:
    accepted = REFUND["send"]
    good = {"order_ref": "{{input.order}}", "amount_cents": "{{input.cents}}", "currency": "EUR"}
    assert send_misfits(template=good, accepted=accepted) == []
    assert [at for at, _ in send_misfits(template=good | {"amount_cents": 0}, accepted=accepted)] == ["/amount_cents"]
    assert [at for at, _ in send_misfits(template=good | {"tip": 1}, accepted=accepted)] == [""]
    assert len(send_misfits(template={}, accepted=accepted)) == 3


@given(OBJECTS)
def test_closing_a_schema_twice_is_closing_it_once(schema: dict[str, Any]) -> None:
    assert closed_schema(closed_schema(schema)) == closed_schema(schema)
