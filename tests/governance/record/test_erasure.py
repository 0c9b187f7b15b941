"""After an erasure nobody can check a guess against an old digest, and the record still verifies."""

from hashlib import sha256
from uuid import UUID

import pytest
from django.db import connection

from governance.record.models import BoundRows
from governance.record.rules.items import FORGOTTEN, BoundItem, items_read
from governance.record.rules.tables import BOUND
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.record.world import sealed_and_valid
from tests.governance.retention.support import Clinic, attempt, work
from tests.governance.retention.test_deletion import accept, leave, leaver, request

pytestmark = pytest.mark.django_db(transaction=True)


def items_of(table: str, row_id: UUID) -> list[BoundItem]:
    """All items of a row, oldest version first."""
    found = [
        item
        for part in BoundRows.objects.all()
        for item in items_read(bytes(part.rows), bytes(part.salts or b""))
        if item.number == BOUND[table].number and item.row_id == row_id.bytes
    ]
    return sorted(found, key=lambda one: one.version)


def image_of(table: str, row_id: UUID) -> bytes:
    with connection.cursor() as cursor:
        cursor.execute("SET timezone = 'UTC'")
        cursor.execute(f"SELECT row_to_json(r)::text FROM {table} r WHERE id = %s", [row_id])  # noqa: S608
        return str(cursor.fetchone()[0]).encode()


def test_an_erased_attempts_old_digests_lose_their_salts() -> None:
    clinic = Clinic(Cast())
    erased, kept = clinic.denied(1), clinic.denied(2)
    with every_tenant():
        row = accept(clinic, request(clinic))
        before = items_of("attempts_attempt", erased)
        guess = image_of("attempts_attempt", erased)
        salt = before[-1].salt
        assert salt is not None
        assert sha256(salt + guess).digest() == before[-1].digest, "with the salt, a guess can be checked"
    sealed_and_valid()
    assert row.order is not None
    work(row.order)
    assert attempt(erased).erased_at
    with every_tenant():
        after = items_of("attempts_attempt", erased)
        assert len(after) == len(before) + 1
        assert {item.salt for item in after[:-1]} == {FORGOTTEN}
        assert after[-1].salt not in (None, FORGOTTEN)
        assert FORGOTTEN not in {item.salt for item in items_of("attempts_attempt", kept)}
    sealed_and_valid()


def test_a_forgotten_persons_old_digests_lose_their_salts() -> None:
    clinic = Clinic(Cast())
    user = leaver(clinic)
    other = clinic.cast.operator
    leave(clinic, user)
    sealed_and_valid()
    with every_tenant():
        row = accept(clinic, request(clinic, "", person_id=user.id))
    assert row.order is not None
    work(row.order)
    user.refresh_from_db()
    assert user.username == f"erased-{user.id}"
    with every_tenant():
        *old, last = items_of("governance_user", user.id)
        assert old
        assert {item.salt for item in old} == {FORGOTTEN}
        assert last.salt != FORGOTTEN
        assert FORGOTTEN not in {item.salt for item in items_of("governance_user", other.id)}
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM governance_personreference WHERE user_id = %s", [user.id])
            assert cursor.fetchone() == (0,)
        references = [
            item
            for part in BoundRows.objects.all()
            for item in items_read(bytes(part.rows), bytes(part.salts or b""))
            if item.number == BOUND["governance_personreference"].number
        ]
        gone = {item.row_id for item in references if item.deleted}
        assert gone
        assert {item.salt for item in references if item.row_id in gone} == {FORGOTTEN}
    sealed_and_valid()
