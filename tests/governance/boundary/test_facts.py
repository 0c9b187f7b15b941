"""Typed facts: what a contract may declare, what a request may state, what conditions read and what people see."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.boundary.rules import (
    DEFAULT_DOCUMENT,
    BoundaryPolicy,
    facts_carried,
    facts_of,
    facts_shown,
    facts_stated,
    facts_typed,
    inspect_metadata,
    validate_boundary_document,
)
from governance.boundary.rules.currencies import DECIMALS
from governance.contracts.rules.documents import default_documents, validate_document

pytestmark = pytest.mark.unit

FACTS: list[dict[str, Any]] = [
    {"name": "refund", "type": "amount", "label": "Refund", "required": True, "currency_from": "currency"},
    {"name": "currency", "type": "currency", "label": "Currency", "required": False},
    {"name": "fee", "type": "amount", "label": "Fee", "required": False, "currency": "JPY"},
    {"name": "items", "type": "count", "label": "Items", "required": False},
    {"name": "bought_on", "type": "date", "label": "Bought", "required": False},
    {"name": "cause", "type": "code", "label": "Cause", "required": False, "values": ["damaged", "late"]},
]
REFUND = {"refund": "149.00", "currency": "EUR"}


def document(facts: Any = None, **changes: Any) -> dict[str, Any]:
    return {**default_documents()["metadata_boundary"], "facts": FACTS if facts is None else facts, **changes}


def found(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    policy = BoundaryPolicy.from_document(document())
    return [(finding.pointer, finding.rule) for finding in inspect_metadata(metadata, policy=policy)]


def texts(metadata: dict[str, Any]) -> dict[str, str]:
    return {fact.label: fact.text for fact in facts_shown(facts_of(document()), metadata)}


def test_a_reviewer_reads_the_amount_with_its_currency() -> None:
    stated = {**REFUND, "fee": "120", "items": 12000, "bought_on": "2026-11-03", "cause": "damaged"}
    assert found(stated) == []
    assert texts(stated) == {
        "Refund": "149.00 EUR",
        "Fee": "120 JPY",
        "Items": "12,000",
        "Bought": "3 Nov 2026",
        "Cause": "damaged",
    }
    assert texts({"refund": "1234567.80", "currency": "EUR"}) == {"Refund": "1,234,567.80 EUR"}


@pytest.mark.parametrize(
    ("content", "carried"),
    [
        ({"refund": 149, "currency": "EUR"}, {"refund": "149.00", "currency": "EUR"}),
        ({"module": "pay", "send": {"refund": 149.5, "currency": "EUR", "other": 1}}, REFUND | {"refund": "149.50"}),
        ({"refund": "149.00", "currency": "EUR", "send": {"refund": "1.00"}}, REFUND),
        ({"items": 3, "send": {"cause": "late"}, "text": "anything"}, {"items": 3, "cause": "late"}),
        ({"refund": 0.005, "currency": "EUR"}, {"refund": 0.005, "currency": "EUR"}),
        ({"refund": True, "currency": "EUR"}, {"refund": True, "currency": "EUR"}),
        ({"refund": 149}, {"refund": 149}),
        ({"status": "closed"}, {}),
    ],
)
def test_what_a_workflow_step_sends_is_read_for_the_declared_facts(
    content: dict[str, Any], carried: dict[str, Any]
) -> None:
    assert facts_carried(facts_of(document()), content) == carried


@given(
    amount=st.one_of(st.integers(), st.floats(allow_nan=True), st.text(max_size=6)),
    code=st.sampled_from(["EUR", "JPY"]),
)
def test_an_amount_that_was_rewritten_is_the_same_amount_and_fits(amount: Any, code: str) -> None:
    carried = facts_carried(facts_of(document()), {"refund": amount, "currency": code})
    if carried["refund"] is not amount and amount >= 0:
        assert Decimal(carried["refund"]) == Decimal(str(amount))
        assert amount > 99_999_999_999 or "fact_amount" not in {rule for _, rule in found(carried)}


@pytest.mark.parametrize("amount", ["0.00", "0.01", "149.00", "99999999999.99"])
def test_an_amount_is_a_canonical_decimal_string(amount: str) -> None:
    assert found({"refund": amount, "currency": "EUR"}) == []


@pytest.mark.parametrize(
    "amount",
    [
        149,
        149.0,
        None,
        True,
        "",
        "149",
        "149.0",
        "149.000",
        "0149.00",
        "+149.00",
        "-149.00",
        "1e2",
        "149,00",
        " 149.00",
        "149.00 EUR",
        ".50",
        "149.",
        "\u0661\u0664\u0669.00",
        "100000000000.00",
        ["149.00"],
    ],
)
def test_any_other_form_of_an_amount_is_refused_by_its_pointer(amount: Any) -> None:
    assert ("/metadata/refund", "fact_amount") in found({"refund": amount, "currency": "EUR"})


@pytest.mark.parametrize(("code", "amount"), [("JPY", "149"), ("EUR", "149.00"), ("KWD", "149.000")])
def test_an_amount_has_the_decimals_of_its_currency(code: str, amount: str) -> None:
    assert found({"refund": amount, "currency": code}) == []
    others = {"149", "149.00", "149.000"} - {amount}
    assert all(found({"refund": one, "currency": code}) == [("/metadata/refund", "fact_amount")] for one in others)


def test_an_amount_without_its_currency_and_a_missing_required_fact_are_refused() -> None:
    assert found({"refund": "149.00"}) == [("/metadata/currency", "fact_required")]
    assert found({}) == [("/metadata/refund", "fact_required")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("currency", value) for value in ("eur", "EURO", "XXX", None)),
        *(("items", value) for value in (-1, 1.5, True, "3")),
        *(("bought_on", value) for value in ("2026-02-30", "03.11.2026", "2026-11-03T00:00:00Z")),
        *(("cause", value) for value in ("goodwill", "two words", 7)),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(name: str, value: Any) -> None:
    kind = next(fact["type"] for fact in FACTS if fact["name"] == name)
    assert (f"/metadata/{name}", f"fact_{kind}") in found(REFUND | {name: value})


def test_what_is_neither_a_fact_nor_in_the_schema_is_still_refused_and_detectors_still_apply() -> None:
    assert found(REFUND | {"other": 1}) == [("/metadata/other", "not_in_schema")]
    card = {"name": "ref", "type": "code", "label": "Reference", "required": False}
    policy = BoundaryPolicy.from_document(document([card]))
    assert "card_number" in {one.rule for one in inspect_metadata({"ref": "4111111111111111"}, policy=policy)}


@given(one=st.integers(0, 10**13 - 1), other=st.integers(0, 10**13 - 1), code=st.sampled_from(sorted(DECIMALS)))
def test_conditions_compare_amounts_exactly(one: int, other: int, code: str) -> None:
    """As numbers two amounts of a currency stand to each other as the decimals that were sent."""
    fact = facts_of(document([{"name": "a", "type": "amount", "label": "A", "required": True, "currency": code}]))
    sent = [f"{Decimal(value).scaleb(-DECIMALS[code]):f}" for value in (one, other)]
    typed = [facts_typed(fact, {"a": text})["a"] for text in sent]
    assert (typed[0] < typed[1], typed[0] == typed[1]) == (one < other, one == other)


def test_conditions_read_amounts_and_counts_as_numbers_and_the_rest_as_text() -> None:
    stated = {**REFUND, "items": 3, "bought_on": "2026-11-03"}
    facts = facts_of(document())
    assert facts_typed(facts, stated) == {**stated, "refund": 149.0}
    assert facts_stated(facts, {**stated, "other": 1}) == stated


def test_a_document_without_facts_is_as_before() -> None:
    assert validate_boundary_document(DEFAULT_DOCUMENT) == []
    assert BoundaryPolicy.from_document(DEFAULT_DOCUMENT).facts == ()
    assert validate_document("metadata_boundary", document([])) == ()


def test_facts_can_be_declared() -> None:
    assert validate_boundary_document(document()) == []
    assert validate_document("metadata_boundary", document()) == ()


AMOUNT = FACTS[2]


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ([AMOUNT, AMOUNT | {"label": "Again"}], "fact_repeated"),
        ([{**AMOUNT, "currency_from": "currency"}], "fact_currency_source"),
        ([{key: value for key, value in AMOUNT.items() if key != "currency"}], "fact_currency_source"),
        ([AMOUNT | {"currency": "ABC"}], "fact_currency_unknown"),
        ([FACTS[0]], "fact_currency_source"),
        ([FACTS[0], FACTS[5] | {"name": "currency"}], "fact_currency_source"),
        ([FACTS[3] | {"currency": "EUR"}], "fact_shape"),
        ([FACTS[3] | {"name": "patient_name"}], "fact_forbidden_key"),
        ([FACTS[3] | {"label": " Items"}], "fact_shape"),
        ([FACTS[1] | {"values": ["ABC"]}], "fact_value_form"),
        ([FACTS[3] | {"name": "Items"}], "fact_shape"),
        ([FACTS[3] | {"type": "text"}], "fact_shape"),
        ([FACTS[3] | {"name": f"n{number}"} for number in range(21)], "fact_shape"),
    ],
)
def test_a_declaration_that_could_not_be_used_is_refused(facts: Any, rule: str) -> None:
    assert rule in {problem.rule for problem in validate_document("metadata_boundary", document(facts))}
    assert validate_boundary_document(document(facts)) != []


def test_a_fact_is_not_listed_in_the_schema_as_well() -> None:
    schema = {"type": "object", "additionalProperties": False, "properties": {"items": {"type": "integer"}}}
    problems = validate_document("metadata_boundary", document(schema=schema))
    assert [(problem.pointer, problem.rule) for problem in problems] == [("/facts/3/name", "fact_also_in_schema")]
