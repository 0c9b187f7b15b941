"""Whoever owns the database can change anything in it. Each way, at random places, is found by `verify_ledger`.

What the log alone cannot show (its tail is gone, everything was made anew with the key) the witnesses show.
"""

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID
from zlib import crc32

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection, transaction
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_append
from governance.record.rules.items import leaf_data
from governance.sealing.models import LedgerCheckpoint, LedgerKey, LedgerLeaf
from governance.sealing.rules.merkle import Checkpoint, checkpoint_sign, extend, frontier_root, leaf_hash
from governance.sealing.rules.merkle.checkpoint import public_bytes
from governance.sealing.rules.signing import SealingKey
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.ledger.entry_reference import EntryHeader, entry_hash
from tests.governance.ledger.record import append, head, sealed, tampered, verify, witness_in, witnessed
from tests.governance.ledger.sealing import KEY, seal_all
from tests.governance.record.forgeries import strict_clock
from tests.tampering import bound_rows, triggers_off

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]
# Other places in every run, the same for all its processes; the number is in the tests' names.
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
SEEDS = [int(os.environ.get("TAMPER_SEED") or crc32(RUN.encode()) % 10_000)]
BATCHES = (7, 1, 12, 5, 16, 3)


@pytest.fixture(autouse=True)
def everything() -> Iterator[None]:
    with every_tenant():
        yield


@pytest.fixture(params=SEEDS)
def dice(request: pytest.FixtureRequest) -> Random:
    return Random(request.param)


@pytest.fixture
def record(cast: Cast) -> int:
    """A record of two organizations; how many entries are sealed. It verifies before anybody touches it."""
    for batch, count in enumerate(BATCHES):
        sealed(count, organization_id=(cast.organization if batch % 2 else cast.other).id)
    assert verify()["valid"]
    return head().size


def at(position: int) -> UUID:
    return LedgerLeaf.objects.get(position=position).entry_id


def named(*words: str, options: tuple[str, ...] = ()) -> list[str]:
    found = verify(*options)
    assert not found["valid"]
    for word in words:
        assert any(word in text for text in found["wrong"]), found["wrong"]
    return list(found["wrong"])


EDITS = {
    "payload": ("payload = '{\"number\": 99999}'", "payload"),
    "payload and its hash": ("payload_sha256 = sha256('x')", "was changed"),
    "action": ("action = 'contract.retired'", "was changed"),
    "subject": ("subject_id = gen_random_uuid()", "was changed"),
    "actor": ("actor_kind = 'person', actor_ref = 'somebody'", "was changed"),
    "reason": ("reason_code = 'other'", "was changed"),
    "back-dated": ("at = at - interval '3 days'", "was changed"),
    "moved to no tenant": ("organization_id = NULL", "was changed"),
    "its own hash": ("sha256 = sha256('x')", "was changed"),
}


@pytest.mark.parametrize("kind", EDITS)
def test_an_edited_entry_is_named(record: int, dice: Random, kind: str) -> None:
    change, words = EDITS[kind]
    rows = LedgerLeaf.objects.filter(entry__organization__isnull=False).values_list("position", flat=True)
    position = dice.choice(sorted(rows))
    tampered((f"UPDATE governance_ledgerentry SET {change} WHERE id = %s", [at(position)]))  # noqa: S608
    assert any(text.startswith(f"leaf {position}:") for text in named(words))


def test_an_entry_of_another_time_than_its_transaction_is_named(cast: Cast, record: int) -> None:
    """With the trigger that refuses it out of force when it was written: the hash fits, and so does the tree."""
    # Made before: rows are bound to the first entry of their transaction.
    actor = Cast.actor(cast.operator, [cast.organization])
    with transaction.atomic():
        entry = ledger_append(
            action="organization.changed",
            organization_id=cast.organization.id,
            subject_type="organization",
            subject_id=cast.organization.id,
            actor=actor,
            at=timezone.now() - timedelta(days=400),
            payload={},
        )
        Organization.objects.filter(id=cast.organization.id).update(name="Another")
    seal_all()
    assert verify()["valid"], "the tests' database lets every time pass"
    with strict_clock():
        named(f"entry {entry.id} tells another time than its transaction had")


def test_an_entry_moved_to_another_tenant_is_named(cast: Cast, record: int, dice: Random) -> None:
    rows = LedgerEntry.objects.filter(organization_id=cast.organization.id, leaf__isnull=False).order_by("id")
    entry = dice.choice(list(rows))
    move = "UPDATE governance_ledgerentry SET organization_id = %s WHERE id = %s"
    tampered((move, [cast.other.id, entry.id]))
    named(f"entry {entry.id} was changed")


def test_an_entry_deleted_in_the_middle_is_named(record: int, dice: Random) -> None:
    position = dice.randrange(1, record - 1)
    tampered(("DELETE FROM governance_ledgerentry WHERE id = %s", [at(position)]))
    named(f"leaf {position}: its entry is gone")


def test_an_entry_deleted_with_its_leaf_is_named(record: int, dice: Random) -> None:
    position = dice.randrange(1, record - 1)
    tampered(
        ("DELETE FROM governance_ledgerentry WHERE id = %s", [at(position)]),
        ("DELETE FROM governance_ledgerleaf WHERE position = %s", [position]),
    )
    named(f"leaf {position} is missing", "another root")


def test_a_dropped_partition_is_named(record: int, dice: Random) -> None:
    """There are no partitions: a whole range of rows stands for one."""
    first = dice.randrange(0, record - 8)
    last = first + 7
    tampered(
        (
            "DELETE FROM governance_ledgerentry WHERE id IN"
            " (SELECT entry_id FROM governance_ledgerleaf WHERE position BETWEEN %s AND %s)",
            [first, last],
        ),
        ("DELETE FROM governance_ledgerleaf WHERE position BETWEEN %s AND %s", [first, last]),
    )
    named(f"leaves {first} to {last} are missing")


def test_two_entries_in_each_other_s_place_are_named(record: int, dice: Random) -> None:
    one, other = dice.sample(range(record), 2)
    swap = "UPDATE governance_ledgerleaf SET entry_id = %s, hash = %s WHERE position = %s"
    leaves = {place: LedgerLeaf.objects.get(position=place) for place in (one, other)}
    aside = ("UPDATE governance_ledgerleaf SET entry_id = gen_random_uuid() WHERE position = %s", [one])
    tampered(
        aside,
        (swap, [leaves[one].entry_id, leaves[one].hash, other]),
        (swap, [leaves[other].entry_id, leaves[other].hash, one]),
    )
    named("another root")


def test_an_entry_put_in_between_is_named(record: int, dice: Random) -> None:
    """With everything behind it moved on by one: the signed heads know better."""
    position = dice.randrange(1, record)
    (new,) = append(1)
    tampered(
        ("UPDATE governance_ledgerleaf SET position = -position WHERE position >= %s", [position]),
        "UPDATE governance_ledgerleaf SET position = 1 - position WHERE position < 0",
        (
            "INSERT INTO governance_ledgerleaf (position, entry_id, hash) VALUES (%s, %s, %s)",
            [position, new.id, leaf_hash(bytes(new.sha256))],
        ),
    )
    named("another root")


def test_an_entry_slipped_in_behind_the_sealer_is_named(record: int, dice: Random) -> None:
    """With the transaction number of an old one: the sealer would never come to it."""
    (new,) = append(1)
    old = at(dice.randrange(1, record))
    tampered(
        (
            "UPDATE governance_ledgerentry SET txid = (SELECT txid - 1 FROM governance_ledgerentry WHERE id = %s)"
            " WHERE id = %s",
            [old, new.id],
        )
    )
    named(f"entry {new.id} was put in where the sealer had been")


def test_a_stored_node_that_was_changed_is_named(record: int, dice: Random) -> None:
    level = dice.randrange(1, record.bit_length())
    index = dice.randrange(record >> level)
    tampered(("UPDATE governance_ledgernode SET hash = sha256('x') WHERE level = %s AND index = %s", [level, index]))
    named(f"node {level}/{index} is not what its leaves give")


def test_a_missing_node_is_named(record: int, dice: Random) -> None:
    level = dice.randrange(1, record.bit_length())
    tampered(("DELETE FROM governance_ledgernode WHERE level = %s", [level]))
    named("are missing")


def test_a_head_that_was_changed_is_named(record: int, dice: Random) -> None:
    row = dice.choice(list(LedgerCheckpoint.objects.all()))
    text = row.text.replace(f"\n{row.size}\n", f"\n{row.size + 1}\n", 1)
    tampered(("UPDATE governance_ledgercheckpoint SET text = %s WHERE id = %s", [text, row.id]))
    named(f"head of {row.size} entries: the signature does not fit")


def test_triggers_that_are_off_are_named(record: int, dice: Random) -> None:
    table = dice.choice(["ledgerentry", "ledgerleaf", "ledgernode", "ledgercheckpoint", "witnessreceipt", "readaccess"])
    weaker, words = dice.choice(
        [
            ("DISABLE TRIGGER append_only_rows", "off"),
            ("ENABLE TRIGGER append_only_table", "skipped in replica mode"),
        ]
    )
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE governance_{table} {weaker}")
        try:
            named(f"on governance_{table}: {words}")
        finally:
            cursor.execute(f"ALTER TABLE governance_{table} ENABLE ALWAYS TRIGGER append_only_rows")
            cursor.execute(f"ALTER TABLE governance_{table} ENABLE ALWAYS TRIGGER append_only_table")


def rebuilt(entries: list[LedgerEntry], key: SealingKey, *, steps: Random) -> None:
    """The whole tree and all heads made anew over `entries`, signed with `key`, as if it had always been so."""
    leaves = [leaf_hash(leaf_data(bytes(entry.sha256), bound_rows(entry.id))) for entry in entries]
    statements: list[str | tuple[str, list[Any]]] = [
        "DELETE FROM governance_ledgerleaf",
        "DELETE FROM governance_ledgernode",
        "DELETE FROM governance_ledgercheckpoint",
        "DELETE FROM governance_ledgerkey",
        (
            "INSERT INTO governance_ledgerkey (id, name, public_key, first_used_at) VALUES (%s, %s, %s, now())",
            [key.id, key.name, public_bytes(key.public)],
        ),
    ]
    old = head()
    size, frontier = 0, []
    while size < len(leaves):
        batch = leaves[size : size + steps.randrange(1, 9)]
        nodes, frontier = extend(size=size, frontier=frontier, leaves=batch)
        for (level, index), digest in nodes:
            if level:
                sql = "INSERT INTO governance_ledgernode (level, index, hash) VALUES (%s, %s, %s)"
                statements.append((sql, [level, index, digest]))
            else:
                sql = "INSERT INTO governance_ledgerleaf (position, entry_id, hash) VALUES (%s, %s, %s)"
                statements.append((sql, [index, entries[index].id, digest]))
        size += len(batch)
        body = Checkpoint(key.name, size, frontier_root(frontier))
        statements.append(
            (
                "INSERT INTO governance_ledgercheckpoint"
                " (id, size, root, text, key_id, frontier, cursor_txid, cursor_id, cluster, at)"
                " VALUES (gen_random_uuid(), %s, %s, %s, %s, %s, %s, %s, %s, now())",
                [
                    size,
                    body.root,
                    checkpoint_sign(body, name=key.name, key=key.signer),
                    key.id,
                    b"".join(frontier),
                    old.cursor_txid,
                    old.cursor_id,
                    old.cluster,
                ],
            )
        )
    tampered(*statements)


def rewritten(dice: Random, record: int) -> list[LedgerEntry]:
    """One entry says something else, with hashes that fit."""
    position = dice.randrange(record)
    entries = [leaf.entry for leaf in LedgerLeaf.objects.order_by("position").select_related("entry")]
    entry = entries[position]
    entry.at -= timedelta(days=30)
    header = EntryHeader(**{name: getattr(entry, name) for name in EntryHeader.__slots__})
    entry.sha256 = entry_hash(header=header, payload_sha256=bytes(entry.payload_sha256))
    change = "UPDATE governance_ledgerentry SET at = %s, sha256 = %s WHERE id = %s"
    tampered((change, [entry.at, entry.sha256, entry.id]))
    return entries


def without_key(entries: list[LedgerEntry], dice: Random) -> None:
    """Nodes and roots made anew, the signed texts left as they are."""
    texts = dict(LedgerCheckpoint.objects.values_list("size", "text"))
    sizes = sorted(texts)
    frontier: list[bytes] = []
    size = 0
    for end in sizes:
        batch = [leaf_hash(leaf_data(bytes(entry.sha256), bound_rows(entry.id))) for entry in entries[size:end]]
        nodes, frontier = extend(size=size, frontier=frontier, leaves=batch)
        size = end
        for (level, index), digest in nodes:
            table, where = ("leaf", "position = %s") if not level else ("node", "index = %s AND level = %s")
            parameters = [digest, index] + ([level] if level else [])
            tampered((f"UPDATE governance_ledger{table} SET hash = %s WHERE {where}", parameters))  # noqa: S608
        tampered(("UPDATE governance_ledgercheckpoint SET root = %s WHERE size = %s", [frontier_root(frontier), end]))


def test_rewritten_and_chained_anew_without_the_key_is_named(record: int, dice: Random) -> None:
    entries = rewritten(dice, record)
    without_key(entries, dice)
    named("the row is not what was signed", "another root")


@pytest.fixture
def witness(tmp_path: Path, settings: Any, record: int) -> Any:
    """A witness that has all heads of the record, and the key that the record was sealed with in the settings."""
    found = witness_in(tmp_path)
    settings.LEDGER_NAME, settings.LEDGER_KEY = KEY.name, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    settings.LEDGER_WITNESSES = json.dumps([{"name": "notary", "url": found.path.as_uri()}])
    witnessed(found)
    assert verify("--witnesses")["valid"]
    return found


WITNESSES = ("--witnesses",)


def test_rewritten_and_signed_with_a_new_key_is_named_by_the_log_and_the_witness(
    record: int, dice: Random, witness: Any
) -> None:
    rebuilt(rewritten(dice, record), SealingKey(KEY.name, Ed25519PrivateKey.generate()), steps=dice)
    named("the ledger does not name the key")
    named("with another root than the record has", options=WITNESSES)


def test_rewritten_and_signed_with_the_stolen_key_is_named_by_the_witness(
    record: int, dice: Random, witness: Any
) -> None:
    rebuilt(rewritten(dice, record), KEY, steps=dice)
    assert verify()["valid"]
    named("with another root than the record has", options=WITNESSES)


def cut(size: int) -> list[str | tuple[str, list[Any]]]:
    """Entries, leaves, nodes and heads from `size` on. An older backup looks the same: it also has the entry about the
    sealing key, which is written in the transaction of the key's first head and sealed with the next one."""
    return [
        (
            "DELETE FROM governance_ledgerentry WHERE id IN"
            " (SELECT entry_id FROM governance_ledgerleaf WHERE position >= %s) AND txid::text IS DISTINCT FROM"
            " (SELECT xmin::text FROM governance_ledgercheckpoint WHERE size = %s)",
            [size, size],
        ),
        ("DELETE FROM governance_ledgerleaf WHERE position >= %s", [size]),
        ("DELETE FROM governance_ledgernode WHERE (index + 1) << level > %s", [size]),
        ("DELETE FROM governance_ledgercheckpoint WHERE size > %s", [size]),
    ]


@pytest.mark.parametrize("what", ["cut tail", "older backup"])
def test_a_shorter_record_is_named_by_the_witness(record: int, dice: Random, witness: Any, what: str) -> None:
    sizes = sorted(LedgerCheckpoint.objects.values_list("size", flat=True))
    size = dice.choice(sizes[:-1])
    tampered(*cut(size))
    if what == "older backup":
        # Its receipts are older, too.
        with triggers_off("governance_witnessreceipt"), connection.cursor() as cursor:
            cursor.execute("DELETE FROM governance_witnessreceipt WHERE size > %s", [size])
    assert verify()["valid"], "the database alone is in order"
    named(f"the record has {size}", options=WITNESSES)


def test_a_tail_cut_without_its_heads_is_named_by_the_log_itself(record: int, dice: Random) -> None:
    size = dice.randrange(1, record)
    tampered(*cut(size)[:2])
    named("missing", "another root")


def test_a_fork_is_named_by_the_witness(record: int, dice: Random, witness: Any) -> None:
    """The tail is cut and the record goes on differently, longer than before, sealed by the real sealer."""
    sizes = sorted(LedgerCheckpoint.objects.values_list("size", flat=True))
    size = dice.choice(sizes[:-1])
    tampered(*cut(size))
    append(record - size + dice.randrange(1, 20))
    seal_all()
    assert head().size > record
    assert verify()["valid"]
    named("with another root than the record has", options=WITNESSES)


def test_keys_that_were_swapped_are_named(record: int, dice: Random) -> None:
    other = Ed25519PrivateKey.generate().public_key()
    tampered(("UPDATE governance_ledgerkey SET public_key = %s", [public_bytes(other)]))
    assert LedgerKey.objects.count() == 1
    named("none of the known keys signed it")


def test_an_epoch_that_nobody_began_is_named(record: int, dice: Random, witness: Any) -> None:
    """Put there to pass a cut tail off as a confirmed loss: it is in its table and not in the ledger."""
    size = dice.choice(sorted(LedgerCheckpoint.objects.values_list("size", flat=True))[:-1])
    tampered(
        *cut(size),
        (
            "INSERT INTO governance_ledgerepoch (number, kept, lost_to, reason_code, actor_ref, begun_at)"
            " VALUES (2, %s, %s, 'restored_backup', '', now())",
            [size, record],
        ),
    )
    named("epoch 2 is not in the ledger", options=WITNESSES)
