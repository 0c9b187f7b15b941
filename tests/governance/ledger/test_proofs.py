"""Proofs over the API, the verifying command, and what a third party can check with them alone."""

import time
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_append
from governance.sealing.models import LedgerKey
from governance.sealing.rules.merkle import checkpoint_verify, leaf_hash
from governance.sealing.rules.merkle.checkpoint import verifier_key_read
from governance.sealing.tasks import ledger_seal_task as seal_task
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.ledger.record import verify
from tests.governance.ledger.sealing import seal_all
from tests.governance.merkle.proofs import consistency_verify, inclusion_verify
from tests.tampering import triggers_off

pytestmark = pytest.mark.django_db(transaction=True)


def append(cast: Cast, count: int) -> list[LedgerEntry]:
    with every_tenant(), transaction.atomic():
        return [
            ledger_append(
                action="organization.changed",
                organization_id=cast.organization.id,
                subject_type="organization",
                subject_id=uuid4(),
                actor=SYSTEM,
                at=timezone.now(),
                payload={"number": number},
            )
            for number in range(count)
        ]


def test_an_entry_is_proven_with_what_the_api_gives_alone(cast: Cast) -> None:
    entry = append(cast, 7)[3]
    seal_all()
    api = cast.api("ledger:read")
    keys = [verifier_key_read(row["verifier_key"]) for row in api.get("/api/v1/ledger/public-key").json()["keys"]]
    found = api.get(f"/api/v1/ledger/entries/{entry.id}/proof").json()
    head = checkpoint_verify(found["checkpoint"], keys=keys)
    leaf = leaf_hash(bytes.fromhex(found["entry"]["sha256"]) + bytes.fromhex(found["rows_sha256"] or ""))
    assert (leaf.hex(), head.size) == (found["leaf_sha256"], found["tree_size"])
    proof = [bytes.fromhex(one) for one in found["proof"]]
    inclusion_verify(leaf=leaf, index=found["leaf_index"], size=head.size, proof=proof, root=head.root)


def test_two_heads_are_proven_to_be_one_history(cast: Cast) -> None:
    append(cast, 3)
    seal_all()
    append(cast, 6)
    seal_all()
    api = cast.api("ledger:read")
    heads = api.get("/api/v1/ledger/checkpoints").json()["results"]
    new, old = heads[0], heads[-1]
    answer = api.get(f"/api/v1/ledger/consistency?from={old['size']}&to={new['size']}").json()
    consistency_verify(
        old=old["size"],
        new=new["size"],
        old_root=bytes.fromhex(answer["old"]["root_sha256"]),
        new_root=bytes.fromhex(answer["new"]["root_sha256"]),
        proof=[bytes.fromhex(one) for one in answer["proof"]],
    )
    assert api.get(f"/api/v1/ledger/checkpoints/{old['size']}").json() == old


def test_what_cannot_be_proven_is_refused(cast: Cast) -> None:
    append(cast, 2)
    seal_all()
    late = append(cast, 1)[0]
    api, stranger = cast.api("ledger:read"), cast.api("ledger:read", organization=cast.other)
    answer = api.get(f"/api/v1/ledger/entries/{late.id}/proof")
    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[-1]) == (409, "not-sealed-yet")
    assert answer["Retry-After"] == "2"
    assert stranger.get(f"/api/v1/ledger/entries/{late.id}/proof").status_code == 404
    assert api.get("/api/v1/ledger/consistency?from=5&to=2").status_code == 400
    assert api.get("/api/v1/ledger/consistency?from=1&to=99999").status_code == 404
    assert api.get("/api/v1/ledger/consistency").status_code == 400
    assert api.get("/api/v1/ledger/checkpoints/999999").status_code == 404
    assert cast.api("attempts:create").get("/api/v1/ledger/checkpoints").status_code == 403


def tampered(sql: str, *params: Any, table: str = "governance_ledgerentry") -> None:
    """As the owner of the tables could: triggers off, change, triggers on."""
    with triggers_off(table), connection.cursor() as cursor:
        cursor.execute(sql, params)


def test_an_untouched_record_verifies(cast: Cast) -> None:
    append(cast, 12)
    seal_all()
    append(cast, 1)
    found = verify()
    assert (found["valid"], found["faults"], found["unsealed"]) == (True, 0, 1)


@pytest.mark.tampers
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE governance_ledgerentry SET payload = '{\"number\": 99}' WHERE id = %s", "payload"),
        ("UPDATE governance_ledgerentry SET at = at - interval '1 day' WHERE id = %s", "was changed"),
        ("UPDATE governance_ledgerentry SET organization_id = NULL WHERE id = %s", "was changed"),
        ("UPDATE governance_ledgerentry SET actor_kind = 'clock' WHERE id = %s", "was changed"),
        ("DELETE FROM governance_ledgerentry WHERE id = %s", "is gone"),
    ],
    ids=["edited", "back-dated", "moved to another tenant", "another actor", "deleted"],
)
def test_a_changed_entry_is_named(cast: Cast, sql: str, words: str) -> None:
    entry = append(cast, 9)[4]
    seal_all()
    tampered(sql, entry.id)
    found = verify()
    assert not found["valid"]
    assert any(words in text for text in found["wrong"])


def test_the_task_seals_with_the_configured_key(cast: Cast) -> None:
    append(cast, 1)
    for _ in range(600):  # another worker's open transaction may hold it up for a while
        seal_task()
        if LedgerKey.objects.exists():
            break
        time.sleep(0.1)
    assert LedgerKey.objects.get().name == "holdpoint.local/ledger"
