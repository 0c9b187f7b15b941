"""Asks `sdk/holdpoint_signer.py`, a process of its own that holds the key, over a Unix socket. It signs only heads that
continue the last one it signed, so who controls this process cannot make it sign a second history."""

import json
import socket
from base64 import b64decode, b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from governance.sealing.rules.signing import Prove, SignerFailed

# The whole exchange. The sealer waits inside its transaction, which delays only other sealing.
SECONDS = 5
MOST_BYTES = 65_536


class SocketSigner:
    def __init__(self, *, path: str, name: str) -> None:
        self._path, self._name = path, name
        self._public: Ed25519PublicKey | None = None

    def public_key(self) -> Ed25519PublicKey:
        return self._public or self._standing()[0]

    def sign_head(self, body: bytes, *, prove: Prove) -> bytes:
        size = int(body.split(b"\n")[1])
        _, last = self._standing()
        # 0: it signed nothing yet. Of a larger last head it refuses by itself, and says so in its own log too.
        proof = prove(last) if 0 < last <= size else []
        asked = {"do": "sign", "body": body.decode(), "from": last, "proof": [b64encode(one).decode() for one in proof]}
        answer = self._ask(asked)
        try:
            return b64decode(answer["signature"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise SignerFailed("signer_malformed") from error

    def _standing(self) -> tuple[Ed25519PublicKey, int]:
        """Its key, which may be another one by now, and the size of the last head that it signed."""
        answer = self._ask({"do": "stand"})
        try:
            raw, size, name = b64decode(answer["public_key"], validate=True), int(answer["size"]), answer["name"]
            self._public = key = Ed25519PublicKey.from_public_bytes(raw)
        except (KeyError, TypeError, ValueError) as error:
            raise SignerFailed("signer_malformed") from error
        if name != self._name:
            raise SignerFailed("signer_of_another_ledger")
        return key, size

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """One line of JSON there and one back."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
                line.settimeout(SECONDS)
                line.connect(self._path)
                line.sendall(json.dumps(asked).encode() + b"\n")
                answer = json.loads(_line(line))
        except TimeoutError as error:
            raise SignerFailed("signer_silent") from error
        except OSError as error:
            raise SignerFailed("signer_away") from error
        except ValueError as error:
            raise SignerFailed("signer_malformed") from error
        if not isinstance(answer, dict):
            raise SignerFailed("signer_malformed")
        if "refused" in answer:
            word = str(answer["refused"])
            raise SignerFailed(f"signer_refused_{word}" if word.isidentifier() and len(word) < 40 else "signer_refused")
        return answer


def _line(line: socket.socket) -> bytes:
    read = b""
    while not read.endswith(b"\n"):
        part = line.recv(MOST_BYTES)
        if not part or len(read) > MOST_BYTES:
            raise ValueError("no whole line")
        read += part
    return read
