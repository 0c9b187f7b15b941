"""Typed facts that a contract declares: amount, currency, count, date, code. What they may be, what conditions read,
and how people see them. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

from governance.boundary.rules.currencies import DECIMALS
from governance.boundary.rules.pointers import Path

FACT_TYPES: Final = ("amount", "currency", "count", "date", "code")
NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
CODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LARGEST_COUNT: Final = 2**53 - 1
# With at most three decimals these are 14 digits. Fifteen are the most that a double keeps apart, so comparing two
# amounts as numbers, as conditions do, is exact.
_AMOUNT: Final = re.compile(r"(?:0|[1-9][0-9]{0,10})(?:\.([0-9]{1,3}))?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MONTHS: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One declared fact. An amount has a fixed currency or the name of the fact that holds it."""

    name: str
    type: str
    label: str
    required: bool
    currency: str = ""
    currency_from: str = ""
    values: tuple[str, ...] = ()

    def currency_in(self, metadata: Mapping[str, Any]) -> str:
        """The code of this amount's currency; empty if there is none that is known."""
        found = self.currency or metadata.get(self.currency_from)
        return found if isinstance(found, str) and found in DECIMALS else ""


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A fact as people see it. `value` is what the caller sent."""

    name: str
    type: str
    label: str
    value: Any
    text: str


def facts_of(document: Mapping[str, Any]) -> tuple[Fact, ...]:
    """The facts of a `metadata_boundary` document that was checked."""
    return tuple(
        Fact(
            name=row["name"],
            type=row["type"],
            label=row["label"],
            required=row["required"],
            currency=row.get("currency", ""),
            currency_from=row.get("currency_from", ""),
            values=tuple(row.get("values", ())),
        )
        for row in document.get("facts", ())
    )


def fact_findings(facts: Iterable[Fact], metadata: Mapping[str, Any]) -> list[tuple[Path, str]]:
    """Path and rule of every fact that is missing or not in its canonical form."""
    declared = tuple(facts)
    # Without its currency an amount says nothing, so the currency is required where the amount is there.
    needed = {fact.currency_from for fact in declared if fact.currency_from and fact.name in metadata}
    found: list[tuple[Path, str]] = []
    for fact in declared:
        if fact.name not in metadata:
            if fact.required or fact.name in needed:
                found.append(((fact.name,), "fact_required"))
        elif not _FITS[fact.type](metadata[fact.name], fact, metadata):
            found.append(((fact.name,), f"fact_{fact.type}"))
    return found


def _amount_fits(value: Any, fact: Fact, metadata: Mapping[str, Any]) -> bool:
    """One text for one amount: as many decimals as the currency has, no zeros in front, no sign."""
    written = _AMOUNT.fullmatch(value) if type(value) is str else None
    if written is None:
        return False
    code = fact.currency_in(metadata)
    return not code or len(written[1] or "") == DECIMALS[code]


def _currency_fits(value: Any, fact: Fact, metadata: Mapping[str, Any]) -> bool:
    return type(value) is str and value in DECIMALS and (not fact.values or value in fact.values)


def _count_fits(value: Any, fact: Fact, metadata: Mapping[str, Any]) -> bool:
    # JSON does not distinguish 2 and 2.0, so the record may hold either.
    return type(value) in (int, float) and 0 <= value <= LARGEST_COUNT and value == int(value)


def _date_fits(value: Any, fact: Fact, metadata: Mapping[str, Any]) -> bool:
    if type(value) is not str or not _DATE.fullmatch(value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _code_fits(value: Any, fact: Fact, metadata: Mapping[str, Any]) -> bool:
    return type(value) is str and CODE.fullmatch(value) is not None and (not fact.values or value in fact.values)


_FITS: Final[dict[str, Callable[[Any, Fact, Mapping[str, Any]], bool]]] = {
    "amount": _amount_fits,
    "currency": _currency_fits,
    "count": _count_fits,
    "date": _date_fits,
    "code": _code_fits,
}


def facts_stated(facts: Iterable[Fact], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The declared facts that a request states, as they were sent. An approval is bound to them."""
    return {fact.name: metadata[fact.name] for fact in facts if fact.name in metadata}


def facts_carried(facts: Iterable[Fact], content: Mapping[str, Any]) -> dict[str, Any]:
    """The declared facts that a workflow step's request carries, by their names: among its own fields, else in one of
    the objects that it sends. An amount that is a number there is written in its one form; whatever does not fit stays
    as it is, and the boundary refuses it."""
    declared = tuple(facts)
    places = [content, *(part for part in content.values() if isinstance(part, Mapping))]
    found = {
        fact.name: next(part[fact.name] for part in places if fact.name in part)
        for fact in declared
        if any(fact.name in part for part in places)
    }
    return {fact.name: _written(fact, found) for fact in declared if fact.name in found}


def _written(fact: Fact, found: Mapping[str, Any]) -> Any:
    value, code = found[fact.name], fact.currency_in(found)
    if fact.type != "amount" or type(value) not in (int, float) or not code or not abs(value) < LARGEST_COUNT:
        return value
    exact = Decimal(str(value)) + 0  # zero has no sign
    rounded = exact.quantize(Decimal(1).scaleb(-DECIMALS[code]))
    return str(rounded) if rounded == exact else value


def facts_typed(facts: Iterable[Fact], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What conditions read as `facts`: amounts and counts are numbers, everything else is text."""
    return {
        fact.name: float(metadata[fact.name]) if fact.type == "amount" else metadata[fact.name]
        for fact in facts
        if fact.name in metadata
    }


def facts_shown(facts: Iterable[Fact], metadata: Mapping[str, Any]) -> list[ShownFact]:
    """The facts as people see them. A currency that an amount shows is not shown again."""
    declared = [fact for fact in facts if fact.name in metadata]
    shown_with = {fact.currency_from for fact in declared if fact.currency_from}
    return [
        ShownFact(fact.name, fact.type, fact.label, metadata[fact.name], _text(fact, metadata))
        for fact in declared
        if fact.name not in shown_with
    ]


def _text(fact: Fact, metadata: Mapping[str, Any]) -> str:
    value = metadata[fact.name]
    if not _FITS[fact.type](value, fact, metadata):  # never: the boundary has refused it
        return "not readable"
    if fact.type == "amount":
        whole, point, decimals = value.partition(".")
        return f"{int(whole):,}{point}{decimals} {fact.currency_in(metadata)}".strip()
    if fact.type == "count":
        return f"{int(value):,}"
    if fact.type == "date":
        day = date.fromisoformat(value)
        return f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    return str(value)
