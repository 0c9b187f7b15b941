"""JSON for people's eyes: read from a text area, printed, and compared with the safe default."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

ABSENT = "absent"


class JsonTextError(ValueError):
    """The text is no JSON, or says a name twice; the message says where."""


def parse(text: str) -> Any:
    """The value, or JsonTextError. A name that appears twice is refused: only one of them would count."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise JsonTextError(f"This is not JSON: {error.msg} (line {error.lineno}, column {error.colno}).") from None
    except RecursionError:
        raise JsonTextError("This JSON is nested too deeply.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise JsonTextError("An object has the same name twice. Remove one of them: only one would count.")
        found[name] = value
    return found


def pretty(value: Any, *, sort: bool = True) -> str:
    return json.dumps(value, indent=2, sort_keys=sort, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    changed: bool


def marked_lines(default: Any, value: Any) -> list[Line]:
    """The printed value; lines that the default does not have are marked."""
    before, after = pretty(default).splitlines(), pretty(value).splitlines()
    changed: set[int] = set()
    for tag, _, _, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            changed.update(range(start, end))
    return [Line(text, index in changed) for index, text in enumerate(after)]


@dataclass(frozen=True, slots=True)
class Difference:
    pointer: str
    before: str
    after: str


def differences(default: Any, value: Any) -> list[Difference]:
    """Where the value is not what the default says, in order. Lists count as one value."""
    return list(_differences(default, value, ""))


def _differences(before: Any, after: Any, pointer: str) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if name not in before or name not in after:
                yield Difference(place, _short(before, name), _short(after, name))
            else:
                yield from _differences(before[name], after[name], place)
    elif before != after or type(before) is not type(after):
        yield Difference(pointer or "/", _text(before), _text(after))


def _short(value: dict[str, Any], name: str) -> str:
    return _text(value[name]) if name in value else ABSENT


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 200 else text[:199] + "…"
