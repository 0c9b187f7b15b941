"""Signing outside of the process: a signer over a socket that signs no fork, and a hardware module (SoftHSM2). When
either is away, sealing lags and nothing is lost."""

import json
import os
import shutil
import signal
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import transaction
from django.test import Client
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.sealing.configured import known_keys, sealing_key, signer_from
from governance.sealing.models import LedgerCheckpoint, LedgerLeaf
from governance.sealing.rules.handover import handover_read
from governance.sealing.rules.signing import SealingKey, SignerFailed
from governance.sealing.services.epoch import epoch_begin
from governance.sealing.services.key_change import key_hand_over
from governance.sealing.services.seal import ledger_seal, ledger_seal_all
from governance.sealing.tasks import ledger_seal_task
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.governance.ledger.record import append, head, tampered, verify
from tests.governance.ledger.sealing import KEY, hand_over, seal_all, settled
from tests.governance.ledger.signers import SignerProcess, running_signer, token_make
from tests.governance.ledger.test_tamper import cut

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]


@pytest.fixture(autouse=True)
def everything() -> Iterator[None]:
    with every_tenant():
        yield
    signer_from.cache_clear()


@pytest.fixture
def signer(tmp_path: Path) -> Iterator[SignerProcess]:
    with running_signer(tmp_path / "signer") as found:
        yield found


def sealed_by(key: SealingKey, *batches: int) -> int:
    for count in batches:
        append(count)
        seal_all(key)
    return head().size


def refusal(key: SealingKey) -> str:
    settled()
    with pytest.raises(SignerFailed) as found:
        ledger_seal_all(at=timezone.now(), key=key)
    return found.value.code


# -- over a socket --
def test_a_signer_in_a_process_of_its_own_seals_batch_after_batch(signer: SignerProcess) -> None:
    sealed_by(signer.key, 1, 5, 16, 3, 1)
    assert verify()["valid"]
    assert {KEY.id} == set(LedgerCheckpoint.objects.values_list("key_id", flat=True))


def test_while_the_signer_is_away_sealing_lags_readiness_says_so_and_nothing_is_lost(
    signer: SignerProcess, settings: Any
) -> None:
    settings.LEDGER_NAME, settings.LEDGER_KEY = KEY.name, ""
    settings.LEDGER_SIGNER = f"unix:{signer.socket}"
    size = sealed_by(sealing_key(), 3)
    signer.kill()
    waiting = append(4)
    settled()
    ledger_seal_task()
    assert head().size == size
    assert "the signer is away" in Client().get("/health/ready").json()["checks"]["sealer"]["note"]
    settings.SEALER_LAG_LIMIT_SECONDS = -1
    ready = Client().get("/health/ready")
    assert (ready.status_code, "the signer is away" in ready.json()["checks"]["sealer"]["detail"]) == (503, True)
    signer.start()
    seal_all(sealing_key())
    ledger_seal_task()
    assert LedgerLeaf.objects.filter(entry__in=waiting).count() == 4
    settings.SEALER_LAG_LIMIT_SECONDS = 60
    assert "note" not in Client().get("/health/ready").json()["checks"]["sealer"]
    assert verify()["valid"]


def test_a_signature_that_was_lost_before_the_commit_does_no_harm(signer: SignerProcess) -> None:
    """The sealer dies after the signer has signed: the next head continues the one that was never stored."""
    size = sealed_by(signer.key, 3)
    append(5)
    with transaction.atomic():
        while ledger_seal(at=timezone.now(), key=signer.key) is None:
            pass
        transaction.set_rollback(True)
    assert head().size == size
    sealed_by(signer.key, 2)
    assert head().size == LedgerEntry.objects.count()
    assert verify()["valid"]


def test_a_signer_that_was_killed_remembers_what_it_signed(signer: SignerProcess) -> None:
    sealed_by(signer.key, 3, 4)
    signer.kill()
    signer.start()
    sealed_by(signer.key, 2)
    assert verify()["valid"]


def test_a_fork_is_not_signed_whoever_asks(signer: SignerProcess) -> None:
    """Somebody with the owner's rights and every secret of the web process removes the tail and goes on differently."""
    size = sealed_by(signer.key, 4, 5)
    smaller = LedgerCheckpoint.objects.order_by("size").values_list("size", flat=True).first()
    assert smaller
    tampered(*cut(smaller))
    append(1)
    assert refusal(signer.key) == "signer_refused_shorter"
    append(size)
    assert refusal(signer.key) == "signer_refused_a_fork"
    assert head().size == smaller, "no head was stored"


def test_after_a_restore_a_person_allows_one_new_beginning_at_the_signer(signer: SignerProcess) -> None:
    sealed_by(signer.key, 4, 3, 5)
    smaller = LedgerCheckpoint.objects.order_by("size").values_list("size", flat=True)[1]
    tampered(*cut(smaller))
    epoch_begin(actor=SYSTEM, at=timezone.now(), reason_code="restored_backup", note="restored", installation=True)
    append(20)
    assert refusal(signer.key) == "signer_refused_a_fork", "the database alone cannot say so"
    busy = signer.run("epoch", "--number", "2")
    assert (busy.returncode, "stop it first" in busy.stderr) == (2, True)
    signer.kill()
    assert signer.run("epoch", "--number", "1").returncode == 2
    assert signer.run("epoch", "--number", "2").returncode == 0
    signer.start()
    sealed_by(signer.key, 1, 2)
    assert verify()["valid"]


def asked(signer: SignerProcess, what: Any) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        line.connect(str(signer.socket))
        line.sendall((what if isinstance(what, bytes) else json.dumps(what).encode()) + b"\n")
        return dict(json.loads(line.makefile("rb").readline()))


def test_the_signer_signs_nothing_but_heads_of_its_ledger(signer: SignerProcess) -> None:
    sealed_by(signer.key, 3)
    before = (signer.folder / "state").read_bytes()
    root = b64encode(bytes(32)).decode()
    bodies = [
        "",
        "any text",
        f"{KEY.name}\n9\n{root}\nmore\n",
        f"{KEY.name}\n9\n{root}\nepoch 1\n",
        f"{KEY.name}\n9\n{root}\nepoch 2\nepoch 3\n",
        f"{KEY.name}\n09\n{root}\n",
        f"{KEY.name}\n-9\n{root}\n",
        f"{KEY.name}\n9\n{root[:-1]}\n",
        f"{KEY.name}\n9\n{root}",
        f"{KEY.name}\n9999\n{root}\n",
        f"{KEY.name}\n9999\n{root}\nepoch 7\n",
        f"somebody.else/ledger\n9999\n{root}\n",
        f"holdpoint-key-handover-v1\n{KEY.verifier}\n{KEY.verifier}\n3\n",
    ]
    for body in bodies:
        assert "refused" in asked(signer, {"do": "sign", "body": body, "from": 0, "proof": []}), body
    for nonsense in (b"", b"[]", b"null", b'{"do": "sign"}', b'{"do": "export"}', b"\xff\xfe", b"[" * 5000):
        assert "refused" in asked(signer, nonsense), nonsense
    assert (signer.folder / "state").read_bytes() == before
    sealed_by(signer.key, 2)
    assert verify()["valid"]


def test_a_caller_that_says_nothing_does_not_stop_the_others(signer: SignerProcess) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(signer.socket))
        silent.close()
    sealed_by(signer.key, 1)
    assert signer.socket.stat().st_mode & 0o007 == 0, "not for every account"


def test_the_signer_does_not_begin_without_its_memory_nor_twice(signer: SignerProcess, tmp_path: Path) -> None:
    sealed_by(signer.key, 2)
    twin = signer.run("serve", "--key-file", str(signer.folder / "key"), "--socket", str(tmp_path / "t"))
    assert (twin.returncode, "another signer" in twin.stderr) == (2, True)
    signer.kill()
    (signer.folder / "state").unlink()
    lost = signer.run("serve", "--key-file", str(signer.folder / "key"), "--socket", str(signer.socket))
    assert (lost.returncode, "begin --head" in lost.stderr) == (2, True)
    newest = tmp_path / "head.txt"
    newest.write_text(head().text)
    assert signer.run("begin", "--head", str(newest), "--key-file", str(signer.folder / "key")).returncode == 0
    signer.start()
    sealed_by(signer.key, 3)
    os.chmod(signer.folder / "key", 0o644)
    signer.kill()
    open_key = signer.run("serve", "--key-file", str(signer.folder / "key"), "--socket", str(signer.socket))
    assert "chmod 600" in open_key.stderr
    assert verify()["valid"]


def test_the_signers_key_is_handed_over_at_the_signer(signer: SignerProcess) -> None:
    size = sealed_by(signer.key, 2)
    new = SealingKey(KEY.name, Ed25519PrivateKey.generate())
    with pytest.raises(SignerFailed, match="signs_heads_only"):
        hand_over(signer.key, new)
    options = ("--key-file", str(signer.folder / "key"), "--new-public-key", new.verifier, "--size", str(size))
    line = signer.run("handover", *options).stdout
    key_hand_over(
        actor=SYSTEM,
        at=timezone.now(),
        new_verifier=new.verifier,
        handover=handover_read(line),
        installation=True,
    )
    seal_all(new)
    assert verify()["valid"]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"not json\n",
        b"[]\n",
        b"{}\n",
        b'{"public_key": "AAAA", "size": 0, "name": "x"}\n',
        b'{"refused": "<b>words of a stranger</b>"}\n',
    ],
)
def test_what_another_program_answers_on_the_socket_is_refused(tmp_path: Path, answer: bytes) -> None:
    append()
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def work() -> None:
            line, _ = server.accept()
            with line:
                line.recv(1000)
                line.sendall(answer)

        thread = threading.Thread(target=work)
        thread.start()
        code = refusal(SealingKey(KEY.name, signer_from(f"unix:{path}", name=KEY.name)))
        thread.join(5)
    assert code in {"signer_malformed", "signer_refused", "signer_of_another_ledger", "signer_away"}
    assert not LedgerCheckpoint.objects.exists()


# -- in a hardware module --
def test_a_key_inside_a_hardware_module_seals_and_takes_over_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    token = SealingKey(KEY.name, token_make(tmp_path, monkeypatch))
    sealed_by(KEY, 3)
    hand_over(KEY, token)
    sealed_by(token, 2, 5)
    assert verify()["valid"]
    back = SealingKey(KEY.name, Ed25519PrivateKey.generate())
    hand_over(token, back)  # a module signs handovers too
    sealed_by(back, 1)
    assert verify()["valid"]
    pin = tmp_path / "pin"
    pin.write_text("1234\n")
    settings.LEDGER_NAME = KEY.name
    module = token.signer._module  # type: ignore[union-attr]
    settings.LEDGER_SIGNER = f"pkcs11:token=holdpoint;object=ledger?module-path={module}&pin-source=file:{pin}"
    assert sealing_key().id == token.id
    assert [key.public_bytes_raw() for _, key in known_keys()] == [token.public.public_bytes_raw()]


def test_while_the_hardware_module_is_away_nothing_is_sealed_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = SealingKey(KEY.name, token_make(tmp_path, monkeypatch))
    size = sealed_by(token, 2)
    append(3)
    shutil.move(tmp_path / "tokens", tmp_path / "pulled out")
    (tmp_path / "tokens").mkdir()
    token.signer.stop()  # type: ignore[union-attr]  # as after the restart of a worker
    assert refusal(token).startswith("token_")
    assert head().size == size
    (tmp_path / "tokens").rmdir()
    shutil.move(tmp_path / "pulled out", tmp_path / "tokens")
    seal_all(token)
    assert verify()["valid"]


def test_a_forked_worker_signs_with_the_module_that_its_parent_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_make(tmp_path, monkeypatch)
    token.public_key().verify(token.sign(b"parent"), b"parent")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, token.sign(b"child"))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        signature = stream.read()
    os.waitpid(child, 0)
    token.public_key().verify(signature, b"child")
    token.public_key().verify(token.sign(b"parent again"), b"parent again")


def test_a_module_that_hangs_delays_sealing_for_seconds_and_readiness_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Its process is stopped, as a call into the library that never returns stops it. Without the limit the sealing
    task would wait for ever, and this test with it."""
    module = token_make(tmp_path, monkeypatch)._module
    settings.LEDGER_NAME, settings.LEDGER_KEY = KEY.name, ""
    settings.LEDGER_SIGNER = f"pkcs11:token=holdpoint;object=ledger?module-path={module}&pin-value=1234"
    size = sealed_by(sealing_key(), 2)
    signer: Any = sealing_key().signer
    waiting, hung = append(3), signer._running()
    os.kill(hung.pid, signal.SIGSTOP)
    monkeypatch.setattr(signer, "_seconds", 0.5)
    settled()
    begin = time.monotonic()
    ledger_seal_task()
    assert time.monotonic() - begin < 5
    assert (head().size, hung.poll()) == (size, -signal.SIGKILL)
    assert "the hardware module does not answer" in Client().get("/health/ready").json()["checks"]["sealer"]["note"]
    monkeypatch.setattr(signer, "_seconds", 30)  # the next second tries again, with a new process
    seal_all(sealing_key())
    ledger_seal_task()
    assert LedgerLeaf.objects.filter(entry__in=waiting).count() == 3
    assert "note" not in Client().get("/health/ready").json()["checks"]["sealer"]
    assert verify()["valid"]


def test_a_module_whose_library_crashes_takes_no_worker_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = token_make(tmp_path, monkeypatch)
    signer.public_key()
    os.kill(signer._running().pid, signal.SIGSEGV)
    signer._running().wait(10)
    with pytest.raises(SignerFailed, match="token_away"):
        signer.sign(b"head")
    signer.public_key().verify(signer.sign(b"head"), b"head")


@pytest.mark.parametrize("wrong", [{"pin": "9999"}, {"token": "nobody"}, {"label": "nothing"}])
def test_a_module_that_is_asked_wrongly_is_a_stop_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]
) -> None:
    good = token_make(tmp_path, monkeypatch)
    facts = {"module": good._module, "token": "holdpoint", "label": "ledger", "pin": "1234"} | wrong
    append()
    code = refusal(SealingKey(KEY.name, type(good)(**facts)))
    assert code.startswith("token_")
    assert "9999" not in code
    assert not LedgerCheckpoint.objects.exists()


def test_a_clock_that_jumps_back_changes_nothing_about_the_chain(signer: SignerProcess) -> None:
    sealed_by(signer.key, 2)
    append(2)
    settled()
    assert ledger_seal_all(at=timezone.now() - timedelta(days=400), key=signer.key) == 2
    sealed_by(signer.key, 1)
    assert verify()["valid"]


def test_a_signer_that_got_its_next_key_meanwhile_is_followed_without_a_wrong_head(tmp_path: Path) -> None:
    """The worker remembers the signer's public key; the signer is restarted with the one that was named."""
    with running_signer(tmp_path / "signer") as signer:
        key = signer.key
        size = sealed_by(key, 2)
        new = SealingKey(KEY.name, Ed25519PrivateKey.from_private_bytes(bytes(range(7, 39))))
        options = ("--key-file", str(signer.folder / "key"), "--new-public-key", new.verifier, "--size", str(size))
        line = handover_read(signer.run("handover", *options).stdout)
        key_hand_over(actor=SYSTEM, at=timezone.now(), new_verifier=new.verifier, handover=line, installation=True)
        signer.kill()
        (signer.folder / "key").write_text(b64encode(bytes(range(7, 39))).decode())
        signer.start()
        append()
        assert refusal(key) == "wrong_signature"
        seal_all(key)
        assert head().key_id == new.id
        assert verify()["valid"]
