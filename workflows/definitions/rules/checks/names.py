"""Names and texts of a document of format 2: words that are free, and no person and no secret in any text."""

from collections.abc import Iterator
from typing import Any

from governance.boundary.rules.detectors import TextForm
from governance.boundary.rules.findings import MESSAGES
from workflows.definitions.rules.checks import shape, texts
from workflows.definitions.rules.findings import DefinitionFinding
from workflows.definitions.rules.reading import Reading
from workflows.definitions.rules.reads import RESERVED_STEPS

# Under these names stand expressions, templates and words of an author; everything else is a reference or a code.
_PROSE = frozenset({"output", "values", "over", "while", "until", "match", "title", "facts", "send", "input"})
_SCHEMA_WORDS = frozenset({"title", "description", "$comment", "pattern"})


def step_words_free(reading: Reading) -> Iterator[DefinitionFinding]:
    yield from shape.step_ids_valid(reading)
    for step_id in reading.raw_steps:
        if step_id in RESERVED_STEPS:
            message = "This word has a meaning of its own in expressions. Rename the step."
            yield DefinitionFinding("step_ids_valid", reading.pointer("steps", step_id), message, f"{step_id}_step")


def texts_inspected(reading: Reading) -> Iterator[DefinitionFinding]:
    named = {text for kind in reading.kinds.values() for text in (*kind.texts, *kind.expressions, *kind.templates)}
    prose = _PROSE | named | texts.PROSE
    for path, text in texts.texts_of(reading.document):
        form = TextForm.NOTE if _is_prose(path, text, prose) else TextForm.REFERENCE
        for rule in texts.tripped_rules(text, form):
            message = f"{MESSAGES[rule]} Write what the workflow does, without people, contacts or secrets."
            yield DefinitionFinding("text_boundary", reading.pointer(*path), message)


def _is_prose(path: tuple[Any, ...], text: str, prose: frozenset[str]) -> bool:
    last = next((part for part in reversed(path) if isinstance(part, str)), "")
    if path[:1] == ("input",) or "returns" in path or "form" in path:
        return last in _SCHEMA_WORDS
    return "{{" in text or any(part in prose for part in path if isinstance(part, str))
