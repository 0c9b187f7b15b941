"""The interface of all witnesses, and the error that they raise."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from governance.sealing.rules.merkle.cosignature import CosignerKey


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


@runtime_checkable
class Cosigner(Protocol):
    """A witness that checks for itself that a head continues the last one it saw, and signs that."""

    name: str
    key: CosignerKey

    def cosign(
        self,
        text: str,
        *,
        size: int,
        since: int,
        prove: Callable[[int], list[bytes]],
        handovers: Callable[[], Sequence[str]],
    ) -> str:
        """The cosignature line, checked against the pinned key. `since` is the size that it probably has; `prove` gives
        the proof from a size, `handovers` the log's changes of key, oldest first. Raises WitnessFailed."""
