"""Where the tokens of a run of format 2 stand: the blocks under way, tries, and outputs that are not the root's.

A scope is the way to a token: segments `<block step>.<its attempt>:<branch, item or round>`, joined by `/`; empty at
the root. What is in front of a segment's colon is the block's key. Everything here is bounded by what is open, and not
by how long the run has been going on.
"""

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from workflows.kinds.base import Json

ROOT_SCOPE = ""


def block_key(scope: str, step_id: str, attempt: int) -> str:
    own = f"{step_id}.{attempt}"
    return f"{scope}/{own}" if scope else own


def key_of(scope: str) -> str:
    """The block that this scope lies in directly."""
    return scope.rpartition(":")[0]


def name_of(scope: str) -> str:
    """The branch, item or round that it is of its block."""
    return scope.rpartition(":")[2]


def parent_of(key: str) -> str:
    """The scope in which the block's own step stands."""
    return key.rpartition("/")[0]


def step_of(key: str) -> str:
    """The block's own step."""
    return key.rpartition("/")[2].rpartition(".")[0]


def is_within(scope: str, key: str) -> bool:
    return scope.startswith(f"{key}:")


def way_to(scope: str) -> list[str]:
    """The scope itself and those around it, the outermost first, without the root."""
    parts = scope.split("/") if scope else []
    return ["/".join(parts[: length + 1]) for length in range(len(parts))]


@dataclass(slots=True)
class Block:
    """A block under way. `ends` has one word per branch or item that has ended; `begun` counts items or rounds."""

    names: list[str] = field(default_factory=list)  # of a parallel's branches
    items: list[Any] | None = None  # what a for_each goes over
    begun: int = 0
    ends: dict[str, str] = field(default_factory=dict)
    reason: str = ""  # why the first of them failed

    @property
    def total(self) -> int:
        return len(self.names) if self.items is None else len(self.items)

    @property
    def completed(self) -> int:
        return sum(end == "completed" for end in self.ends.values())


@dataclass(slots=True)
class Turn:
    """What comes next: a step to enter, or, with `ended`, that the token of this scope has come to its end."""

    scope: str
    step_id: str = ""
    before: str = ""  # the step that led here
    ended: str = ""  # completed or failed
    reason: str = ""


@dataclass(slots=True)
class Tokens:
    count: int = 0  # steps so far: the next one's number is one more
    at: datetime | None = None  # the newest moment that is known; nothing happened before it
    blocks: dict[str, Block] = field(default_factory=dict)
    tries: dict[str, dict[str, int]] = field(default_factory=dict)  # scope: step: its tries
    data: dict[str, Json] = field(default_factory=dict)  # scope: step: output; the root's are the run's context
    waiting: list[Turn] = field(default_factory=list)  # halted: where it goes on
    halted: UUID | None = None  # the row of the halt step that halted it

    def copy(self) -> "Tokens":
        """A copy to advance. Outputs are replaced and never changed in place."""
        copy = Tokens(self.count, self.at, halted=self.halted)
        copy.blocks = {
            key: Block(one.names, one.items, one.begun, dict(one.ends), one.reason) for key, one in self.blocks.items()
        }
        copy.tries = {scope: dict(one) for scope, one in self.tries.items()}
        copy.data = {scope: dict(one) for scope, one in self.data.items()}
        copy.waiting = list(self.waiting)
        return copy

    def forget(self, scope: str) -> Json:
        """The scope has ended. Returns the outputs of its steps."""
        self.tries.pop(scope, None)
        return self.data.pop(scope, {})

    def forget_block(self, key: str) -> None:
        """With everything inside it."""
        self.blocks.pop(key, None)
        for table in (self.blocks, self.tries, self.data):
            for scope in [one for one in table if is_within(one, key)]:
                del table[scope]

    def clear(self) -> None:
        """The run has ended."""
        self.blocks, self.tries, self.data, self.waiting, self.halted = {}, {}, {}, [], None


def tokens_first(document_format: int) -> Tokens | None:
    """Of a run that has not begun."""
    return Tokens() if document_format > 1 else None


def tokens_json(tokens: Tokens | None) -> Json:
    """As it is stored. Empty for a run of format 1."""
    if tokens is None:
        return {}
    return {
        "v": 2,
        "count": tokens.count,
        "at": tokens.at.isoformat() if tokens.at else None,
        "blocks": {key: _values(one) for key, one in tokens.blocks.items()},
        "tries": tokens.tries,
        "data": tokens.data,
        "waiting": [_values(one) for one in tokens.waiting],
        "halted": str(tokens.halted) if tokens.halted else None,
    }


def tokens_read(stored: Json) -> Tokens | None:
    if not stored:
        return None
    return Tokens(
        count=stored["count"],
        at=datetime.fromisoformat(stored["at"]) if stored["at"] else None,
        blocks={key: Block(**one) for key, one in stored["blocks"].items()},
        tries=stored["tries"],
        data=stored["data"],
        waiting=[Turn(**one) for one in stored["waiting"]],
        halted=UUID(stored["halted"]) if stored["halted"] else None,
    )


def _values(one: Block | Turn) -> Json:
    """Without what is as it begins, to keep the stored row small."""
    first = type(one)("") if isinstance(one, Turn) else Block()
    found = {part.name: getattr(one, part.name) for part in fields(one)}
    return {name: value for name, value in found.items() if value != getattr(first, name) or name == "scope"}
