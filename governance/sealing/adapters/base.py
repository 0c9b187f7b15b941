"""What a witness can do, whatever it is made of."""

from collections.abc import Iterator
from typing import Protocol


class WitnessFailed(Exception):
    """It did not keep, or did not give back, a head. `refused`: it answered, and the answer was no."""

    def __init__(self, code: str, *, refused: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.refused = refused


class Witness(Protocol):
    """Texts are signed heads (C2SP checkpoints). The same head may come twice."""

    name: str

    def push(self, text: str, *, size: int, epoch: int) -> None:
        """Returns when the head is kept; raises WitnessFailed otherwise."""

    def newest(self) -> list[str]:
        """Some of the last heads, the largest among them; cheap, however many there are."""

    def heads(self) -> Iterator[str]:
        """All of them, one at a time. What cannot be read as text is left out."""
