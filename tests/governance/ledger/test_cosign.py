"""Holdpoint and witnesses that cosign: real processes, real HTTP. Each head is cosigned, enough of them count, and what
the owner of the tables cuts off is found."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils import timezone

from config.heartbeat import heartbeat_beat
from config.metrics import render_metrics
from governance.sealing.configured import (
    cosigners_configured,
    witness_digests,
    witness_from,
    witness_quorum,
    witnesses_configured,
)
from governance.sealing.models import LedgerCheckpoint, WitnessReceipt
from governance.sealing.rules.signing import SealingKey
from governance.sealing.selectors.cosignatures import Quorum, cosignatures_of, quorum_standing
from governance.sealing.selectors.witnesses import ledger_denial
from governance.sealing.services.witnesses import Pushed, witness_push
from governance.sealing.tasks import ledger_check_task, witnesses_push_task
from sdk import holdpoint_verify as verifier
from tests.cast import Cast
from tests.governance.evidence.support import allowed, build, request, stored
from tests.governance.ledger.cosigner import WitnessProcess, running_witness
from tests.governance.ledger.record import head, sealed, tampered, verify
from tests.governance.ledger.sealing import KEY, hand_over, seal_all
from tests.governance.ledger.test_deny_mode import SEED
from tests.governance.ledger.test_tamper import cut

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]


def use(settings: Any, *witnesses: WitnessProcess, quorum: int = 1) -> None:
    settings.LEDGER_NAME, settings.LEDGER_KEY = KEY.name, SEED
    settings.LEDGER_WITNESSES = json.dumps([one.entry for one in witnesses])
    settings.WITNESS_QUORUM = quorum


@pytest.fixture
def witness(tmp_path: Path, settings: Any) -> Iterator[WitnessProcess]:
    with running_witness(tmp_path / "w1") as found:
        use(settings, found)
        yield found


def push() -> list[Pushed]:
    return [witness_push(at=timezone.now(), witness=one) for one in witnesses_configured()]


def standing() -> Quorum:
    found = quorum_standing(cosigners=cosigners_configured(), wanted=witness_quorum())
    assert found is not None
    return found


def all_cosigned() -> dict[int, list[tuple[str, str]]]:
    return cosignatures_of(heads=list(LedgerCheckpoint.objects.all()), cosigners=cosigners_configured())


def test_every_head_is_cosigned_in_order_and_the_record_verifies(witness: WitnessProcess, cast: Cast) -> None:
    sealed(3, 2, 4)
    witnesses_push_task()
    count = LedgerCheckpoint.objects.count()
    assert {size: [name for name, _ in found] for size, found in all_cosigned().items()} == {
        size: ["w1"] for size in LedgerCheckpoint.objects.values_list("size", flat=True)
    }
    found = verify("--witnesses")
    assert found["valid"], found["wrong"]
    assert (found["witnesses"][0]["heads"], found["witnesses"][0]["cosigned"]) == (count, count)
    assert (standing().size, standing().since) == (head().size, None)
    reader = cast.api("ledger:read")
    shown = reader.get("/api/v1/ledger/checkpoints").json()
    newest = next(row for row in shown["results"] if row["size"] == head().size)
    assert newest["cosignatures"] == [{"witness": "w1", "line": all_cosigned()[head().size][0][1]}]
    told = reader.get("/api/v1/ledger/witnesses").json()
    assert (told["quorum"]["wanted"], told["quorum"]["alarm"], told["witnesses"][0]["cosigns"]) == (1, False, True)


def test_answers_that_were_lost_are_fetched_again(witness: WitnessProcess) -> None:
    """Receipts are gone, as after a crash or a restore, and the witness is far ahead of them."""
    sealed(1, 1, 1)
    assert push()[0].failed == ""
    tampered(
        "ALTER TABLE governance_witnessreceipt DISABLE TRIGGER USER",
        "DELETE FROM governance_witnessreceipt",
        "ALTER TABLE governance_witnessreceipt ENABLE ALWAYS TRIGGER append_only_rows",
        "ALTER TABLE governance_witnessreceipt ENABLE ALWAYS TRIGGER append_only_table",
    )
    assert all_cosigned() == {}
    assert push()[0].failed == ""
    assert len(all_cosigned()) == LedgerCheckpoint.objects.count()


def test_a_restarted_witness_goes_on(witness: WitnessProcess) -> None:
    sealed(2)
    push()
    witness.kill()
    sealed(2)
    assert push()[0].failed == "http_ConnectError"
    witness.start()
    later = timezone.now() + timedelta(minutes=1)
    assert witness_push(at=later, witness=witnesses_configured()[0]).failed == ""
    assert len(all_cosigned()) == LedgerCheckpoint.objects.count()


def test_a_handover_of_the_sealing_key_is_told_to_the_witness(witness: WitnessProcess) -> None:
    sealed(2)
    push()
    keys = [SealingKey(KEY.name, Ed25519PrivateKey.generate()) for _ in range(2)]
    for old, new in ((KEY, keys[0]), (keys[0], keys[1]), (keys[1], KEY)):
        hand_over(old, new)
        seal_all(new)
        assert push()[0].failed == ""
        assert witness.standing()["keys"] == [new.verifier], "no earlier key counts any more"
    assert len(all_cosigned()) == LedgerCheckpoint.objects.count()


def test_what_the_owner_cuts_off_is_found_by_the_witness_and_stops_everything(witness: WitnessProcess) -> None:
    size = sealed(4)
    sealed(3, 2)
    witnesses_push_task()
    tampered(*cut(size))
    assert verify()["valid"], "the log alone does not notice"
    ledger_check_task()
    assert ledger_denial() is not None
    assert not verify("--witnesses")["valid"]


def test_a_second_history_is_refused_by_the_witness_itself(witness: WitnessProcess) -> None:
    size = sealed(4)
    sealed(2)
    push()
    tampered(*cut(size))
    sealed(5)
    assert push()[0].failed == "cosign_422"
    assert WitnessReceipt.objects.order_by("-id")[0].result == "refused"


def test_two_of_three_are_enough_with_one_away_and_one_is_not(tmp_path: Path, settings: Any, cast: Cast) -> None:
    with ExitStack() as stack:
        three = [
            stack.enter_context(running_witness(tmp_path / name, name=f"witness.test/{name}"))
            for name in ("a", "b", "c")
        ]
        use(settings, *three, quorum=2)
        sealed(2)
        push()
        three[0].kill()
        sealed(2)
        push()
        assert (standing().size, standing().since) == (head().size, None)
        three[1].kill()
        old = head().size
        sealed(2)
        push()
        assert (standing().size, standing().known) == (old, 3)
        assert standing().missing(at=timezone.now() + timedelta(seconds=301), seconds=300)
        assert not standing().missing(at=timezone.now(), seconds=300)
        settings.WITNESS_LIMIT_SECONDS = -1
        heartbeat_beat(at=timezone.now())
        note = Client().get("/health/ready").json()["checks"]["witnesses"]["note"]
        assert f"fewer than 2 of 3 witnesses cosigned heads beyond {old} entries" in note
        assert b"holdpoint_witness_quorum_behind_seconds" in render_metrics()
        page = cast.console(cast.auditor).get("/admin/governance/witnessreceipt/").content.decode()
        assert "too few cosignatures" in page


def test_a_cosignature_that_its_key_did_not_make_counts_for_nothing(witness: WitnessProcess) -> None:
    sealed(2)
    push()
    line = all_cosigned()[head().size][0][1]
    middle = len(line) // 2
    bent = line[:middle] + ("A" if line[middle] != "A" else "B") + line[middle + 1 :]
    tampered(
        "ALTER TABLE governance_witnessreceipt DISABLE TRIGGER USER",
        ("UPDATE governance_witnessreceipt SET cosignature = %s WHERE size = %s", [bent, head().size]),
        "ALTER TABLE governance_witnessreceipt ENABLE ALWAYS TRIGGER append_only_rows",
        "ALTER TABLE governance_witnessreceipt ENABLE ALWAYS TRIGGER append_only_table",
    )
    assert head().size not in all_cosigned()
    assert standing().size == 0
    assert any("is not of its key" in one for one in verify("--witnesses")["wrong"])


def test_an_answer_of_another_key_than_the_pinned_one_is_refused(tmp_path: Path, witness: WitnessProcess) -> None:
    with running_witness(tmp_path / "other", name=witness.name) as other:
        wrong = witness_from(**(witness.entry | {"verifier_key": other.verifier}))
        sealed(2)
        assert witness_push(at=timezone.now(), witness=wrong).failed == "cosignature_of_another_key"
        assert not WitnessReceipt.objects.exclude(cosignature="").exists()


def test_a_bundle_carries_the_cosignatures_and_verifies_offline(witness: WitnessProcess, cast: Cast) -> None:
    bundle = request(cast, allowed(cast))
    build(bundle.id)
    seal_all()
    waiting = build(bundle.id)
    assert (waiting.state, waiting.progress) == ("building", "waiting for the witnesses")
    push()
    data = stored(build(bundle.id))
    report = verifier.verify(data, public_key=KEY.verifier, witness_key=witness.verifier)
    assert (report.faults, report.cosigned_by, report.witnesses_known) == ([], [witness.name], 1)
    assert "cosignatures: the head is cosigned by 1 of 1 known witness" in report.checked
    files = verifier.zip_read(data)[0]
    text = files[verifier.CHECKPOINT].decode()
    own, cosigned = text.rstrip("\n").split("\n")[-2:]
    assert (own.split(" ")[1], cosigned.split(" ")[1]) == (KEY.name, witness.name)
    forged = {**files, verifier.CHECKPOINT: text.replace(cosigned[-30:-20], "A" * 10).encode()}
    forged[verifier.MANIFEST] = verifier.canonical(verifier.manifest_of(forged))
    found = verifier.verify(verifier.zip_write(forged), public_key=KEY.verifier, witness_key=witness.verifier)
    assert any("cosignature of" in fault for fault in found.faults), found.faults


def test_without_its_witnesses_a_bundle_is_built_after_a_while(witness: WitnessProcess, cast: Cast) -> None:
    witness.kill()
    bundle = request(cast, allowed(cast))
    build(bundle.id)
    seal_all()
    assert build(bundle.id).state == "building"
    late = build(bundle.id, at=timezone.now() + timedelta(seconds=40))
    assert late.state == "ready"
    assert verifier.verify(stored(late), witness_key=witness.verifier).cosigned_by == []


def test_key_and_quorum_are_part_of_what_two_people_confirm(witness: WitnessProcess, settings: Any) -> None:
    before = witness_digests()
    assert set(before) == {"w1", "quorum 1 of 1"}
    settings.WITNESS_QUORUM = 0
    assert set(witness_digests()) == {"w1"}
    settings.WITNESS_QUORUM = 2
    with pytest.raises(ImproperlyConfigured):
        witness_quorum()
    for wrong in ({"verifier_key": ""}, {"verifier_key": KEY.verifier}, {"kind": "other"}, {"name": "quorum 9"}):
        with pytest.raises(ImproperlyConfigured):
            witness_from(**(witness.entry | wrong))
