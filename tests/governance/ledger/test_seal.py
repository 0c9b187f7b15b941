"""Sealing: dense positions, no late commit skipped, one sealer at a time, the signed head is that of the entries."""

import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection, transaction
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_append
from governance.record.rules.items import leaf_data
from governance.sealing.models import LedgerCheckpoint, LedgerKey, LedgerLeaf, LedgerNode
from governance.sealing.rules.merkle import checkpoint_verify, extend, frontier_root, leaf_hash
from governance.sealing.rules.signing import SealingKey
from governance.sealing.services.seal import ledger_seal, ledger_seal_all
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.governance.ledger.sealing import KEY, hand_over, seal_all
from tests.tampering import bound_rows, triggers_off

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def everything() -> Iterator[None]:
    with every_tenant():
        yield


def append(count: int = 1) -> list[LedgerEntry]:
    with transaction.atomic():
        return [
            ledger_append(
                action="organization.changed",
                organization_id=None,
                subject_type="organization",
                subject_id=uuid4(),
                actor=SYSTEM,
                at=timezone.now(),
                payload={"number": number},
            )
            for number in range(count)
        ]


def seal(key: SealingKey = KEY) -> LedgerCheckpoint:
    seal_all(key)
    head = LedgerCheckpoint.objects.order_by("-size").first()
    assert head is not None
    return head


def test_entries_get_dense_positions_and_the_head_is_signed() -> None:
    append(3)
    first = seal()
    append(10)
    seal_all()
    leaves = list(LedgerLeaf.objects.order_by("position").select_related("entry"))
    assert [leaf.position for leaf in leaves] == list(range(LedgerEntry.objects.count()))
    assert all(
        bytes(leaf.hash) == leaf_hash(leaf_data(bytes(leaf.entry.sha256), bound_rows(leaf.entry_id))) for leaf in leaves
    )
    head = seal()
    assert first.size < head.size == len(leaves)
    made, frontier = extend(size=0, frontier=[], leaves=[bytes(leaf.hash) for leaf in leaves])
    checkpoint = checkpoint_verify(head.text, keys=[(KEY.name, KEY.public)])
    assert checkpoint.root == frontier_root(frontier) == bytes(head.root)
    stored = {(node.level, node.index): bytes(node.hash) for node in LedgerNode.objects.all()}
    assert stored == {node: digest for node, digest in made if node[0]}


def test_nothing_to_seal_makes_no_head() -> None:
    append()
    seal_all()
    before = LedgerCheckpoint.objects.count()
    assert ledger_seal(at=timezone.now(), key=KEY) is None
    assert LedgerCheckpoint.objects.count() == before


def test_an_entry_that_commits_late_is_not_skipped() -> None:
    """It got its id and its transaction before others that are committed; a cursor over ids would pass it by."""
    written, finish = threading.Event(), threading.Event()

    def slow() -> None:
        with every_tenant(), transaction.atomic():
            append(1)
            written.set()
            assert finish.wait(20)
        connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert written.wait(20)
    behind = {entry.id for entry in append(5)}
    ledger_seal(at=timezone.now(), key=KEY)
    early = LedgerLeaf.objects.filter(entry_id__in=behind).count()
    finish.set()
    thread.join(20)
    seal_all()
    assert early == 0, "while the older transaction is open nothing behind it is final"
    assert LedgerLeaf.objects.count() == LedgerEntry.objects.count()


def test_two_sealers_at_once_seal_every_entry_once() -> None:
    append(40)
    barrier = threading.Barrier(4)

    def run() -> None:
        with every_tenant():
            barrier.wait(20)
            ledger_seal_all(at=timezone.now(), key=KEY)
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    seal_all()
    assert LedgerLeaf.objects.count() == LedgerEntry.objects.count() > 40


def test_a_new_key_is_on_the_record_and_old_heads_still_verify() -> None:
    append()
    old = seal()
    other = SealingKey(KEY.name, Ed25519PrivateKey.generate())
    hand_over(KEY, other)
    new = seal(other)
    assert {KEY.id, other.id} == set(LedgerKey.objects.values_list("id", flat=True))
    adopted = LedgerEntry.objects.filter(action="ledger.key_adopted").order_by("id")
    assert [entry.payload["replaces"] for entry in adopted] == ["", KEY.id]
    hand_over(other, KEY)
    seal(KEY)
    assert [entry.payload["key"] for entry in adopted.all()] == [KEY.id, other.id, KEY.id], (
        "coming back is on record too"
    )
    keys = [(KEY.name, KEY.public), (other.name, other.public)]
    assert checkpoint_verify(old.text, keys=keys).size < checkpoint_verify(new.text, keys=keys).size


def test_after_a_restored_dump_into_another_cluster_nothing_is_skipped_or_sealed_twice() -> None:
    append(3)
    seal_all()
    append(2)
    # As if these rows had come from a cluster that was far ahead in its count.
    with triggers_off("governance_ledgerentry", "governance_ledgercheckpoint"), connection.cursor() as cursor:
        cursor.execute("UPDATE governance_ledgerentry SET txid = txid + 1000000")
        cursor.execute("UPDATE governance_ledgercheckpoint SET cluster = 1, cursor_txid = cursor_txid + 1000000")
    seal()
    append(2)
    seal_all()
    assert LedgerLeaf.objects.count() == LedgerEntry.objects.count() > 7
