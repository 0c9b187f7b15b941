"""A definition for people's eyes: JSON in reading order, and a revision in words."""

from collections.abc import Iterable, Mapping
from difflib import unified_diff
from typing import Any

from governance.admin.json_text import pretty
from workflows.definitions.diff import words
from workflows.definitions.layout import layout
from workflows.definitions.schema import DOCUMENT_SCHEMA, STEP_SCHEMA
from workflows.models import WorkflowDefinitionRevision


def as_written(document: Any) -> Any:
    """The database does not keep the order of names; people read the name first and the steps in the order of work."""
    if not isinstance(document, dict):
        return document
    found = _ordered(document, DOCUMENT_SCHEMA["properties"])
    steps = document.get("steps")
    if isinstance(steps, dict):
        order = [name for row in layout(document).rows for name in row]
        found["steps"] = {
            name: _ordered(step, STEP_SCHEMA["properties"]) if isinstance(step, dict) else step
            for name, step in _ordered(steps, order).items()
        }
    return found


def _ordered(value: Mapping[str, Any], order: Iterable[str]) -> dict[str, Any]:
    known = [name for name in order if name in value]
    return {name: value[name] for name in (*known, *sorted(set(value) - set(known)))}


def changed_lines(before: Any, after: Any) -> list[tuple[str, str]]:
    """(mark, line) with three lines around each change; a mark is + or - or nothing, `…` where lines were left out."""
    old, new = (pretty(as_written(document), sort=False).splitlines() for document in (before, after))
    found: list[tuple[str, str]] = []
    for line in list(unified_diff(old, new, lineterm=""))[2:]:
        found.append(("…", "") if line.startswith("@@") else (line[0].strip(), line[1:]))
    return found


def revision_words(revision: WorkflowDefinitionRevision) -> list[str]:
    """What happened, one sentence each; the first revision is the draft itself."""
    status, slug = revision.diff.get("status"), revision.diff.get("slug")
    if status and status["before"] is None:
        return ["Drafted."]
    told = [{"active": "Published.", "archived": "Archived."}.get(status["after"], "")] if status else []
    if slug:
        told.append(f"The slug changed from {slug['before']} to {slug['after']}.")
    return [*told, *words(revision.diff["definition"])]
