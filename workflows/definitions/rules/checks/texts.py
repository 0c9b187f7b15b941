"""No personal data and no secrets in a definition (law 6). Also for drafts, which are stored before they are valid."""

from collections.abc import Iterator
from typing import Any

from governance.boundary.rules.detectors import CONFIGURATION_RULES, InspectedText, TextForm, tripped
from governance.boundary.rules.findings import MESSAGES
from governance.boundary.rules.keys import key_facts
from governance.boundary.rules.text import has_broken_characters, normalise
from workflows.definitions.rules.findings import DefinitionFinding
from workflows.definitions.rules.reading import Reading

PROSE = frozenset({"name", "description", "note", "expr"})  # words of an author; all other texts are references


def text_boundary(reading: Reading) -> Iterator[DefinitionFinding]:
    texts = frozenset(text for kind in reading.kinds.values() for text in (*kind.texts, *kind.expressions))
    for path, text in texts_of(reading.document):
        prose = PROSE | texts
        last = next((part for part in reversed(path) if isinstance(part, str)), "")
        for rule in tripped_rules(text, TextForm.NOTE if last in prose else TextForm.REFERENCE):
            message = f"{MESSAGES[rule]} Write what the workflow does, without people, contacts or secrets."
            yield DefinitionFinding("text_boundary", reading.pointer(*path), message)


def key_boundary(reading: Reading) -> Iterator[DefinitionFinding]:
    for path, key in _keys(reading.document):
        for rule in key_facts(key).rules:
            message = f"{MESSAGES[rule]} Choose another name."
            yield DefinitionFinding("text_boundary", reading.pointer(*path, key), message)


def tripped_rules(text: str, form: TextForm) -> list[str]:
    rules = list(tripped(InspectedText(normalise(text), frozenset(), form), CONFIGURATION_RULES))
    return [*rules, "control_character"] if has_broken_characters(text) else rules


def _walk(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, (*path, index))


def texts_of(document: Any) -> Iterator[tuple[tuple[Any, ...], str]]:
    return ((path, value) for path, value in _walk(document, ()) if isinstance(value, str))


def _keys(document: Any) -> Iterator[tuple[tuple[Any, ...], str]]:
    return ((path, key) for path, value in _walk(document, ()) if isinstance(value, dict) for key in value)
