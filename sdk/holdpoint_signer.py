#!/usr/bin/env python3
"""Holds a Holdpoint ledger's sealing key in a process of its own: one file, Python 3.9 or newer, and `cryptography`.

    python holdpoint_signer.py begin    --name NAME --state FILE [--head HEAD_FILE --key-file KEY]
    python holdpoint_signer.py serve    --name NAME --state FILE --key-file KEY --socket PATH
    python holdpoint_signer.py epoch    --name NAME --state FILE --number N
    python holdpoint_signer.py handover --name NAME --key-file KEY --new-public-key KEY --size N

It signs heads of one ledger, and only those that continue the last one it signed (RFC 9162 consistency proof). Run it
under an account, or on a machine, that Holdpoint's own processes cannot enter. Whoever controls them can then delay
sealing, but cannot have a second history signed. After a restored backup a person says so here (`epoch`).
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import hashlib
import json
import os
import re
import socket
import stat
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Iterator, Sequence

SECONDS = 5
MOST_BYTES = 65_536


class HeadRefused(Exception):
    """Not signed; `word` says why, to the log and to whoever asked."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class SignerUnusable(Exception):
    """It cannot run like this; the message says what to do."""


@dataclass(frozen=True)
class SignedState:
    """The last head that was signed. `epoch_next`: a person allowed one head of this epoch that continues nothing."""

    name: str
    size: int = 0
    root: str = ""
    epoch: int = 1
    epoch_next: int = 0


@dataclass(frozen=True)
class HeadBody:
    name: str
    size: int
    root: bytes
    epoch: int


# -- what is a head --------------------------------------------------------------------------------------------------
def body_read(text: str) -> HeadBody:
    """Strictly: a line too many, another spelling, anything else than a head is refused."""
    lines = text.split("\n")
    if len(lines) not in (4, 5) or lines[-1] or not lines[0]:
        raise HeadRefused("not_a_head")
    epoch = 1
    if len(lines) == 5:
        found = re.fullmatch(r"epoch ([1-9][0-9]{0,8})", lines[3])
        if not found or found.group(1) == "1":
            raise HeadRefused("not_a_head")
        epoch = int(found.group(1))
    if not re.fullmatch(r"[1-9][0-9]{0,17}", lines[1]):
        raise HeadRefused("not_a_head")
    return HeadBody(lines[0], int(lines[1]), _decoded(lines[2]), epoch)


def _decoded(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise HeadRefused("not_a_head") from error
    if len(raw) != 32 or base64.b64encode(raw).decode() != text:
        raise HeadRefused("not_a_head")
    return raw


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def continues(*, old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """RFC 9162 2.1.4.2: the tree (old, old_root) is the beginning of the tree (new, new_root)."""
    if old == new:
        return not proof and old_root == new_root
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    if not 0 < old < new or not path:
        return False
    first, last = old - 1, new - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    found_old = found_new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if first & 1 or first == last:
            found_old, found_new = _node(sibling, found_old), _node(sibling, found_new)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            found_new = _node(found_new, sibling)
        first, last = first >> 1, last >> 1
    return last == 0 and found_old == old_root and found_new == new_root


def judged(state: SignedState, head: HeadBody, proof: Sequence[bytes]) -> SignedState:
    """The state after this head; HeadRefused if it may not be signed."""
    after = SignedState(state.name, head.size, head.root.hex(), head.epoch)
    if head.name != state.name:
        raise HeadRefused("another_ledger")
    if state.epoch_next and head.epoch == state.epoch_next:
        return after
    if head.epoch < state.epoch:
        raise HeadRefused("epoch_is_over")
    if state.size == 0:
        # The first head of a new ledger, or of an epoch that a person allowed: there is nothing to continue.
        return replace(after, epoch_next=state.epoch_next)
    if head.size < state.size:
        raise HeadRefused("shorter")
    root = bytes.fromhex(state.root)
    if not continues(old=state.size, new=head.size, old_root=root, new_root=head.root, proof=proof):
        raise HeadRefused("a_fork")
    return replace(after, epoch_next=state.epoch_next)


# -- what it remembers -----------------------------------------------------------------------------------------------
def state_read(file: Path, name: str) -> SignedState:
    try:
        state = SignedState(**json.loads(file.read_text()))
    except FileNotFoundError as error:
        raise SignerUnusable(f"{file} is missing: `begin` for a new ledger, `begin --head` for an old one") from error
    except (ValueError, TypeError) as error:
        raise SignerUnusable(f"{file} cannot be read. Restore it, or `begin --head` with the newest head.") from error
    if state.name != name:
        raise SignerUnusable(f"{file} is of another ledger.")
    return state


def state_write(file: Path, state: SignedState) -> None:
    """On the disk before the signature leaves: after a power failure it must not sign a fork of what it signed."""
    draft = file.with_name(file.name + ".new")
    with open(draft, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        stream.write(json.dumps(asdict(state)) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(draft, file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def only_one(file: Path) -> Iterator[None]:
    """Two signers with one memory could each sign a different next head."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(file.with_name(file.name + ".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SignerUnusable("another signer uses this state; stop it first") from error
        yield


# -- the key ---------------------------------------------------------------------------------------------------------
def private_key(file: Path) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        if file.stat().st_mode & (stat.S_IRWXO | stat.S_IWGRP):
            raise SignerUnusable(f"{file} can be read or changed by others: chmod 600 {file}")
        return Ed25519PrivateKey.from_private_bytes(base64.b64decode(file.read_text().strip(), validate=True))
    except (OSError, ValueError) as error:
        raise SignerUnusable(f"{file} is not a file with 32 bytes in base64.") from error


def public_raw(key: Any) -> bytes:
    return bytes(key.public_key().public_bytes_raw())


def verifier_text(name: str, key: Any) -> str:
    raw = b"\x01" + public_raw(key)
    mark = hashlib.sha256(name.encode() + b"\n" + raw).hexdigest()[:8]
    return f"{name}+{mark}+{base64.b64encode(raw).decode()}"


# -- the commands ----------------------------------------------------------------------------------------------------
def begin(options: argparse.Namespace) -> None:
    """A memory: empty, or of a head that this key signed."""
    with only_one(options.state):
        if options.state.exists():
            raise SignerUnusable(f"{options.state} exists already.")
        state = SignedState(options.name)
        if options.head:
            state = _from_head(options)
        state_write(options.state, state)


def _from_head(options: argparse.Namespace) -> SignedState:
    from cryptography.exceptions import InvalidSignature

    if not options.key_file:
        raise SignerUnusable("--head needs --key-file: the head must be signed with it.")
    body, separator, tail = options.head.read_text().rpartition("\n\n")
    key = private_key(options.key_file)
    try:
        signature = base64.b64decode(tail.split(" ")[2])[4:]
        key.public_key().verify(signature, (body + "\n").encode())
        head = body_read(body + "\n")
    except (InvalidSignature, IndexError, ValueError, HeadRefused) as error:
        raise SignerUnusable("--head is not a head that this key signed.") from error
    if not separator or head.name != options.name:
        raise SignerUnusable("--head is of another ledger.")
    return SignedState(head.name, head.size, head.root.hex(), head.epoch)


def epoch(options: argparse.Namespace) -> None:
    """A person confirms that the record was restored: one head of this epoch may continue nothing."""
    with only_one(options.state):
        state = state_read(options.state, options.name)
        if options.number <= state.epoch:
            raise SignerUnusable(f"the last signed head is of epoch {state.epoch}; the next one is {state.epoch + 1}")
        state_write(options.state, replace(state, epoch_next=options.number))


def handover(options: argparse.Namespace) -> None:
    """Prints the line for `manage.py rotate_ledger_key --handover`."""
    key = private_key(options.key_file)
    old, new = verifier_text(options.name, key), options.new_public_key.strip()
    if not re.fullmatch(r"[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+", new) or new.split("+")[0] != options.name:
        raise SignerUnusable("--new-public-key is not a verifier key (name+id+base64) of this ledger.")
    text = f"holdpoint-key-handover-v1\n{old}\n{new}\n{options.size}\n"
    print(f"handover {old} {new} {options.size} {base64.b64encode(key.sign(text.encode())).decode()}")


def serve(options: argparse.Namespace) -> None:
    key = private_key(options.key_file)
    with only_one(options.state):
        state_read(options.state, options.name)
        with _listening(options.socket) as server:
            said("serving", name=options.name, key=verifier_text(options.name, key))
            while True:
                line, _ = server.accept()
                with line:
                    line.settimeout(SECONDS)
                    _answer(line, key, options)


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    if path.exists():
        path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        # For this account and its group only: the group is whom the operator lets ask.
        before = os.umask(0o117)
        try:
            server.bind(str(path))
        finally:
            os.umask(before)
        server.listen(16)
        try:
            yield server
        finally:
            path.unlink()


def _answer(line: socket.socket, key: Any, options: argparse.Namespace) -> None:
    try:
        answer = _work(json.loads(_read(line)), key, options)
    except HeadRefused as refusal:
        said("refused", why=refusal.word)
        answer = {"refused": refusal.word}
    # Whatever was sent: one caller's nonsense must not end the signer.
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as error:
        said("unreadable", why=type(error).__name__)
        answer = {"refused": "unreadable"}
    try:
        line.sendall(json.dumps(answer).encode() + b"\n")
    except OSError:
        pass  # gone; it asks again


def _read(line: socket.socket) -> bytes:
    read = b""
    while not read.endswith(b"\n"):
        part = line.recv(MOST_BYTES)
        if not part or len(read) > MOST_BYTES:
            raise ValueError("no whole line")
        read += part
    return read


def _work(asked: Any, key: Any, options: argparse.Namespace) -> dict[str, Any]:
    # Read from the disk each time: `begin` and `epoch` are refused while this runs, so nobody else writes it.
    state = state_read(options.state, options.name)
    if asked["do"] == "stand":
        public = base64.b64encode(public_raw(key)).decode()
        return {"public_key": public, "name": state.name, "size": state.size, "epoch": state.epoch}
    if asked["do"] != "sign":
        raise HeadRefused("not_a_head")
    proof = [base64.b64decode(one, validate=True) for one in asked["proof"]]
    after = judged(state, body_read(asked["body"]), proof)
    state_write(options.state, after)
    return {"signature": base64.b64encode(key.sign(asked["body"].encode())).decode()}


def said(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, **facts}), file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    for work in (begin, serve, epoch, handover):
        one = kinds.add_parser(work.__name__, help=work.__doc__)
        one.set_defaults(work=work)
        one.add_argument("--name", required=True, help="the ledger's name (HOLDPOINT_LEDGER_NAME)")
        if work is not handover:
            one.add_argument("--state", type=Path, required=True, help="where it remembers the last head")
        if work is not epoch:
            one.add_argument("--key-file", type=Path, required=work is not begin, help="32 bytes in base64")
    kinds.choices["begin"].add_argument("--head", type=Path, help="the newest signed head of an existing ledger")
    kinds.choices["serve"].add_argument("--socket", type=Path, required=True)
    kinds.choices["epoch"].add_argument("--number", type=int, required=True)
    kinds.choices["handover"].add_argument("--new-public-key", required=True)
    kinds.choices["handover"].add_argument("--size", type=int, required=True, help="entries under the newest head")
    options = parser.parse_args(arguments)
    try:
        options.work(options)
    except SignerUnusable as error:
        print(f"holdpoint_signer: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
