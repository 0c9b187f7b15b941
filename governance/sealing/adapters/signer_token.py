"""Signs in a hardware module, through PKCS#11: the private half never leaves it. The module's library runs in a process
of its own (`token_process`), which is ended if it does not answer."""

import json
import os
import select
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import IO, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.core.exceptions import ImproperlyConfigured

from governance.sealing.rules.signing import SignerFailed

# An Ed25519 point as PKCS#11 gives it: 32 bytes, in a DER octet string or bare.
DER_POINT = b"\x04\x20"
# For one question, with the start of the process. Without a limit a module that hangs would stop sealing until somebody
# restarts the worker, and nothing would say why.
SECONDS = 10.0
PROGRAM = Path(__file__).with_name("token_process.py")


class TokenSigner:
    """An Ed25519 key (CKM_EDDSA) that is found by its label, in a token that is found by its own."""

    def __init__(self, *, module: str, token: str, label: str, pin: str, seconds: float = SECONDS) -> None:
        self._module, self._token, self._label, self._pin = module, token, label, pin
        self._seconds = seconds
        self._public: Ed25519PublicKey | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._one = Lock()

    def public_key(self) -> Ed25519PublicKey:
        if self._public is None:
            point = self._ask({"do": "point"})
            raw = point.removeprefix(DER_POINT) if len(point) == 34 else point
            try:
                self._public = Ed25519PublicKey.from_public_bytes(raw)
            except ValueError as error:
                raise SignerFailed("token_no_ed25519_key") from error
        return self._public

    def sign(self, data: bytes) -> bytes:
        return self._ask({"do": "sign", "data": b64encode(data).decode()})

    def _ask(self, asked: dict[str, str]) -> bytes:
        facts = {"module": self._module, "token": self._token, "label": self._label, "pin": self._pin}
        # The PIN goes through the pipe: a command line can be read by everybody on the machine.
        line = json.dumps(facts | asked).encode() + b"\n"
        # One at a time: a token lets a process sign in once, and an answer must not reach another thread's question.
        with self._one:
            answer = self._exchange(line)
        if "failed" in answer:
            # The library keeps what it knew about its tokens: a new process finds one that came back.
            self.stop()
            raise SignerFailed(f"token_{answer['failed']}")
        return b64decode(answer["done"])

    def _exchange(self, line: bytes) -> dict[str, Any]:
        process, deadline = self._running(), time.monotonic() + self._seconds
        try:
            _pipe(process.stdin).write(line)
            _pipe(process.stdin).flush()
            answer: dict[str, Any] = json.loads(_line(_pipe(process.stdout), deadline))
        except TimeoutError as error:
            self.stop()
            raise SignerFailed("token_silent") from error
        except (OSError, ValueError) as error:  # it ended: the library may have crashed it
            self.stop()
            raise SignerFailed("token_away") from error
        return answer

    def _running(self) -> "subprocess.Popen[bytes]":
        # A forked process has its parent's pipes. It starts its own, or each would read the other's answers.
        if self._process is None or self._owner != os.getpid():
            if find_spec("pkcs11") is None:
                raise ImproperlyConfigured("HOLDPOINT_LEDGER_SIGNER=pkcs11:… needs the package python-pkcs11.")
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            self._owner = os.getpid()
        return self._process

    def __del__(self) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the process. The next question starts another one."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # What was not written to a killed process cannot be flushed.
                with suppress(OSError):
                    _pipe(pipe).close()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise OSError("no pipe")
    return stream


def _line(stream: IO[bytes], deadline: float) -> bytes:
    """One line, read as it comes: a buffered read would wait beyond the deadline."""
    read = b""
    while not read.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(stream.fileno(), 65_536)
        if not part:
            raise OSError("ended")
        read += part
    return read


def pin_read(*, value: str, source: str) -> str:
    """The PIN: itself, or the first line of a file (`file:/path` or `/path`)."""
    if not source:
        return value
    try:
        return Path(source.removeprefix("file:")).read_text().splitlines()[0].strip()
    except (OSError, IndexError) as error:
        raise SignerFailed("token_pin_unreadable") from error
