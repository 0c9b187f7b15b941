#!/usr/bin/env python3
"""A witness of transparency logs (C2SP tlog-witness): one file, Python 3.9 or newer, and `cryptography`.

    holdpoint-witness serve   --state FOLDER [--name NAME] [--log VERIFIER_KEY]… [--host ADDRESS] [--port N]
    holdpoint-witness show    --state FOLDER [--name NAME]
    holdpoint-witness add-key --state FOLDER --log VERIFIER_KEY
    holdpoint-witness epoch   --state FOLDER --origin ORIGIN --number N

It cosigns a log's head only if the head continues the last one that it cosigned, and keeps every head that it cosigned.
So nobody can shorten or rewrite the log unnoticed, not even whoever holds the log's key and its database. Run it on a
machine, or at least under an account, that the log's operators cannot enter. docs/ledger.md of Holdpoint says how.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import hashlib
import heapq
import io
import json
import os
import re
import signal
import socket
import socketserver
import stat
import struct
import sys
import threading
import time
from array import array
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Iterator, Sequence
from urllib.parse import parse_qs, unquote, urlsplit

LOG_KEY, COSIGNER_KEY = b"\x01", b"\x04"
DASH = "\u2014"
MOST_BODY = 64 * 1024
MOST_READ = 96 * 1024
MOST_PROOF = 63
MOST_CONNECTIONS = 32
SECONDS = 10.0
PAGE = 200
NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


class NotCosigned(Exception):
    """Refused; `status` and `body` are the answer, `word` is for the log."""

    def __init__(self, status: int, word: str, *, body: str = "", kind: str = "text/plain; charset=utf-8") -> None:
        super().__init__(word)
        self.status, self.word, self.body, self.kind = status, word, body or f"{word}\n", kind


class WitnessUnusable(Exception):
    """It cannot run like this; the message says what to do."""


# -- keys and signed notes -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class NoteKey:
    """`name+id+base64`, as C2SP writes a verifier key."""

    text: str
    name: str
    id: bytes
    raw: bytes


def canonical_base64(text: str) -> bytes:
    """One way to write it: what comes out must give the same text again. Raises ValueError."""
    raw = base64.b64decode(text, validate=True)
    if base64.b64encode(raw).decode() != text:
        raise ValueError("not the canonical form")
    return raw


def note_key_text(name: str, kind: bytes, raw: bytes) -> str:
    mark = hashlib.sha256(name.encode() + b"\n" + kind + raw).digest()[:4]
    return f"{name}+{mark.hex()}+{base64.b64encode(kind + raw).decode()}"


def note_key_read(text: str, *, kind: bytes = LOG_KEY) -> NoteKey:
    """Raises ValueError."""
    name, mark, encoded = text.strip().split("+", 2)
    raw = canonical_base64(encoded)
    if len(raw) != 33 or raw[:1] != kind or note_key_text(name, kind, raw[1:]) != text.strip() or not name_fits(name):
        raise ValueError("not a verifier key of this kind")
    return NoteKey(text.strip(), name, bytes.fromhex(mark), raw[1:])


def name_fits(name: str) -> bool:
    return bool(name) and len(name) <= 200 and not re.search(r"[\s+\x00-\x1f]", name)


@dataclass(frozen=True)
class SignedHead:
    origin: str
    size: int
    root: bytes
    epoch: int
    body: str
    signatures: tuple[tuple[str, bytes, str], ...]


def head_parse(text: str) -> SignedHead:
    """Strictly: another spelling of the same head would be a second text to cosign. Raises ValueError."""
    body, separator, tail = text.rpartition("\n\n")
    lines = body.split("\n")
    if not separator or not tail.endswith("\n") or len(lines) < 3 or re.search(r"[\x00-\x09\x0b-\x1f]", text):
        raise ValueError("not a signed checkpoint")
    root = canonical_base64(lines[2])
    if len(root) != 32 or not NUMBER.fullmatch(lines[1]) or not name_fits(lines[0]):
        raise ValueError("origin, size or root")
    signatures = []
    for line in tail[:-1].split("\n"):
        dash, name, encoded = line.split(" ")
        if dash != DASH or not name_fits(name):
            raise ValueError("a signature line")
        signatures.append((name, canonical_base64(encoded), line))
    return SignedHead(lines[0], int(lines[1]), root, _epoch(lines[3:]), body + "\n", tuple(signatures))


def _epoch(extensions: Sequence[str]) -> int:
    """Holdpoint's logs name their epoch from the second one on; other logs have none."""
    named = [line for line in extensions if line.startswith("epoch")]
    found = re.fullmatch(r"epoch ([1-9][0-9]{0,8})", named[0]) if len(named) == 1 else None
    if named and (found is None or found.group(1) == "1"):
        raise ValueError("the epoch")
    return int(found.group(1)) if found else 1


def signature_fits(raw: bytes, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, data)
    except InvalidSignature:
        return False
    return True


def cosigned_text(body: str, at: int) -> bytes:
    return f"cosignature/v1\ntime {at}\n{body}".encode()


# -- proofs (RFC 6962 2.1.2, RFC 9162 2.1.4.2) -----------------------------------------------------------------------
def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def tree_continues(*, old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """The tree (old, old_root) is the beginning of the tree (new, new_root)."""
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


# -- what it remembers: a file that only grows ------------------------------------------------------------------------
class Journal:
    """One line of JSON per act. What is in it was flushed to the disk before anybody was answered."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.broken = False
        self.descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._drop_torn_end()
        _folder_sync(file.parent)

    def _drop_torn_end(self) -> None:
        # A crash can leave a part of a line. Nobody was answered for it, so it never happened.
        end = size = os.fstat(self.descriptor).st_size
        while end and os.pread(self.descriptor, 1, end - 1) != b"\n":
            start = max(0, end - 4096)
            end = start + os.pread(self.descriptor, end - start, start).rfind(b"\n") + 1
            if end > start:
                break
        if end != size:
            os.ftruncate(self.descriptor, end)
            os.fsync(self.descriptor)
            said("torn_end_dropped", bytes=size - end)

    def lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        place = 0
        with self.file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    yield place, dict(json.loads(line))
                # A hole in the middle is not a crash: somebody changed the file. To go on would be to forget.
                except (ValueError, TypeError) as error:
                    raise WitnessUnusable(f"{self.file}: line {number} cannot be read. Restore the file.") from error
                place += len(line)

    def read(self, places: Sequence[int]) -> list[dict[str, Any]]:
        found = []
        with self.file.open("rb") as stream:
            for place in places:
                stream.seek(place)
                found.append(dict(json.loads(stream.readline())))
        return found

    def append(self, act: dict[str, Any]) -> int:
        """Its place. Returns after it is on the disk: a cosignature that left before could be forgotten by a crash, and
        then a second history could be cosigned."""
        if self.broken:
            raise NotCosigned(503, "the_disk_failed")
        place = os.fstat(self.descriptor).st_size
        data = json.dumps(act).encode() + b"\n"
        try:
            written = os.write(self.descriptor, data)
            if written != len(data):
                raise OSError("a part of the line was written")
            os.fsync(self.descriptor)
        except OSError as error:
            self._undo(place)
            raise NotCosigned(503, "the_disk_failed") from error
        return place

    def _undo(self, place: int) -> None:
        try:
            os.ftruncate(self.descriptor, place)
            os.fsync(self.descriptor)
        # Whether the line is there is unknown now. Only a new start, which reads the file, can say.
        except OSError:
            self.broken = True


def _folder_sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Two witnesses with one memory could each cosign a different next head."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise WitnessUnusable("another process uses this folder; stop it first") from error
        yield


@dataclass
class CosignerKey:
    name: str
    private: Any
    public: NoteKey

    def line(self, body: str, at: int) -> str:
        raw = self.public.id + struct.pack(">Q", at) + self.private.sign(cosigned_text(body, at))
        return f"{DASH} {self.name} {base64.b64encode(raw).decode()}"


def cosigner_key(folder: Path, name: str) -> CosignerKey:
    """The key of this folder, made at the first start. Its name is fixed then: the cosignatures have it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    file = folder / "key"
    if not file.exists():
        if not name_fits(name):
            raise WitnessUnusable("a new witness needs --name, such as witness.example/w1 (no spaces, no +)")
        _key_make(file, name, Ed25519PrivateKey.generate().private_bytes_raw())
    try:
        if file.stat().st_mode & (stat.S_IRWXO | stat.S_IRWXG):
            raise WitnessUnusable(f"{file} can be read or changed by others: chmod 600 {file}")
        kept, _, seed = file.read_text().strip().partition(" ")
        private = Ed25519PrivateKey.from_private_bytes(base64.b64decode(seed, validate=True))
    except (OSError, ValueError) as error:
        raise WitnessUnusable(f"{file} is not a witness' key. Restore it.") from error
    if name and name != kept:
        raise WitnessUnusable(f"this folder is of the witness {kept}, not of {name}")
    text = note_key_text(kept, COSIGNER_KEY, private.public_key().public_bytes_raw())
    return CosignerKey(kept, private, note_key_read(text, kind=COSIGNER_KEY))


def _key_make(file: Path, name: str, seed: bytes) -> None:
    draft = file.with_name("key.new")
    draft.unlink(missing_ok=True)
    # With its mode from the start, and complete before it gets its name: a crash leaves no half key.
    with open(draft, "w", opener=lambda path, flags: os.open(path, flags | os.O_EXCL, 0o600)) as stream:
        stream.write(f"{name} {base64.b64encode(seed).decode()}\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(draft, file)
    _folder_sync(file.parent)


# -- the rules -------------------------------------------------------------------------------------------------------
@dataclass
class HeadRun:
    """Sizes, which only grow, and places of heads. A person who allows a new epoch begins another run."""

    sizes: array[int] = field(default_factory=lambda: array("q"))
    places: array[int] = field(default_factory=lambda: array("q"))


@dataclass
class WitnessedLog:
    """The last head of one log. `replaces`: keys that end with the first head of the key that was named after them."""

    origin: str
    keys: dict[str, NoteKey] = field(default_factory=dict)
    replaces: dict[str, list[str]] = field(default_factory=dict)
    size: int = 0
    root: bytes = b""
    epoch: int = 1
    body: str = ""
    at: int = 0
    # Of the first head of the key that signs now. Handovers from before it are over: their keys would come back.
    since: int = 0
    runs: list[HeadRun] = field(default_factory=lambda: [HeadRun()])

    def key_add(self, text: str, replaces: list[str]) -> None:
        self.keys[text] = note_key_read(text)
        self.replaces[text] = [one for one in replaces if one != text]

    def head_add(self, head: SignedHead, key: str, at: int, place: int) -> None:
        self.size, self.root, self.epoch, self.body, self.at = head.size, head.root, head.epoch, head.body, at
        self.runs[-1].sizes.append(head.size)
        self.runs[-1].places.append(place)
        waiting = [key]
        while waiting:
            for gone in self.replaces.pop(waiting.pop(), []):
                self.keys.pop(gone, None)
                self.since = head.size
                waiting.append(gone)

    def epoch_add(self, number: int) -> None:
        self.size, self.root, self.epoch, self.body, self.since = 0, b"", number, "", 0
        self.runs.append(HeadRun())

    def places_after(self, size: int) -> list[int]:
        """A page of heads above a size, by size. Heads of one size are not separated: the next page begins above it."""
        rests = [
            zip(run.sizes[start : start + PAGE + 1], run.places[start : start + PAGE + 1])
            for run in self.runs
            for start in [bisect_right(run.sizes, size)]
        ]
        found: list[tuple[int, int]] = []
        for one in heapq.merge(*rests):
            if len(found) >= PAGE and one[0] != found[-1][0]:
                break
            found.append(one)
        return [place for _, place in found]


class Witness:
    """Everything that it knows is in its journal; this is the same, read into memory."""

    def __init__(self, folder: Path, name: str) -> None:
        self.key = cosigner_key(folder, name)
        self.journal = Journal(folder / "journal.jsonl")
        self.logs: dict[str, WitnessedLog] = {}
        # One head at a time: between the comparison with the last head and its replacement nobody else may look.
        self.alone = threading.Lock()
        for place, act in self.journal.lines():
            self._apply(act, place)
        for log in self.logs.values():
            self._check_newest(log)

    def _apply(self, act: dict[str, Any], place: int) -> None:
        try:
            log = self.logs.setdefault(act["origin"], WitnessedLog(act["origin"]))
            if act["do"] == "key":
                log.key_add(act["key"], act["replaces"])
            elif act["do"] == "head":
                log.head_add(head_parse(act["checkpoint"]), act["key"], act["at"], place)
            elif act["do"] == "epoch":
                log.epoch_add(act["number"])
            else:
                raise ValueError(act["do"])
        except (KeyError, ValueError, TypeError) as error:
            raise WitnessUnusable("the journal has a line that this version does not know") from error

    def _check_newest(self, log: WitnessedLog) -> None:
        run = log.runs[-1]
        if not run.places:
            return
        head = head_parse(self.journal.read([run.places[-1]])[0]["checkpoint"])
        key = self.key.public
        for name, raw, _ in head.signatures:
            if name == key.name and raw[:4] == key.id and len(raw) == 76:
                (at,) = struct.unpack(">Q", raw[4:12])
                if signature_fits(key.raw, raw[12:], cosigned_text(head.body, at)):
                    return
        raise WitnessUnusable(f"the newest head of {log.origin} is not cosigned with this key: restore key and journal")

    def _record(self, act: dict[str, Any]) -> None:
        self._apply(act, self.journal.append(act))

    # By its operator, while no other process serves.
    def log_add(self, text: str) -> bool:
        """A log with its first key. False if the log is known: then only `add-key` or a handover names another key."""
        key = note_key_read(text)
        if key.name in self.logs:
            return False
        self._record({"do": "key", "origin": key.name, "key": key.text, "replaces": [], "by": "operator"})
        return True

    def key_add(self, text: str) -> None:
        key = note_key_read(text)
        before = list(self.logs[key.name].keys) if key.name in self.logs else []
        self._record({"do": "key", "origin": key.name, "key": key.text, "replaces": before, "by": "operator"})

    def epoch_allow(self, origin: str, number: int) -> None:
        log = self.logs.get(origin)
        if log is None:
            raise WitnessUnusable("it is not a witness of this log")
        if number <= log.epoch:
            raise WitnessUnusable(f"the last head is of epoch {log.epoch}; the next one is {log.epoch + 1}")
        self._record({"do": "epoch", "origin": origin, "number": number})

    # By anybody who can reach it.
    def checkpoint_add(self, body: bytes) -> str:
        """The cosignature line, after the head is on the disk. Raises NotCosigned."""
        try:
            asked, _, text = body.decode().partition("\n\n")
            first, *lines = asked.split("\n")
            old, proof = int(first[4:]), [canonical_base64(line) for line in lines]
            head = head_parse(text)
        except ValueError as error:
            raise NotCosigned(400, "unreadable") from error
        if first != f"old {old}" or old < 0 or len(proof) > MOST_PROOF or any(len(one) != 32 for one in proof):
            raise NotCosigned(400, "unreadable")
        with self.alone:
            return self._cosign(head, old, proof)

    def _cosign(self, head: SignedHead, old: int, proof: list[bytes]) -> str:
        log = self.logs.get(head.origin)
        if log is None:
            raise NotCosigned(404, "unknown_log")
        key, line = self._signer(log, head)
        if old > head.size or head.size == 0:
            raise NotCosigned(400, "old_size_is_larger")
        size = NotCosigned(409, "another_size", body=f"{log.size}\n", kind="text/x.tlog.size")
        if old != log.size:
            raise size
        if head.epoch < log.epoch:
            raise NotCosigned(422, "epoch_is_over")
        if old == head.size and log.root != head.root:
            size.word = "a_fork"
            raise size
        fits = tree_continues(old=old, new=head.size, old_root=log.root, new_root=head.root, proof=proof)
        if not (fits if old else not proof):
            raise NotCosigned(422, "a_fork")
        at = max(int(time.time()), log.at)
        cosignature = self.key.line(head.body, at)
        # The same text again: a caller that lost the answer. It is cosigned for now, and there is nothing to remember.
        if head.body != log.body:
            text = f"{head.body}\n{line}\n{cosignature}\n"
            act = {"do": "head", "origin": head.origin, "key": key.text, "at": at, "checkpoint": text}
            self._record(act)
        said("cosigned", log=log.origin, size=head.size, epoch=head.epoch)
        return cosignature + "\n"

    @staticmethod
    def _signer(log: WitnessedLog, head: SignedHead) -> tuple[NoteKey, str]:
        found = None
        for name, raw, line in head.signatures:
            for key in log.keys.values():
                if name == key.name and raw[:4] == key.id:
                    if not signature_fits(key.raw, raw[4:], head.body.encode()):
                        raise NotCosigned(403, "wrong_signature")
                    found = key, line
        if found is None:
            raise NotCosigned(403, "unknown_key")
        return found

    def handover_add(self, body: bytes) -> str:
        """A key of a known log names the next one, as Holdpoint's ledgers do: oldest first, if there are several."""
        try:
            lines = [_handover(line) for line in body.decode().strip().split("\n")]
        except ValueError as error:
            raise NotCosigned(400, "unreadable") from error
        with self.alone:
            for old, new, size, signature, text in lines:
                log = self.logs.get(old.name)
                if log is None:
                    raise NotCosigned(404, "unknown_log")
                if old.text not in log.keys or new.text in log.keys or size < log.since:
                    continue
                if not signature_fits(old.raw, signature, text):
                    raise NotCosigned(403, "wrong_signature")
                act = {"do": "key", "origin": old.name, "key": new.text, "replaces": [old.text], "by": "handover"}
                self._record(act)
                said("key_handed_over", log=log.origin, key=new.id.hex())
            if lines[-1][1].text not in self.logs[lines[-1][1].name].keys:
                raise NotCosigned(403, "unknown_key")
        return "known\n"

    def heads(self, origin: str, after: int | None) -> list[str]:
        with self.alone:
            log = self.logs.get(origin)
            if log is None:
                raise NotCosigned(404, "unknown_log")
            if after is None:
                places = next(([run.places[-1]] for run in reversed(log.runs) if run.places), [])
            else:
                places = log.places_after(after)
        # Without the lock: what is written does not change.
        return [str(act["checkpoint"]) for act in self.journal.read(places)]

    def standing(self) -> dict[str, Any]:
        with self.alone:
            logs = [
                {
                    "origin": log.origin,
                    "size": log.size,
                    "root_sha256": log.root.hex(),
                    "epoch": log.epoch,
                    "heads": sum(len(run.sizes) for run in log.runs),
                    "keys": list(log.keys),
                }
                for log in self.logs.values()
            ]
        return {"name": self.key.name, "verifier_key": self.key.public.text, "logs": logs}


def _handover(line: str) -> tuple[NoteKey, NoteKey, int, bytes, bytes]:
    word, old, new, size, signature = line.split(" ")
    found = note_key_read(old), note_key_read(new)
    if word != "handover" or not NUMBER.fullmatch(size) or found[0].name != found[1].name:
        raise ValueError("not a handover of keys")
    text = f"holdpoint-key-handover-v1\n{old}\n{new}\n{size}\n"
    return (*found, int(size), canonical_base64(signature), text.encode())


# -- HTTP ------------------------------------------------------------------------------------------------------------
class _Deadline(io.RawIOBase):
    """Reads a connection until its deadline and up to a limit. A timeout of the socket alone would begin anew with each
    byte, and a client that sends one now and then would never end."""

    def __init__(self, connection: socket.socket, ends_at: float) -> None:
        self._connection, self._ends_at, self._left = connection, ends_at, MOST_READ

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            return 0
        self._connection.settimeout(max(0.001, self._ends_at - time.monotonic()))
        count = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= count
        return count


class WitnessHandler(BaseHTTPRequestHandler):
    server: "WitnessServer"
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "holdpoint-witness", ""

    def setup(self) -> None:
        super().setup()
        self.ends_at = time.monotonic() + SECONDS
        self.rfile = io.BufferedReader(_Deadline(self.connection, self.ends_at))

    def handle(self) -> None:
        # One request for each connection: an idle one would occupy a place that others need.
        self.close_connection = True
        try:
            self.handle_one_request()
            self.close_connection = True
        except OSError:
            said("gone")

    def do_POST(self) -> None:
        works = {
            "/add-checkpoint": self.server.witness.checkpoint_add,
            "/add-handover": self.server.witness.handover_add,
        }
        self._answered(lambda: works[self.path](self._body()) if self.path in works else _nowhere())

    def do_GET(self) -> None:
        self._answered(self._get)

    def _get(self) -> str:
        parts = urlsplit(self.path)
        if parts.path == "/":
            return json.dumps(self.server.witness.standing(), indent=2) + "\n"
        if not parts.path.startswith("/heads/"):
            return _nowhere()
        after = parse_qs(parts.query).get("after", [""])[0]
        if after and not NUMBER.fullmatch(after):
            raise NotCosigned(400, "unreadable")
        texts = self.server.witness.heads(unquote(parts.path[len("/heads/") :]), int(after) if after else None)
        if after:
            return "".join(json.dumps({"checkpoint": text}) + "\n" for text in texts)
        if not texts:
            raise NotCosigned(404, "no_head_yet")
        return texts[0]

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not NUMBER.fullmatch(length):
            raise NotCosigned(411, "no_length")
        if int(length) > MOST_BODY:
            raise NotCosigned(413, "too_long")
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise NotCosigned(400, "unreadable")
        return body

    def _answered(self, work: Any) -> None:
        status, kind = 200, "text/plain; charset=utf-8"
        try:
            text = work()
        except NotCosigned as refusal:
            status, kind, text = refusal.status, refusal.kind, refusal.body
            said("refused", status=status, why=refusal.word)
        data = text.encode()
        self.connection.settimeout(max(0.001, self.ends_at - time.monotonic()))
        self.send_response(status)
        for header, value in (("Content-Type", kind), ("Content-Length", str(len(data))), ("Connection", "close")):
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """What was done is said where it is done, without what a client sent."""


def _nowhere() -> str:
    raise NotCosigned(404, "not_found")


class WitnessServer(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], witness: Witness) -> None:
        self.witness = witness
        self.open: dict[int, socket.socket] = {}
        self.counting = threading.Condition()
        super().__init__(address, WitnessHandler)

    def server_bind(self) -> None:
        # Without the look-up of a name that HTTPServer makes: a machine without DNS would wait for it.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        """If all places are taken, the oldest connection ends. Silent clients therefore end each other, and one that
        sends its whole request at once is served."""
        with self.counting:
            while len(self.open) >= MOST_CONNECTIONS:
                oldest = next(iter(self.open.values()))
                said("ended", why="all_places_taken")
                _shut(oldest)
                count = len(self.open)
                # Its thread is about to notice; it does not wait for anything else.
                self.counting.wait_for(lambda: len(self.open) < count, timeout=1.0)  # noqa: B023
                if len(self.open) == count:
                    break
            self.open[id(request)] = request
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads: this connection ends, the witness does not
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        try:
            super().shutdown_request(request)
        finally:
            with self.counting:
                self.open.pop(id(request), None)
                self.counting.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        said("failed", error=type(sys.exc_info()[1]).__name__)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # gone already


def said(event: str, **facts: Any) -> None:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # In one write, so that lines of two threads do not mix.
    sys.stderr.write(json.dumps({"at": when, "event": event, **facts}) + "\n")
    sys.stderr.flush()


# -- the commands ----------------------------------------------------------------------------------------------------
def serve(options: argparse.Namespace) -> None:
    """answer on HTTP"""
    with only_process(options.state):
        witness = Witness(options.state, options.name)
        for text in options.log:
            if witness.log_add(text):
                said("log_added", log=note_key_read(text).name)
        with WitnessServer((options.host, options.port), witness) as server:
            host, port = server.server_address[:2]
            said("serving", name=witness.key.name, key=witness.key.public.text, host=str(host), port=port)
            server.serve_forever(poll_interval=0.5)


def show(options: argparse.Namespace) -> None:
    """print the verifier key and the last head of each log; makes the key if there is none"""
    with only_process(options.state):
        print(json.dumps(Witness(options.state, options.name).standing(), indent=2))


def add_key(options: argparse.Namespace) -> None:
    """a new log, or the next key of a known log whose old key is lost"""
    with only_process(options.state):
        witness = Witness(options.state, options.name)
        for text in options.log:
            witness.key_add(text)


def epoch(options: argparse.Namespace) -> None:
    """allow a log to begin anew after a restored backup: its next head continues nothing"""
    with only_process(options.state):
        Witness(options.state, options.name).epoch_allow(options.origin, options.number)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    for work in (serve, show, add_key, epoch):
        one = kinds.add_parser(work.__name__.replace("_", "-"), help=work.__doc__)
        one.set_defaults(work=work)
        one.add_argument("--state", type=Path, required=True, help="its folder: key, journal, lock")
        one.add_argument("--name", default="", help="its own name, at the first start; such as witness.example/w1")
    kinds.choices["serve"].add_argument("--log", action="append", default=[], help="verifier key of a log to witness")
    kinds.choices["serve"].add_argument("--host", default="127.0.0.1", help="address to listen on; default: loopback")
    kinds.choices["serve"].add_argument("--port", type=int, default=8790)
    kinds.choices["add-key"].add_argument("--log", action="append", required=True, help="verifier key (name+id+base64)")
    kinds.choices["epoch"].add_argument("--origin", required=True, help="the log's name")
    kinds.choices["epoch"].add_argument("--number", type=int, required=True)
    options = parser.parse_args(arguments)
    # As Ctrl-C does. Nothing has to be tidied up: what was answered is on the disk.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        options.work(options)
    except (WitnessUnusable, ValueError, OSError, ImportError) as error:
        print(f"holdpoint-witness: {error}", file=sys.stderr)
        return 2
    except NotCosigned as error:
        print(f"holdpoint-witness: {error.word}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
