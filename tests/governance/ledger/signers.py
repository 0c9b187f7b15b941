"""Signers outside of the process, for tests: the socket signer as a real process, and a real SoftHSM2 token."""

import os
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from governance.sealing.adapters.signer_socket import SocketSigner
from governance.sealing.adapters.signer_token import TokenSigner
from governance.sealing.rules.signing import SealingKey
from tests.governance.ledger.sealing import KEY

PROGRAM = Path(__file__).resolve().parents[3] / "sdk" / "holdpoint_signer.py"
MODULES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so")
MISSING = "SoftHSM2 is not installed: signing in a hardware module is not tested (Debian's package `softhsm2`)."
# CKA_EC_PARAMS of Ed25519 as PKCS#11 3.0 names the curve: a printable string.
EDWARDS25519 = b"\x13\x0cedwards25519"


@dataclass
class SignerProcess:
    """The signer's own folder: its key, its memory, its socket."""

    folder: Path
    name: str = KEY.name
    seed: bytes = bytes(range(32))
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        descriptor = os.open(self.folder / "key", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(b64encode(self.seed).decode() + "\n")

    @property
    def socket(self) -> Path:
        return self.folder / "s"

    @property
    def key(self) -> SealingKey:
        return SealingKey(self.name, SocketSigner(path=str(self.socket), name=self.name))

    def run(self, kind: str, *more: str) -> "subprocess.CompletedProcess[str]":
        state = [] if kind == "handover" else ["--state", str(self.folder / "state")]
        command = [sys.executable, str(PROGRAM), kind, "--name", self.name, *state, *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    def start(self) -> None:
        key, state = str(self.folder / "key"), str(self.folder / "state")
        command = [sys.executable, str(PROGRAM), "serve", "--name", self.name, "--state", state]
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen([*command, "--key-file", key, "--socket", str(self.socket)], stderr=log)
        log.close()
        deadline = time.monotonic() + 30
        while not self.answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "the signer does not start"
            time.sleep(0.02)

    def answers(self) -> bool:
        try:
            return bool(self.key.id)
        except RuntimeError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            self.process = None


@contextmanager
def running_signer(folder: Path, **facts: Any) -> Iterator[SignerProcess]:
    signer = SignerProcess(folder, **facts)
    assert signer.run("begin").returncode == 0
    signer.start()
    try:
        yield signer
    finally:
        signer.kill()


def softhsm_module() -> str:
    """Its path. Without it the test says so, loudly, and in CI it fails."""
    found = next((one for one in MODULES if Path(one).exists()), None)
    if found is None or shutil.which("softhsm2-util") is None:
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    return found


def token_make(folder: Path, monkeypatch: pytest.MonkeyPatch, *, label: str = "ledger") -> TokenSigner:
    """A new SoftHSM2 token with an Ed25519 key that was made inside it."""
    import pkcs11

    module = softhsm_module()
    (folder / "tokens").mkdir(exist_ok=True)
    config = folder / "softhsm2.conf"
    config.write_text(f"directories.tokendir = {folder / 'tokens'}\nobjectstore.backend = file\nlog.level = ERROR\n")
    monkeypatch.setenv("SOFTHSM2_CONF", str(config))
    made = ["softhsm2-util", "--init-token", "--free", "--label", "holdpoint", "--pin", "1234", "--so-pin", "5678"]
    subprocess.run(made, check=True, capture_output=True, timeout=30)
    library = pkcs11.lib(module)
    library.reinitialize()  # another test's tokens may be known to it
    with library.get_token(token_label="holdpoint").open(rw=True, user_pin="1234") as session:
        kind = pkcs11.KeyType.EC_EDWARDS
        curve = session.create_domain_parameters(kind, {pkcs11.Attribute.EC_PARAMS: EDWARDS25519}, local=True)
        curve.generate_keypair(mechanism=pkcs11.Mechanism.EC_EDWARDS_KEY_PAIR_GEN, store=True, label=label)
    return TokenSigner(module=module, token="holdpoint", label=label, pin="1234")
