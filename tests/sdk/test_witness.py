"""The stand-alone witness: one history, whatever is sent to it, whoever sends it, and however it ends."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from governance.sealing.rules.handover import handover_text
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid
from governance.sealing.rules.merkle.cosignature import cosignature_find, cosigner_key_read
from sdk.holdpoint_witness import tree_continues
from tests.governance.ledger.cosigner import PROGRAM, SmallLog, WitnessProcess, eventually, leaves, running_witness

LOG = SmallLog(leaves(300))
FORK = SmallLog(leaves(20) + leaves(280, "another "))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[WitnessProcess]:
    with running_witness(tmp_path / "w") as found:
        yield found


def cosigned(witness: WitnessProcess, text: str, answer: str) -> bool:
    return bool(cosignature_find(text + answer, key=cosigner_key_read(witness.verifier)))


def test_heads_are_cosigned_in_order_and_read_back(witness: WitnessProcess) -> None:
    old = 0
    for size in (1, 2, 7, 8, 100):
        answer = witness.post(LOG.head(size), old=old, proof=LOG.proof(old, size))
        assert (answer.status_code, cosigned(witness, LOG.head(size), answer.text)) == (200, True)
        old = size
    newest = httpx.get(f"{witness.url}/heads/{LOG.name}").text
    assert newest.startswith(LOG.head(100))
    assert cosigned(witness, newest, "")
    pages = httpx.get(f"{witness.url}/heads/{LOG.name}", params={"after": "2"}).text.splitlines()
    assert [int(json.loads(line)["checkpoint"].split("\n")[1]) for line in pages] == [7, 8, 100]
    assert oct((witness.folder / "key").stat().st_mode)[-3:] == "600"


def test_the_same_head_again_is_cosigned_again_and_not_remembered_twice(witness: WitnessProcess) -> None:
    assert witness.post(LOG.head(5), old=0).status_code == 200
    before = witness.journal.read_bytes()
    assert witness.post(LOG.head(5), old=5).status_code == 200
    assert witness.journal.read_bytes() == before


def test_a_wrong_old_size_is_told_the_right_one(witness: WitnessProcess) -> None:
    assert witness.post(LOG.head(5), old=0).status_code == 200
    answer = witness.post(LOG.head(9), old=3, proof=LOG.proof(3, 9))
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (409, "5\n", "text/x.tlog.size")
    assert witness.post(LOG.head(4), old=5).status_code == 400
    assert witness.post(LOG.head(4), old=0).text == "5\n", "never back"


def test_a_second_history_is_refused_whatever_proof_comes_with_it(witness: WitnessProcess) -> None:
    assert witness.post(LOG.head(30), old=0).status_code == 200
    assert witness.post(FORK.head(30), old=30).status_code == 409
    for proof in (FORK.proof(30, 40), LOG.proof(30, 40), [], [bytes(32)] * 63):
        assert witness.post(FORK.head(40), old=30, proof=proof).status_code == 422
    assert witness.post(FORK.head(40), old=30, proof=[bytes(32)] * 64).status_code == 400
    assert witness.standing()["root_sha256"] == LOG.root(30).hex()
    assert witness.post(LOG.head(40), old=30, proof=LOG.proof(30, 40)).status_code == 200


def test_two_forks_at_the_same_moment_get_one_cosignature(witness: WitnessProcess) -> None:
    assert witness.post(LOG.head(20), old=0).status_code == 200
    found: list[int] = []
    begin = threading.Barrier(8)

    def send(log: SmallLog) -> None:
        begin.wait()
        found.append(witness.post(log.head(60), old=20, proof=log.proof(20, 60)).status_code)

    threads = [threading.Thread(target=send, args=((LOG, FORK)[number % 2],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (found.count(200), found.count(409)) == (1, 7)
    assert witness.standing()["heads"] == 2


def test_unknown_logs_keys_and_signatures_are_refused(witness: WitnessProcess) -> None:
    stranger = SmallLog(leaves(5), name="another.test/log")
    assert witness.post(stranger.head(5), old=0).status_code == 404
    assert witness.post(SmallLog(leaves(5), key=OTHER).head(5), old=0).status_code == 403
    bent = LOG.head(5).replace(b64encode(LOG.root(5)).decode(), b64encode(LOG.root(6)).decode())
    assert witness.post(bent, old=0).status_code == 403
    assert witness.standing()["size"] == 0


def test_what_cannot_be_read_is_400_and_too_much_413(witness: WitnessProcess) -> None:
    for body in (
        b"",
        b"old 0",
        b"old -1\n\n" + LOG.head(5).encode(),
        b"old 00\n\n" + LOG.head(5).encode(),
        b"\xff" * 99,
    ):
        assert httpx.post(f"{witness.url}/add-checkpoint", content=body).status_code == 400
    spaced = LOG.head(5).replace("\n5\n", "\n05\n")
    assert witness.post(spaced, old=0).status_code == 400
    assert httpx.post(f"{witness.url}/add-checkpoint", content=b"x" * 70_000).status_code == 413
    assert httpx.get(f"{witness.url}/elsewhere").status_code == 404
    assert witness.post(LOG.head(5), old=0).status_code == 200


def test_a_restart_forgets_nothing(witness: WitnessProcess) -> None:
    witness.post(LOG.head(50), old=0)
    key = witness.verifier
    witness.kill()
    witness.start()
    assert (witness.verifier, witness.standing()["size"]) == (key, 50)
    assert witness.post(FORK.head(60), old=50, proof=FORK.proof(50, 60)).status_code == 422
    assert witness.post(LOG.head(60), old=50, proof=LOG.proof(50, 60)).status_code == 200


def test_killed_at_any_moment_it_never_goes_back(tmp_path: Path) -> None:
    """What was answered is remembered by the next start; a fork of it is never cosigned."""
    choose = random.Random(7)
    with running_witness(tmp_path / "w") as witness:
        size = answered = 0
        for _ in range(12):
            killing = threading.Timer(choose.uniform(0.02, 0.2), os.kill, [witness.pid, signal.SIGKILL])
            killing.start()
            try:
                while size < 290:
                    answer = witness.post(LOG.head(size + 1), old=size, proof=LOG.proof(size, size + 1))
                    assert answer.status_code == 200, answer.text
                    size = answered = size + 1
            except httpx.HTTPError:
                pass
            killing.join()  # on a fast machine all is written before
            witness.kill()
            witness.start()
            found = witness.standing()
            assert answered <= found["size"] <= answered + 1, "the one whose answer was lost, and no other"
            assert found["root_sha256"] == (LOG.root(found["size"]).hex() if found["size"] else "")
            size = answered = found["size"]
        assert answered > 12


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_torn_last_line_never_happened(witness: WitnessProcess, cut: int) -> None:
    witness.post(LOG.head(5), old=0)
    witness.post(LOG.head(9), old=5, proof=LOG.proof(5, 9))
    witness.kill()
    os.truncate(witness.journal, witness.journal.stat().st_size - cut)
    witness.start()
    assert witness.standing()["size"] == 5
    assert witness.post(LOG.head(9), old=5, proof=LOG.proof(5, 9)).status_code == 200


def test_a_changed_journal_is_not_gone_on_with(witness: WitnessProcess) -> None:
    witness.post(LOG.head(5), old=0)
    witness.kill()
    lines = witness.journal.read_text().splitlines(keepends=True)
    for changed in (["{\n", *lines], [lines[0], lines[1].replace('"at": 1', '"at": 2').replace("\\n5\\n", "\\n6\\n")]):
        witness.journal.write_text("".join(changed))
        assert witness.run("show").returncode == 2
    witness.journal.write_text("".join(lines))
    assert witness.run("show").returncode == 0


def test_a_full_disk_is_503_and_nothing_is_half_remembered(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    with running_witness(folder) as witness:
        witness.post(LOG.head(5), old=0)
        witness.kill()
        limit = witness.journal.stat().st_size + 100
        command = [sys.executable, str(PROGRAM), "serve", "--state", str(folder), "--port", str(witness.port)]
        # RLIMIT_FSIZE stands in for the end of the disk: the write stops in the middle of the line.
        code = (
            "import os, resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); os.execv(sys.executable, {command!r})"
        )
        full = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: _answers(witness.url))
            assert witness.post(LOG.head(9), old=5, proof=LOG.proof(5, 9)).status_code == 503
            assert witness.standing()["size"] == 5
        finally:
            full.kill()
            full.wait(10)
        witness.start()
        assert witness.post(LOG.head(9), old=5, proof=LOG.proof(5, 9)).status_code == 200


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.HTTPError:
        return False


def test_one_process_at_a_time(witness: WitnessProcess) -> None:
    assert witness.run("show").returncode == 2
    assert "another process" in witness.run("add-key", "--log", LOG.verifier).stderr


def test_a_key_handed_over_by_the_old_one_is_followed_and_ends_the_old_one(witness: WitnessProcess) -> None:
    later = SmallLog(leaves(300), key=OTHER)
    witness.post(LOG.head(5), old=0)
    assert witness.post(later.head(9), old=5, proof=LOG.proof(5, 9)).status_code == 403
    for signer, status in ((OTHER, 403), (LOG.key, 200)):
        signature = signer.sign(handover_text(old=LOG.verifier, new=later.verifier, size=5))
        line = f"handover {LOG.verifier} {later.verifier} 5 {b64encode(signature).decode()}\n"
        assert httpx.post(f"{witness.url}/add-handover", content=line).status_code == status
    assert witness.post(LOG.head(7), old=5, proof=LOG.proof(5, 7)).status_code == 200, "until the new one signs"
    assert witness.post(later.head(9), old=7, proof=LOG.proof(7, 9)).status_code == 200
    assert witness.post(LOG.head(11), old=9, proof=LOG.proof(9, 11)).status_code == 403
    witness.kill()
    witness.start()
    assert witness.standing()["keys"] == [later.verifier]


def test_its_operator_adds_a_key_or_allows_a_new_beginning(witness: WitnessProcess) -> None:
    later = SmallLog(leaves(20) + leaves(280, "another "), key=OTHER)
    witness.post(LOG.head(30), old=0)
    witness.kill()
    assert witness.run("add-key", "--log", later.verifier).returncode == 0
    assert witness.run("epoch", "--origin", LOG.name, "--number", "1").returncode == 2
    assert witness.run("epoch", "--origin", LOG.name, "--number", "2").returncode == 0
    witness.start()
    assert witness.post(later.head(25), old=0).status_code == 422, "a head of the epoch that is over"
    assert witness.post(later.head(25, epoch=2), old=0).status_code == 200
    assert witness.post(LOG.head(40), old=25, proof=LOG.proof(25, 40)).status_code == 403
    found = httpx.get(f"{witness.url}/heads/{LOG.name}", params={"after": "0"}).text.splitlines()
    assert [int(json.loads(line)["checkpoint"].split("\n")[1]) for line in found] == [25, 30], "it keeps what was lost"


def test_silent_and_slow_clients_do_not_stop_it(witness: WitnessProcess) -> None:
    host = ("127.0.0.1", witness.port)
    silent = [socket.create_connection(host) for _ in range(100)]
    stop = threading.Event()

    def drip() -> None:
        lines = [socket.create_connection(host) for _ in range(60)]
        while not stop.wait(0.1):
            for line in lines:
                with suppress(OSError):
                    line.send(b"P")
        for line in lines:
            line.close()

    slow = threading.Thread(target=drip)
    slow.start()
    try:
        began = time.monotonic()
        old = 0
        for size in range(1, 21):
            answer = witness.post(LOG.head(size), old=old, proof=LOG.proof(old, size))
            assert answer.status_code == 200
            old = size
        assert time.monotonic() - began < 10
        threads = len(os.listdir(f"/proc/{witness.pid}/task"))
        assert threads < 40
    finally:
        stop.set()
        slow.join(10)
        for one in silent:
            one.close()


def test_a_client_that_sends_now_and_then_is_ended_by_the_deadline(witness: WitnessProcess) -> None:
    with socket.create_connection(("127.0.0.1", witness.port)) as line:
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 20:
                line.send(b"G")
                time.sleep(0.5)
        assert 8 < time.monotonic() - began < 15


@pytest.mark.unit
@given(st.integers(1, 300), st.integers(1, 300))
def test_our_proofs_are_accepted_between_any_two_sizes(one: int, other: int) -> None:
    old, new = sorted((one, other))
    proof = LOG.proof(old, new)
    assert tree_continues(old=old, new=new, old_root=LOG.root(old), new_root=LOG.root(new), proof=proof)


@pytest.mark.unit
@given(st.integers(1, 299), st.integers(1, 300), st.data())
def test_any_changed_byte_of_a_proof_or_a_root_is_refused(one: int, other: int, data: st.DataObject) -> None:
    old, new = min(one, other), max(one, other + (one == other))
    parts = [LOG.root(old), LOG.root(new), *LOG.proof(old, new)]
    which, place = data.draw(st.integers(0, len(parts) - 1)), data.draw(st.integers(0, 31))
    bent = bytearray(parts[which])
    bent[place] ^= data.draw(st.integers(1, 255))
    parts[which] = bytes(bent)
    old_root, new_root, *proof = parts
    assert not tree_continues(old=old, new=new, old_root=old_root, new_root=new_root, proof=proof)


@pytest.mark.unit
@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from(["less", "more", "swapped", "fork"]))
def test_a_proof_with_other_parts_or_of_another_tree_is_refused(one: int, other: int, what: str) -> None:
    old, new = sorted((one, other))
    proof = LOG.proof(old, new)
    new_root = LOG.root(new)
    if what == "less" and proof:
        proof = proof[:-1]
    elif what == "swapped" and len(proof) > 1:
        proof = [*proof[1:], proof[0]]
    elif what == "fork" and new > 20:
        new_root = FORK.root(new)
        proof = FORK.proof(old, new)
        if old <= 20:
            return
    else:
        proof = [*proof, bytes(32)]
    assert not tree_continues(old=old, new=new, old_root=LOG.root(old), new_root=new_root, proof=proof)


@pytest.mark.unit
def test_a_key_of_a_log_is_not_taken_for_that_of_a_witness() -> None:
    with pytest.raises(CheckpointInvalid):
        cosigner_key_read(LOG.verifier)
