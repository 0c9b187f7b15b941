"""The form that a person fills in with their answer: its fields as pages show them, what is wrong with a filled form,
and how the values of facts are shown. A form is a JSON Schema of a closed object of plain fields. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from governance.boundary.rules.currencies import DECIMALS
from governance.boundary.rules.facts import MONTHS, ShownFact
from governance.boundary.rules.schema import compiled

EMPTY_FORM: Final[dict[str, Any]] = {"type": "object", "additionalProperties": False, "properties": {}}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WORDS: Final = {
    "required": "is required",
    "additionalProperties": "has a field that the form does not have",
    "type": "must be of type {}",
    "enum": "must be one of: {}",
    "const": "must be {}",
    "pattern": "must match {}",
    "format": "must be a {}",
    "maximum": "must be at most {}",
    "minimum": "must be at least {}",
    "exclusiveMaximum": "must be less than {}",
    "exclusiveMinimum": "must be more than {}",
    "multipleOf": "must be a multiple of {}",
    "maxLength": "must have at most {} characters",
    "minLength": "must have at least {} characters",
    "maxItems": "must have at most {} items",
    "minItems": "must have at least {} items",
    "uniqueItems": "must not hold the same twice",
}


@dataclass(frozen=True, slots=True)
class FormField:
    """One field as a page shows it. `kind`: choice, choices, integer, number, boolean, date or text."""

    name: str
    label: str
    kind: str
    required: bool
    choices: tuple[str, ...] = ()
    minimum: Any = None
    maximum: Any = None
    longest: int = 200
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FormProblem:
    """What is wrong with one field. The words name the form's own limits, never a submitted value."""

    field: str
    message: str
    rule: str


def form_fields(form: Mapping[str, Any]) -> tuple[FormField, ...]:
    """In the order of the form's required fields, then of their names: stored JSON has no order."""
    properties, required = form.get("properties", {}), list(form.get("required", ()))
    names = [*(name for name in required if name in properties), *sorted(set(properties) - set(required))]
    return tuple(_field(name, properties[name], name in required) for name in names)


def label_of(name: str) -> str:
    """A field's name as people read it: `order_ref` is "Order ref"."""
    return name.replace("_", " ").replace("-", " ").strip().capitalize()


def _field(name: str, schema: Mapping[str, Any], required: bool) -> FormField:
    kind = _kind(schema)
    items = schema.get("items", {}) if kind == "choices" else schema
    return FormField(
        name=name,
        label=str(schema.get("title") or label_of(name)),
        kind=kind,
        required=required,
        choices=tuple(map(shown_value, items.get("enum", ()))),
        minimum=schema.get("minimum"),
        maximum=schema.get("maximum"),
        longest=min(int(schema.get("maxLength", 200)), 200),
        hint=str(schema.get("description", "")),
    )


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "choice"
    if schema.get("type") == "array" and isinstance(schema.get("items"), Mapping) and "enum" in schema["items"]:
        return "choices"
    if schema.get("type") in ("integer", "number", "boolean"):
        return str(schema["type"])
    return "date" if schema.get("format") == "date" else "text"


def form_problems(form: Mapping[str, Any], given: Any) -> list[FormProblem]:
    """Empty: the form is filled in well. Sorted, one per field and rule."""
    if not isinstance(given, Mapping):
        return [FormProblem("", "must be an object with the fields of the form", "type")]
    validator = compiled(json.dumps(form, sort_keys=True))
    found = {one for error in validator.iter_errors(dict(given)) for one in _problems(form, error)}
    return sorted(found, key=lambda one: (one.field, one.rule))


def _problems(form: Mapping[str, Any], error: Any) -> Iterator[FormProblem]:
    keyword = str(error.schema_path[-1]) if error.schema_path else "type"
    named = next((part for part in error.instance_path if isinstance(part, str)), "")
    # The name of a field that the form does not have is the sender's text, which an answer must not repeat.
    named = named if named in form.get("properties", {}) else ""
    if keyword == "required":
        named = str(getattr(error.kind, "property", named))
    limit = _limit(form, error)
    yield FormProblem(
        named, _WORDS.get(keyword, "does not have the shape that the form asks for").format(limit), keyword
    )


def _limit(form: Mapping[str, Any], error: Any) -> str:
    part: Any = form
    for step in error.schema_path:
        part = part[step] if isinstance(part, Mapping | list) else ""
    return ", ".join(map(shown_value, part)) if isinstance(part, list) else shown_value(part)


def form_read(form: Mapping[str, Any], posted: Mapping[str, list[str]]) -> dict[str, Any]:
    """The values of a posted page, by the types of the form. What is empty is left out, and what has another type stays
    text: the check says then what is wrong."""
    found: dict[str, Any] = {}
    for field in form_fields(form):
        values = [value.strip() for value in posted.get(field.name, []) if value.strip()]
        if not values:
            continue
        schema = form["properties"][field.name]
        if field.kind == "choices":
            found[field.name] = [_chosen(schema["items"]["enum"], value) for value in values]
        elif field.kind == "choice":
            found[field.name] = _chosen(schema["enum"], values[-1])
        else:
            found[field.name] = _typed(field.kind, values[-1])
    return found


def _chosen(options: list[Any], value: str) -> Any:
    return next((option for option in options if shown_value(option) == value), value)


def _typed(kind: str, value: str) -> Any:
    if kind == "boolean":
        return {"yes": True, "no": False}.get(value, value)
    if kind in ("integer", "number"):
        try:
            return int(value) if re.fullmatch(r"[+-]?[0-9]{1,18}", value) else float(value)
        except ValueError:
            return value
    return value


def values_shown(values: Mapping[str, Any]) -> list[ShownFact]:
    """Facts without a declaration, as people read them: amounts first, then by name, because stored JSON has no order.
    An amount in cents with its currency beside it is one fact."""
    currency = values.get("currency")
    code = currency if isinstance(currency, str) and DECIMALS.get(currency) == 2 else ""
    cents = [name for name, value in values.items() if code and name.endswith("_cents") and _is_whole(value)]
    found = []
    for name, value in values.items():
        if name in cents:
            text = f"{value // 100:,}.{value % 100:02d} {code}"
            found.append(ShownFact(name, "amount", label_of(name.removesuffix("_cents")), value, text))
        elif name != "currency" or not cents:
            found.append(ShownFact(name, _type(value), label_of(name), value, shown_value(value)))
    return sorted(found, key=lambda fact: (fact.type != "amount", fact.name))


def _is_whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _type(value: Any) -> str:
    if _is_whole(value):
        return "count"
    return "date" if isinstance(value, str) and _DATE.fullmatch(value) else "code"


def shown_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if type(value) is int:
        return f"{value:,}"
    if isinstance(value, str):
        return _day(value) or value
    return "none" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _day(text: str) -> str:
    if not _DATE.fullmatch(text):
        return ""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return ""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"
