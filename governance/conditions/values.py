"""The kinds of values in conditions, and how values are checked, compared and searched."""

import re
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

from governance.conditions.errors import (
    ConditionLimitError,
    ConditionTimeError,
    ConditionTypeError,
    Position,
)
from governance.conditions.limits import CHARACTERS_PER_STEP, MAX_LIST_ITEMS, MAX_STRING_CHARACTERS

NUMBER: Final = "number"
STRING: Final = "string"
BOOLEAN: Final = "boolean"
ARRAY: Final = "array"
OBJECT: Final = "object"
NULL: Final = "null"
INSTANT: Final = "instant"


class Instant:
    """The value of `now()`. A class of its own, so that no value of a context can be mistaken for one."""

    __slots__ = ("at",)

    def __init__(self, at: datetime) -> None:
        self.at = at


class Missing:
    """There is no value at a path. Only coalesce gets to see this."""

    __slots__ = ()


MISSING: Final = Missing()

# Exact types: a subclass could define its own comparison, and `bool` is a subclass of `int`.
KIND_OF: Final[dict[type, str]] = {
    int: NUMBER,
    float: NUMBER,
    str: STRING,
    bool: BOOLEAN,
    list: ARRAY,
    tuple: ARRAY,
    dict: OBJECT,
    type(None): NULL,
    Instant: INSTANT,
}
ORDERED_KINDS: Final = frozenset({NUMBER, STRING, INSTANT})
EQUATABLE_KINDS: Final = frozenset({NUMBER, STRING, BOOLEAN, INSTANT})
SCALAR_KINDS: Final = frozenset({NUMBER, STRING, BOOLEAN})

_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_MAX_TIMESTAMP_CHARACTERS = 32


def kind_of(value: Any) -> str:
    return KIND_OF.get(type(value), "value that is not JSON")


def parse_timestamp(text: str, *, position: Position | None) -> datetime:
    """The moment of an ISO 8601 timestamp. Seconds and offset are required; without an offset it is not a moment."""
    if len(text) <= _MAX_TIMESTAMP_CHARACTERS and _TIMESTAMP.fullmatch(text):
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ConditionTimeError(
        "now() was compared with a string that is no ISO 8601 timestamp with seconds and offset",
        position=position,
    )


def timestamp(moment: datetime) -> str:
    """The text of a moment in UTC, as the language itself reads it."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def _check_string(value: str, *, position: Position | None) -> None:
    if len(value) > MAX_STRING_CHARACTERS:
        raise ConditionLimitError(
            f"a string over {MAX_STRING_CHARACTERS} characters cannot be compared", position=position
        )


def comparable(left: Any, right: Any, *, kinds: frozenset[str], operator: str, position: Position | None) -> Any:
    """Both sides in a form that Python compares as the language defines it. Refuses pairs of different kinds."""
    kind, other = kind_of(left), kind_of(right)
    if {kind, other} == {INSTANT, STRING} or kind == other == INSTANT:
        return _moment(left, position=position), _moment(right, position=position)
    if kind != other or kind not in kinds:
        hint = "; null is received by coalesce only" if NULL in (kind, other) else ""
        raise ConditionTypeError(f"'{operator}' cannot compare {kind} with {other}{hint}", position=position)
    if kind == STRING:
        _check_string(left, position=position)
        _check_string(right, position=position)
    return left, right


def check_array(value: Any, *, what: str, position: Position | None) -> int:
    """The size of an array. Refuses other values and arrays that are too large."""
    if KIND_OF.get(type(value)) != ARRAY:
        raise ConditionTypeError(f"{what}, not {kind_of(value)}", position=position)
    if len(value) > MAX_LIST_ITEMS:
        raise ConditionLimitError(f"an array has more than {MAX_LIST_ITEMS} items", position=position)
    return len(value)


def contains(value: Any, items: list[Any] | tuple[Any, ...], *, position: Position | None) -> bool:
    """Whether the value is among the items, which must all be of its kind."""
    # All items are checked, also after a match: otherwise the order of the array would decide whether a wrong item is
    # an error.
    kind = check_needle(value, position=position)
    found = False
    for item in items:
        if KIND_OF.get(type(item)) != kind:
            raise ConditionTypeError(
                f"'in' cannot look for {kind} in an array that holds {kind_of(item)}", position=position
            )
        if kind == STRING:
            if len(item) > MAX_STRING_CHARACTERS:
                _check_string(item, position=position)
        elif type(item) is float and not isfinite(item):
            raise ConditionTypeError("an array holds a number that is not finite", position=position)
        found = found or item == value
    return found


def scan_steps(value: Any) -> int:
    """The steps for comparing the value with one item of an array."""
    return 1 + len(value) // CHARACTERS_PER_STEP if type(value) is str else 1


def check_needle(value: Any, *, position: Position | None) -> str:
    kind = kind_of(value)
    if kind not in SCALAR_KINDS:
        raise ConditionTypeError(f"'in' looks for a number, string or boolean, not {kind}", position=position)
    if kind == STRING:
        _check_string(value, position=position)
    return kind


def _moment(value: Any, *, position: Position | None) -> datetime:
    if type(value) is Instant:
        return value.at
    return parse_timestamp(value, position=position)
