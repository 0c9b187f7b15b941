"""A witness that cosigns (C2SP tlog-witness), such as `sdk/holdpoint_witness.py`: it gets each head with the proof that
the head continues its last one. What it answers counts only if its pinned key signed it."""

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

from governance.sealing.adapters.base import WitnessFailed
from governance.sealing.adapters.http import HttpWitness, exchange
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid, checkpoint_read
from governance.sealing.rules.merkle.cosignature import CosignerKey, cosignature_find, cosigner_key_read

# Tries for one head: with the size that we suppose, with the size that it names, and after a handover of keys.
TRIES = 4


class CosignWitness:
    """`url` is the submission prefix: `/add-checkpoint` is below it."""

    def __init__(self, *, name: str, url: str, verifier_key: str, origin: str, token: str = "") -> None:
        self.name = name
        self.url = url.rstrip("/")
        self.key: CosignerKey = cosigner_key_read(verifier_key)
        self.token = token
        self._kept = HttpWitness(name=name, url=f"{self.url}/heads/{quote(origin)}", token=token)
        self._size: int | None = None

    def cosign(
        self,
        text: str,
        *,
        size: int,
        since: int,
        prove: Callable[[int], list[bytes]],
        handovers: Callable[[], Sequence[str]],
    ) -> str:
        old, told = since if self._size is None else self._size, False
        for _ in range(TRIES):
            if old > size:
                return self._kept_line(text, size)
            status, answer = self._submit(text, old, prove(old) if 0 < old < size else [])
            if status == 200:
                self._size = size
                return self._checked(text, answer)
            if status == 409 and (named := _number(answer)) is not None and named != old:
                old = named
            elif status == 403 and not told and (lines := handovers()):
                told = True
                exchange("POST", f"{self.url}/add-handover", body="\n".join(lines).encode(), token=self.token)
            else:
                raise WitnessFailed(f"cosign_{status}", refused=status in {400, 403, 404, 409, 422})
        raise WitnessFailed("cosign_no_agreement", refused=True)

    def _submit(self, text: str, old: int, proof: list[bytes]) -> tuple[int, bytes]:
        lines = [f"old {old}", *(b64encode(one).decode() for one in proof), "", text]
        return exchange("POST", f"{self.url}/add-checkpoint", body="\n".join(lines).encode(), token=self.token)

    def _checked(self, text: str, answer: bytes) -> str:
        try:
            line = cosignature_find(text + answer.decode(), key=self.key)
        except (CheckpointInvalid, UnicodeDecodeError) as error:
            raise WitnessFailed("cosignature_wrong", refused=True) from error
        if not line:
            raise WitnessFailed("cosignature_of_another_key", refused=True)
        return line

    def _kept_line(self, text: str, size: int) -> str:
        """It has a longer head already: its answer to this one was lost. It keeps every head that it cosigned."""
        ours = checkpoint_read(text)[0].body
        for found in self._kept.page(after=size - 1):
            try:
                if checkpoint_read(found)[0].body == ours and (line := cosignature_find(found, key=self.key)):
                    return line
            except CheckpointInvalid:
                continue
        # The log was cut, or this witness passed over this head. `divergence_guard` finds out which.
        raise WitnessFailed("cosign_ahead", refused=True)

    def push(self, text: str, *, size: int, epoch: int) -> None:
        """A head without a proof: the witness takes it only as the first one, or if it has it already."""
        self.cosign(text, size=size, since=0, prove=lambda old: [], handovers=tuple)

    def newest(self) -> list[str]:
        return self._kept.newest()

    def heads(self) -> Iterator[str]:
        return self._kept.heads()


def _number(answer: bytes) -> int | None:
    text = answer.strip()
    return int(text) if text.isdigit() and len(text) < 20 else None
