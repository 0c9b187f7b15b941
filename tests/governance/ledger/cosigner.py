"""A witness that cosigns, as a real process with a real HTTP port, for tests."""

import json
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from governance.sealing.rules.merkle import (
    Checkpoint,
    checkpoint_sign,
    consistency_proof,
    extend,
    leaf_hash,
    verifier_key,
)
from governance.sealing.rules.merkle.tree import Node, frontier_root
from tests.governance.ledger.sealing import KEY

# One client: a new one reads the system's certificates, which takes longer than the whole exchange.
CLIENT = httpx.Client(timeout=15)
PROGRAM = Path(__file__).resolve().parents[3] / "sdk" / "holdpoint_witness.py"


@dataclass
class WitnessProcess:
    folder: Path
    name: str = "witness.test/w1"
    log: str = KEY.verifier
    process: "subprocess.Popen[bytes] | None" = field(default=None)
    port: int = 0
    verifier: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def entry(self) -> dict[str, str]:
        return {"name": self.name.rpartition("/")[2], "url": self.url, "kind": "cosign", "verifier_key": self.verifier}

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    def run(self, kind: str, *more: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, str(PROGRAM), kind, "--state", str(self.folder), *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    def start(self) -> None:
        command = [sys.executable, str(PROGRAM), "serve", "--state", str(self.folder), "--name", self.name]
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        with log.open("ab") as stream:
            # After a restart on the same port: Holdpoint's settings name it.
            self.process = subprocess.Popen([*command, "--port", str(self.port), "--log", self.log], stderr=stream)
        eventually(lambda: '"serving"' in log.read_text() or self.process.poll() is not None)  # type: ignore[union-attr]
        said = json.loads(next(line for line in log.read_text().splitlines() if '"serving"' in line))
        self.port, self.verifier = said["port"], said["key"]

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            self.process = None

    def standing(self) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(self.url, timeout=10).json()
        return found["logs"][0]

    def post(self, text: str, *, old: int, proof: Sequence[bytes] = ()) -> httpx.Response:
        lines = [f"old {old}", *(b64encode(one).decode() for one in proof), "", text]
        return CLIENT.post(f"{self.url}/add-checkpoint", content="\n".join(lines).encode())


@contextmanager
def running_witness(folder: Path, **facts: Any) -> Iterator[WitnessProcess]:
    folder.mkdir(exist_ok=True)
    witness = WitnessProcess(folder, **facts)
    witness.start()
    try:
        yield witness
    finally:
        witness.kill()


class SmallLog:
    """A log in memory: heads of any size, and proofs between them, with our own Merkle code."""

    def __init__(self, leaves: Sequence[bytes], *, key: Ed25519PrivateKey | None = None, name: str = KEY.name) -> None:
        self.key = key or Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
        self.name = name
        self.frontiers: list[list[bytes]] = [[]]
        self.nodes: dict[Node, bytes] = {}
        for number, leaf in enumerate(leaves):
            made, frontier = extend(size=number, frontier=self.frontiers[-1], leaves=[leaf_hash(leaf)])
            self.nodes |= dict(made)
            self.frontiers.append(frontier)

    @property
    def verifier(self) -> str:
        return verifier_key(self.name, self.key.public_key())

    def root(self, size: int) -> bytes:
        return frontier_root(self.frontiers[size])

    def head(self, size: int, *, epoch: int = 1) -> str:
        lines = (f"epoch {epoch}",) if epoch > 1 else ()
        return checkpoint_sign(Checkpoint(self.name, size, self.root(size), lines), name=self.name, key=self.key)

    def proof(self, old: int, new: int) -> list[bytes]:
        if not 0 < old < new:
            return []
        return consistency_proof(old=old, new=new, read=lambda nodes: [self.nodes[node] for node in nodes])


def leaves(count: int, mark: str = "") -> list[bytes]:
    return [f"{mark}{number}".encode() for number in range(count)]


def eventually(check: Any, seconds: float = 10) -> None:
    ends = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < ends
        time.sleep(0.02)
