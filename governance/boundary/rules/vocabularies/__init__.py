"""Coded vocabularies as data, read once. A file belongs to an edition of the detectors and never changes: stored
decisions were made with it. A test keeps its hash."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`phrases` by their first word. With `modifiers` beside them they may be a whole text."""

    phrases: dict[str, tuple[tuple[str, ...], ...]]
    modifiers: frozenset[str]
    first_words: frozenset[str]

    def phrases_in(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Position and length of every phrase."""
        for start, word in enumerate(words):
            for phrase in self.phrases.get(word, ()):
                if tuple(words[start : start + len(phrase)]) == phrase:
                    yield start, len(phrase)

    def covers(self, words: Sequence[str]) -> bool:
        """Whether the words are phrases and modifiers only, with at least one phrase."""
        covered = {place for start, size in self.phrases_in(words) for place in range(start, start + size)}
        return bool(covered) and all(
            place in covered or word in self.modifiers or word.isdigit() for place, word in enumerate(words)
        )


def _load(file: Path) -> Vocabulary:
    document = json.loads(file.read_text(encoding="utf-8"))
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for texts in document["phrases"].values():
        for phrase in (tuple(text.split()) for text in texts):
            by_first.setdefault(phrase[0], []).append(phrase)
    phrases = {first: tuple(found) for first, found in by_first.items()}
    return Vocabulary(phrases, frozenset(document["modifiers"]), frozenset(phrases))


CLINICAL: Final = _load(Path(__file__).with_name("clinical-1.json"))
