"""Whether the facts that a `metadata_boundary` document declares can be used. Their shape is checked with the other
fields of the document. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from governance.boundary.rules.currencies import DECIMALS
from governance.boundary.rules.facts import CODE, FACT_TYPES, NAME
from governance.boundary.rules.keys import key_facts

MOST_FACTS: Final = 20
LONGEST_LABEL: Final = 60
MOST_VALUES: Final = 50
_NEEDED: Final = frozenset({"name", "type", "label", "required"})
_OPTIONAL: Final = {
    "amount": frozenset({"currency", "currency_from"}),
    "currency": frozenset({"values"}),
    "code": frozenset({"values"}),
}
# Where, which rule, and what to do about it.
Problem = tuple[tuple[str | int, ...], str, str]


def declaration_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Everything that keeps the declared facts from being used. Accepts any value."""
    rows = document.get("facts", [])
    if not isinstance(rows, list) or len(rows) > MOST_FACTS:
        yield ("facts",), "fact_shape", f"must be a list of at most {MOST_FACTS} facts"
        return
    types = {row["name"]: row.get("type") for row in rows if isinstance(row, Mapping) and _is_name(row.get("name"))}
    seen: set[str] = set()
    for index, row in enumerate(rows):
        at = ("facts", index)
        if not isinstance(row, Mapping) or not _well_formed(row):
            yield at, "fact_shape", "must have name, type, label and required, and only what its type takes"
            continue
        yield from _name_problems(row["name"], at, seen, document)
        if row["type"] == "amount":
            yield from _currency_problems(row, at, types)
        else:
            yield from _value_problems(row, at)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def _well_formed(row: Mapping[str, Any]) -> bool:
    label = row.get("label")
    return (
        row.get("type") in FACT_TYPES
        and _NEEDED <= set(row) <= _NEEDED | _OPTIONAL.get(row["type"], frozenset())
        and _is_name(row["name"])
        and isinstance(row["required"], bool)
        and isinstance(label, str)
        and 0 < len(label) <= LONGEST_LABEL
        and label == " ".join(label.split())
    )


def _name_problems(
    name: str, at: tuple[str | int, ...], seen: set[str], document: Mapping[str, Any]
) -> Iterator[Problem]:
    schema = document.get("schema")
    listed = schema.get("properties") if isinstance(schema, Mapping) else None
    if name in seen:
        yield (*at, "name"), "fact_repeated", "must not repeat the name of an earlier fact"
    # With two rules for one field, one of them would not be what its owner thinks it is.
    if isinstance(listed, Mapping) and name in listed:
        yield (*at, "name"), "fact_also_in_schema", "must not be listed in schema as well"
    if key_facts(name).forbidden:
        yield (*at, "name"), "fact_forbidden_key", "names content that records must not hold"
    seen.add(name)


def _currency_problems(
    row: Mapping[str, Any], at: tuple[str | int, ...], types: Mapping[str, Any]
) -> Iterator[Problem]:
    fixed, source = row.get("currency"), row.get("currency_from")
    if (fixed is None) == (source is None):
        yield at, "fact_currency_source", "an amount needs either currency or currency_from"
    elif fixed is not None and (not isinstance(fixed, str) or fixed not in DECIMALS):
        yield (*at, "currency"), "fact_currency_unknown", "must be an ISO 4217 code in use"
    elif source is not None and (not isinstance(source, str) or types.get(source) != "currency"):
        yield (*at, "currency_from"), "fact_currency_source", "must name a fact of type currency"


def _value_problems(row: Mapping[str, Any], at: tuple[str | int, ...]) -> Iterator[Problem]:
    values = row.get("values", ["-"])
    known = isinstance(values, list) and 0 < len(values) <= MOST_VALUES and all(isinstance(v, str) for v in values)
    if not known or len(set(values)) != len(values):
        yield (*at, "values"), "fact_shape", f"must be a list of 1 to {MOST_VALUES} different codes"
    elif "values" in row and not all(v in DECIMALS if row["type"] == "currency" else CODE.fullmatch(v) for v in values):
        yield (*at, "values"), "fact_value_form", "must be codes as the fact's type allows them"
