"""The interface of all witnesses, and the error that they raise."""

from collections.abc import Iterator
from typing import Protocol


class WitnessFailed(Exception):
    """A witness did not store or return a head. `refused`: it answered, and refused."""

    def __init__(self, code: str, *, refused: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.refused = refused


class Witness(Protocol):
    """Texts are signed heads (C2SP checkpoints). The same head may be sent twice."""

    name: str

    def push(self, text: str, *, size: int, epoch: int) -> None:
        """Returns when the head is stored; raises WitnessFailed otherwise."""

    def newest(self) -> list[str]:
        """Some of the last heads, with the largest among them. Must be cheap, however many heads there are."""

    def heads(self) -> Iterator[str]:
        """All heads, one at a time. What cannot be read as text is left out."""
