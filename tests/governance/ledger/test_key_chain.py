"""The sealing key changes, and its history with it: who may seal, who follows whom, and what is refused."""

import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.sealing.errors import KeyChangeRefused
from governance.sealing.models import LedgerCheckpoint, LedgerKeyHandover, LedgerLeaf
from governance.sealing.rules.handover import Handover, HandoverInvalid, handover_read, handover_text, handover_verify
from governance.sealing.rules.merkle.checkpoint import checkpoint_read, checkpoint_signed, public_bytes
from governance.sealing.rules.signing import SealingKey
from governance.sealing.services.key_change import key_hand_over
from governance.sealing.services.seal import KeyNotNamed, ledger_seal_all
from governance.sealing.tasks import ledger_seal_task
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import ScopeMissing
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.ledger.record import append, head, sealed, tampered, verify
from tests.governance.ledger.sealing import KEY, hand_over, seal_all, settled

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]
SEED = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@pytest.fixture(autouse=True)
def everything(settings: Any) -> Iterator[None]:
    settings.LEDGER_NAME, settings.LEDGER_KEY = KEY.name, SEED
    with every_tenant():
        yield


def fresh_key() -> SealingKey:
    return SealingKey(KEY.name, Ed25519PrivateKey.generate())


def change(new: SealingKey, **how: Any) -> LedgerKeyHandover:
    return key_hand_over(
        actor=SYSTEM, at=timezone.now(), new_verifier=new.verifier, **({"old": KEY, "installation": True} | how)
    )


@contextmanager
def refused(words: str) -> Iterator[None]:
    with pytest.raises(KeyChangeRefused) as found:
        yield
    assert words in found.value.detail


def elsewhere(old: SealingKey, new: SealingKey, *, size: int) -> Handover:
    """Signed at another machine."""
    text = handover_text(old=old.verifier, new=new.verifier, size=size)
    return Handover(old.verifier, new.verifier, size, old.sign_text(text))


# -- who may seal --
def test_a_key_that_nobody_named_seals_nothing_and_nothing_is_lost(settings: Any) -> None:
    size = sealed(3)
    waiting = append(2)
    settings.LEDGER_KEY = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqo="
    settled()
    with pytest.raises(KeyNotNamed):
        ledger_seal_all(at=timezone.now(), key=fresh_key())
    ledger_seal_task()
    assert head().size == size
    note = Client().get("/health/ready").json()["checks"]["sealer"]
    assert "not the one that the record names" in str(note)
    settings.LEDGER_KEY = SEED
    seal_all()
    ledger_seal_task()
    assert LedgerLeaf.objects.filter(entry__in=waiting).count() == 2
    assert "note" not in Client().get("/health/ready").json()["checks"]["sealer"]
    assert verify()["valid"]


def test_the_old_key_seals_until_the_first_head_of_the_new_one_and_never_after() -> None:
    sealed(2)
    new = fresh_key()
    change(new)
    append()
    seal_all(KEY)  # a worker that was not restarted yet
    append()
    seal_all(new)
    append()
    settled()
    with pytest.raises(KeyNotNamed):
        ledger_seal_all(at=timezone.now(), key=KEY)
    seal_all(new)
    assert verify()["valid"], "sealing went on all the time"
    actions = LedgerEntry.objects.filter(subject_type="ledger_key").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["ledger.key_adopted", "ledger.key_handed_over", "ledger.key_adopted"]


def test_three_keys_in_a_row_and_one_that_comes_back_verify() -> None:
    sealed(2)
    second, third = fresh_key(), fresh_key()
    for old, new in ((KEY, second), (second, third), (third, KEY)):
        hand_over(old, new)
        seal_all(new)
    assert verify()["valid"]
    assert verify()["notes"] == []


# -- who names whom --
def test_only_an_administrator_with_the_key_that_signs_now_names_another() -> None:
    sealed(2)
    new = fresh_key()
    with pytest.raises(ScopeMissing):
        change(new, installation=False)
    with refused("did not sign the newest head"):
        change(new, old=fresh_key())
    with refused("signs already"):
        change(KEY)
    with refused("another ledger"):
        change(SealingKey("somebody.else/ledger", Ed25519PrivateKey.generate()))
    assert not LedgerKeyHandover.objects.exists()
    change(new)
    with refused("named already"):
        change(fresh_key())
    lost, better = new, fresh_key()
    change(better, instead=True)
    settled()
    with pytest.raises(KeyNotNamed):
        ledger_seal_all(at=timezone.now(), key=lost)
    seal_all(better)
    assert verify()["valid"]


def test_of_two_rotations_at_once_one_is_refused() -> None:
    sealed(2)
    results: list[str] = []
    together = threading.Barrier(2)

    def work() -> None:
        with every_tenant():
            together.wait(10)
            try:
                results.append(change(fresh_key()).new_key)
            except KeyChangeRefused:
                results.append("refused")
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results.count("refused") == 1
    assert LedgerKeyHandover.objects.count() == 1


def test_a_handover_that_was_signed_elsewhere_counts_if_it_fits() -> None:
    size = sealed(2)
    new, stranger = fresh_key(), fresh_key()
    for wrong in (
        elsewhere(stranger, new, size=size),
        elsewhere(KEY, stranger, size=size),
        elsewhere(KEY, new, size=size + 100),
        Handover(KEY.verifier, new.verifier, size, stranger.sign_text(b"something else")),
    ):
        with pytest.raises(KeyChangeRefused):
            change(new, old=None, handover=wrong)
    change(new, old=None, handover=handover_read(elsewhere(KEY, new, size=size).line))
    seal_all(new)
    assert verify()["valid"]


def test_a_lost_key_is_replaced_without_its_signature_and_every_check_says_so() -> None:
    sealed(2)
    new = fresh_key()
    change(new, old=None)
    seal_all(new)
    found = verify()
    assert found["valid"]
    assert any("not signed by the old key" in note for note in found["notes"])


# -- what the check finds --
def test_a_head_of_a_key_outside_the_chain_is_named() -> None:
    """Somebody with the owner's rights and a key of their own signs the newest head again."""
    sealed(3, 2)
    stranger, newest = fresh_key(), head()
    body, _, _ = newest.text.rpartition("\n\n")
    signature = stranger.sign_text((body + "\n").encode())
    text = checkpoint_signed(checkpoint_read(newest.text)[0], name=KEY.name, key=stranger.public, signature=signature)
    tampered(
        (
            "INSERT INTO governance_ledgerkey (id, name, public_key, first_used_at) VALUES (%s, %s, %s, now())",
            [stranger.id, stranger.name, public_bytes(stranger.public)],
        ),
        (
            "UPDATE governance_ledgercheckpoint SET text = %s, key_id = %s WHERE size = %s",
            [text, stranger.id, newest.size],
        ),
    )
    assert any(f"does not name the key {stranger.id} in place of {KEY.id}" in text for text in verify()["wrong"])


def test_a_head_whose_row_names_another_key_than_signed_it_is_named() -> None:
    sealed(2)
    new = fresh_key()
    hand_over(KEY, new)
    seal_all(new)
    tampered(("UPDATE governance_ledgercheckpoint SET key_id = %s WHERE size = %s", [KEY.id, head().size]))
    assert not verify()["valid"]


@pytest.mark.parametrize(
    ("what", "word"),
    [
        ("UPDATE governance_ledgerkeyhandover SET signature = sha512('forged')", "did not sign it"),
        ("UPDATE governance_ledgerkeyhandover SET signature = ''", "not in the ledger"),
        ("UPDATE governance_ledgerkeyhandover SET size = size + 1", "did not sign it"),
    ],
)
def test_a_changed_handover_is_named(what: str, word: str) -> None:
    sealed(2)
    new = fresh_key()
    change(new)
    seal_all(new)
    tampered((what, []))
    assert any(word in text for text in verify()["wrong"])


def test_an_altered_handover_line_is_not_one() -> None:
    new = fresh_key()
    good = elsewhere(KEY, new, size=7)
    assert handover_verify(handover_read(good.line)) == (KEY.id, new.id)
    for bad in (
        good.line.replace(" 7 ", " 8 "),
        good.line.replace(" 7 ", " 07 "),
        good.line + " more",
        good.line.replace("handover", "handed"),
        good.line.replace(new.verifier, fresh_key().verifier),
        "",
    ):
        with pytest.raises(HandoverInvalid):
            handover_verify(handover_read(bad))


# -- the doors --
def rotate(*options: str) -> str:
    out = StringIO()
    call_command("rotate_ledger_key", *options, stdout=out)
    return out.getvalue()


def test_the_command_changes_nothing_until_the_id_of_the_new_key_is_given(tmp_path: Path) -> None:
    sealed(2)
    file = tmp_path / "next.key"
    with pytest.raises(CommandError, match="Not confirmed") as refusal:
        rotate("--new-key-file", str(file))
    assert not LedgerKeyHandover.objects.exists()
    assert file.stat().st_mode & 0o777 == 0o600
    new = SealingKey(KEY.name, Ed25519PrivateKey.from_private_bytes(b64decode(file.read_text())))
    assert new.id in str(refusal.value)
    assert new.verifier in rotate("--new-key-file", str(file), "--confirm", new.id)
    seal_all(new)
    assert verify()["valid"]


def test_the_command_takes_a_public_half_and_a_line_from_elsewhere_or_says_that_the_key_is_lost() -> None:
    size = sealed(2)
    new, other = fresh_key(), fresh_key()
    line = elsewhere(KEY, new, size=size).line
    rotate("--new-public-key", new.verifier, "--handover", line, "--confirm", new.id)
    seal_all(new)
    with pytest.raises(CommandError, match="did not sign the newest head"):
        rotate("--new-public-key", other.verifier, "--confirm", other.id)
    rotate("--new-public-key", other.verifier, "--old-key-lost", "--confirm", other.id)
    seal_all(other)
    assert verify()["valid"]


def test_the_history_of_keys_is_shown_to_readers_of_the_ledger_and_in_the_console(cast: Cast) -> None:
    sealed(2)
    new, upcoming = fresh_key(), fresh_key()
    hand_over(KEY, new)
    seal_all(new)
    change(upcoming, old=new)
    rows = cast.api("ledger:read").get("/api/v1/ledger/public-key").json()["keys"]
    assert [(row["key_id"], row["state"], row["replaces"]) for row in rows] == [
        (KEY.id, "former", ""),
        (new.id, "current", KEY.id),
        (upcoming.id, "next", new.id),
    ]
    assert handover_verify(handover_read(rows[1]["handover"])) == (KEY.id, new.id)
    assert (rows[0]["handover"], rows[2]["first_tree_size"]) == ("", None)
    assert cast.api("attempts:create").get("/api/v1/ledger/public-key").status_code == 403
    page = cast.console(cast.auditor).get("/admin/governance/witnessreceipt/").content.decode()
    for key in (KEY, new, upcoming):
        assert key.id in page


def test_heads_are_never_stored_with_a_signature_that_does_not_fit() -> None:
    class Broken:
        def public_key(self) -> Any:
            return KEY.public

        def sign(self, data: bytes, /) -> bytes:
            return bytes(64)

    size = sealed(2)
    append()
    settled()
    with pytest.raises(RuntimeError, match="wrong_signature"):
        ledger_seal_all(at=timezone.now(), key=SealingKey(KEY.name, Broken()))
    assert LedgerCheckpoint.objects.order_by("-size").values_list("size", flat=True).first() == size
