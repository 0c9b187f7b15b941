"""All findings about a definition at once. Never raises, whatever it is given."""

from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any

from governance.boundary.rules.limits import broken_limit
from governance.contracts.rules.documents.json_safety import unsafe_values
from workflows.definitions.rules.checks import LOCAL, WHOLE, Rule, texts
from workflows.definitions.rules.document import MAX_BYTES, MAX_DEPTH, MAX_STEPS
from workflows.definitions.rules.findings import DefinitionFinding, is_plain
from workflows.definitions.rules.reading import Reading
from workflows.kinds.base import StepKind

MAX_FINDINGS = 500
_LIMITS = {
    "too_large": f"A definition has at most {MAX_BYTES} bytes as JSON. Split the workflow, or shorten its texts.",
    "too_deep": f"A definition is nested at most {MAX_DEPTH} deep. Flatten it.",
}


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
    reading = Reading(document, kinds=kinds, codes=codes, tiers=tiers)
    # Rules about the whole graph cost its square, so they run only if its size may be published at all.
    return _run(LOCAL if len(reading.raw_steps) > MAX_STEPS else (*LOCAL, *WHOLE), reading)


def draft_findings(document: Any, *, kinds: Mapping[str, StepKind]) -> list[DefinitionFinding]:
    """What keeps a document from being stored even as a draft: no JSON object, or it holds what a record must not."""
    unreadable = _unreadable(document)
    if unreadable:
        return unreadable
    reading = Reading(document, kinds=kinds, codes={}, tiers=frozenset())
    return _run((texts.text_boundary, texts.key_boundary), reading)


def _run(rules: Iterable[Rule], reading: Reading) -> list[DefinitionFinding]:
    return list(dict.fromkeys(finding for rule in rules for finding in rule(reading)))[:MAX_FINDINGS]


def _unreadable(document: Any) -> list[DefinitionFinding]:
    """Nothing else can be said about what is not a JSON object of reasonable size."""
    if not isinstance(document, dict):
        return [
            DefinitionFinding("document_shape", "", "A definition is a JSON object with name, start_step and steps.")
        ]
    limit = broken_limit({"": document}, max_bytes=MAX_BYTES + 5, max_depth=MAX_DEPTH + 1)
    if limit is not None:
        return [DefinitionFinding("limits", "", _LIMITS[limit])]
    found = {(_shown(problem.pointer), problem.message) for problem in unsafe_values(document)}
    return [
        DefinitionFinding("json_safe", pointer, f"This {message}. Send plain JSON.")
        for pointer, message in sorted(found)
    ]


def _shown(pointer: str) -> str:
    """As far as its keys may be repeated."""
    parts: list[str] = []
    for part in pointer.split("/")[1:]:
        if not (is_plain(part) or part.isdigit()):
            break
        parts.append(part)
    return "".join(f"/{part}" for part in parts)
