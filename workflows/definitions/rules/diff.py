"""What changed between two documents: places and values for the record, words for people."""

from collections.abc import Iterator
from typing import Any

Change = dict[str, Any]  # op, pointer, before?, after?
_ABSENT = object()
_VERBS = {"add": "added", "remove": "removed", "replace": "changed"}
_LONGEST = 60


def diff(before: Any, after: Any) -> list[Change]:
    """In order of place. Objects are compared by key; lists whole, because the order of their items means something."""
    return list(_changes(before, after, ""))


def changes_in_words(changes: list[Change]) -> list[str]:
    """One sentence for each change, such as "Step ai_review: timeout_seconds changed from 900 to 600."."""
    return [_sentence(change) for change in changes]


def patched(before: Any, changes: list[Change]) -> Any:
    """The document after the changes: what a revision's diff must be able to give back."""
    document = _copy(before)
    for change in changes:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in change["pointer"].split("/")[1:]]
        if not parts:
            document = change["after"]
            continue
        place = document
        for part in parts[:-1]:
            place = place[part]
        if change["op"] == "remove":
            del place[parts[-1]]
        else:
            place[parts[-1]] = change["after"]
    return document


def _changes(before: Any, after: Any, pointer: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            inner = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from _changes(before.get(key, _ABSENT), after.get(key, _ABSENT), inner)
    elif before is _ABSENT:
        yield {"op": "add", "pointer": pointer, "after": after}
    elif after is _ABSENT:
        yield {"op": "remove", "pointer": pointer, "before": before}
    elif not _same(before, after):
        yield {"op": "replace", "pointer": pointer, "before": before, "after": after}


def _same(before: Any, after: Any) -> bool:
    """Python takes true for 1; JSON does not."""
    if isinstance(before, bool) or isinstance(after, bool):
        return before is after
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_same, before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_same(before[key], after[key]) for key in before)
    return before is after or bool(before == after)


def _copy(value: Any) -> Any:
    return {key: _copy(item) for key, item in value.items()} if isinstance(value, dict) else value


def _sentence(change: Change) -> str:
    parts = change["pointer"].split("/")[1:]
    if not parts:
        return "The whole document changed."
    verb = _VERBS[change["op"]]
    if parts[0] != "steps" or len(parts) == 1:
        return f"{'.'.join(parts)} {verb}{_values(change)}."
    if len(parts) == 2:
        after = change.get("after")
        kind = f" ({after['kind']})" if isinstance(after, dict) and isinstance(after.get("kind"), str) else ""
        return f"Step {parts[1]}{kind} {verb}."
    if parts[2] == "transitions" and len(parts) == 4:
        return _transition(parts[1], parts[3], change)
    return f"Step {parts[1]}: {'.'.join(parts[2:])} {verb}{_values(change)}."


def _transition(step: str, outcome: str, change: Change) -> str:
    if change["op"] == "remove":
        return f"Step {step}: {outcome} no longer leads to {_short(change['before'])}."
    instead = f" instead of {_short(change['before'])}" if "before" in change else ""
    return f"Step {step}: {outcome} leads to {_short(change['after'])}{instead}."


def _values(change: Change) -> str:
    if change["op"] == "replace":
        return f" from {_short(change['before'])} to {_short(change['after'])}"
    return f": {_short(change['after'])}" if change["op"] == "add" else f"; it was {_short(change['before'])}"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(value) or 'nothing'}"[:_LONGEST]
    text = ", ".join(map(_short, value)) if isinstance(value, list) else _scalar(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if value and " " not in value else f'"{value}"'
    return "null" if value is None else str(value)
