"""All findings about a definition at once. Never raises, whatever it is given."""

from collections.abc import Collection, Iterator, Mapping, Set
from typing import Any

from governance.boundary.rules.limits import broken_limit
from governance.contracts.rules.documents.json_safety import unsafe_values
from workflows.definitions.rules.checks import LOCAL, LOCAL_2, WHOLE, WHOLE_2, names, texts
from workflows.definitions.rules.document import MAX_BYTES, MAX_DEPTH, MAX_STEPS, format_of
from workflows.definitions.rules.findings import DefinitionFinding, is_plain
from workflows.definitions.rules.reading import Reading
from workflows.definitions.rules.reads import TypedReading
from workflows.kinds.base import StepKind

MAX_FINDINGS = 500
# The schemas inside a document of format 2 need more levels.
DEPTHS = {1: MAX_DEPTH, 2: 20}


def validate(
    document: Any,
    *,
    kinds: Mapping[str, StepKind],
    halt_codes: Collection[str],
    tiers: Set[str],
    step_failure_codes: Collection[str] | None = None,
) -> list[DefinitionFinding]:
    """Empty: it may be published. Codes and tiers are those of the organization; None is not judged."""
    codes: dict[str, Collection[str]] = {"halt": halt_codes}
    if step_failure_codes is not None:
        codes["step_failure"] = step_failure_codes
    unreadable = _unreadable(document)
    if unreadable:
        return unreadable
    if format_of(document) == 2:
        typed = TypedReading(document, kinds=kinds, codes=codes, tiers=tiers)
        return _unique(one for rule in (*LOCAL_2, *([] if _is_too_large(typed) else WHOLE_2)) for one in rule(typed))
    reading = Reading(document, kinds=kinds, codes=codes, tiers=tiers)
    return _unique(one for rule in (*LOCAL, *([] if _is_too_large(reading) else WHOLE)) for one in rule(reading))


def draft_findings(document: Any, *, kinds: Mapping[str, StepKind]) -> list[DefinitionFinding]:
    """What keeps a document from being stored even as a draft: no JSON object, or it holds what a record must not."""
    unreadable = _unreadable(document)
    if unreadable:
        return unreadable
    reading = Reading(document, kinds=kinds, codes={}, tiers=frozenset())
    boundary = names.texts_inspected if reading.format == 2 else texts.text_boundary
    return _unique(one for rule in (boundary, texts.key_boundary) for one in rule(reading))


def _is_too_large(reading: Reading) -> bool:
    """Rules about the whole graph cost its square, so they run only if its size may be published at all."""
    return len(reading.raw_steps) > MAX_STEPS


def _unique(found: Iterator[DefinitionFinding]) -> list[DefinitionFinding]:
    return list(dict.fromkeys(found))[:MAX_FINDINGS]


def _unreadable(document: Any) -> list[DefinitionFinding]:
    """Nothing else can be said about what is not a JSON object of reasonable size."""
    if not isinstance(document, dict):
        return [
            DefinitionFinding("document_shape", "", "A definition is a JSON object with name, start_step and steps.")
        ]
    depth = DEPTHS[format_of(document)]
    limit = broken_limit({"": document}, max_bytes=MAX_BYTES + 5, max_depth=depth + 1)
    if limit is not None:
        return [DefinitionFinding("limits", "", _limit_words(limit, depth))]
    found = {(_shown(problem.pointer), problem.message) for problem in unsafe_values(document)}
    return [
        DefinitionFinding("json_safe", pointer, f"This {message}. Send plain JSON.")
        for pointer, message in sorted(found)
    ]


def _limit_words(limit: str, depth: int) -> str:
    if limit == "too_deep":
        return f"A definition is nested at most {depth} deep. Flatten it."
    return f"A definition has at most {MAX_BYTES} bytes as JSON. Split the workflow, or shorten its texts."


def _shown(pointer: str) -> str:
    """As far as its keys may be repeated."""
    parts: list[str] = []
    for part in pointer.split("/")[1:]:
        if not (is_plain(part) or part.isdigit()):
            break
        parts.append(part)
    return "".join(f"/{part}" for part in parts)
