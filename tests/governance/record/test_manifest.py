"""Whoever weakens what protects the record is named, whatever they changed."""

from uuid import uuid4

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from governance.apps import adopt_guards
from governance.ledger.models import LedgerEntry
from governance.record.models import GuardManifest
from governance.record.services.manifest import guards_adopt, guards_verify
from reasoncodes.base.tenancy import every_tenant
from tests.governance.ledger.record import verify
from tests.governance.test_commands import parameters

pytestmark = pytest.mark.django_db
BODY = "BEGIN RETURN NEW; END"
TAMPERING = {
    "a body": (
        f"CREATE OR REPLACE FUNCTION holdpoint_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ {BODY} $$",
        "function holdpoint_refuse_change(): its body differs",
    ),
    "a trigger off": (
        "ALTER TABLE attempts_receipt DISABLE TRIGGER append_only_rows",
        "trigger append_only_rows on attempts_receipt: off",
    ),
    "a trigger gone": (
        "DROP TRIGGER append_only_rows ON attempts_receipt",
        "trigger append_only_rows on attempts_receipt: it is gone",
    ),
    "a trigger in replica mode only": (
        "ALTER TABLE attempts_receipt ENABLE REPLICA TRIGGER append_only_rows",
        "trigger append_only_rows on attempts_receipt: on in replica mode only",
    ),
    "a constraint gone": (
        "ALTER TABLE attempts_attempt DROP CONSTRAINT attempt_known_state",
        "constraint attempt_known_state on attempts_attempt: it is gone",
    ),
    "a constraint not valid": (
        "ALTER TABLE attempts_attempt DROP CONSTRAINT attempt_known_mode, ADD CONSTRAINT attempt_known_mode"
        " CHECK (runtime_mode <> '') NOT VALID",
        "constraint attempt_known_mode on attempts_attempt: it is not checked for existing rows (NOT VALID)",
    ),
    "a right": (
        "GRANT UPDATE ON governance_ledgerentry TO PUBLIC",
        "table governance_ledgerentry: other rights are given on it",
    ),
    "a right on a column": (
        "GRANT UPDATE (payload) ON governance_ledgerentry TO PUBLIC",
        "table governance_ledgerentry: other rights are given on its columns",
    ),
    "a unique index gone": ("DROP INDEX hp_test_unique", "unique index hp_test_unique: it is gone"),
    "a definer's path": (
        "ALTER FUNCTION attempts_erase(uuid) SET search_path = pg_temp, public",
        "function attempts_erase(wanted uuid): its settings (search_path) differ",
    ),
    "a definer": (
        "ALTER FUNCTION holdpoint_refuse_change() SECURITY DEFINER",
        "function holdpoint_refuse_change(): it runs with the rights of another role",
    ),
    "a rule": (
        "CREATE RULE quiet AS ON INSERT TO governance_ledgerentry DO INSTEAD NOTHING",
        "rule quiet on governance_ledgerentry: it is new",
    ),
    "row security": (
        "ALTER TABLE governance_ledgerentry ENABLE ROW LEVEL SECURITY",
        "table governance_ledgerentry: its row security differs",
    ),
    "a default": (
        "ALTER TABLE governance_ledgerentry ALTER COLUMN txid SET DEFAULT 1",
        "column governance_ledgerentry.txid: default differs",
    ),
}


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_a_fresh_database_is_clean_and_a_second_migrate_adopts_nothing() -> None:
    assert guards_verify() == []
    before = GuardManifest.objects.count()
    adopt_guards()
    assert GuardManifest.objects.count() == before
    with every_tenant():
        entries = LedgerEntry.objects.filter(action="record.guards_adopted")
        assert sorted(entry.subject_id for entry in entries) == sorted(
            GuardManifest.objects.values_list("id", flat=True)
        )


@pytest.mark.parametrize("kind", TAMPERING)
def test_what_was_weakened_is_named(kind: str) -> None:
    statement, words = TAMPERING[kind]
    if "hp_test_unique" in statement:
        execute("CREATE UNIQUE INDEX hp_test_unique ON governance_organization (name, slug)")
        assert guards_adopt(at=timezone.now()) is not None
    execute(statement)
    assert words in (guards_verify() or [])


@pytest.mark.django_db(transaction=True)
def test_another_owner_and_a_stronger_role_are_named() -> None:
    name = f"strong_{uuid4().hex[:8]}"
    with psycopg.connect(**parameters("postgres"), autocommit=True) as superuser:
        superuser.execute(f"CREATE ROLE {name}")
        superuser.execute(f"GRANT SELECT ON governance_ledgerentry TO {name}")
        try:
            assert guards_adopt(at=timezone.now()) is not None
            superuser.execute(f"ALTER ROLE {name} SUPERUSER")
            superuser.execute(f"ALTER ROLE {name} SET session_replication_role = replica")
            found = guards_verify() or []
            assert f"role {name}: is superuser now" in found
            assert f"setting role {name}: it is new" in found
            superuser.execute(f"ALTER ROLE {name} NOSUPERUSER")
            owner = superuser.execute(
                "SELECT relowner::regrole::text FROM pg_class WHERE relname = 'governance_readaccess'"
            ).fetchone()
            superuser.execute(f"ALTER TABLE governance_readaccess OWNER TO {name}")
            found = guards_verify() or []
            assert "table governance_readaccess: another role owns it" in found
            assert owner is not None
            superuser.execute(f"ALTER TABLE governance_readaccess OWNER TO {owner[0]}")
        finally:
            superuser.execute(f"DROP OWNED BY {name}")
            superuser.execute(f"DROP ROLE {name}")


def test_an_adoption_says_what_changed() -> None:
    execute(TAMPERING["a body"][0])
    row = guards_adopt(at=timezone.now())
    assert row is not None
    with every_tenant():
        payload = LedgerEntry.objects.get(subject_id=row.id).payload
    assert payload["sha256"] == row.sha256
    assert payload["changed"] == [TAMPERING["a body"][1]]
    assert guards_verify() == []


def test_a_manifest_that_the_ledger_does_not_know_counts_for_nothing() -> None:
    execute(TAMPERING["a body"][0])
    GuardManifest(sha256="0" * 64, content="{}", adopted_at=timezone.now()).save()
    found = guards_verify() or []
    assert TAMPERING["a body"][1] in found
    assert "the manifest of guards: a newer row is not what the ledger says" in found


@pytest.mark.django_db(transaction=True)
def test_the_command_names_it_too() -> None:
    execute(TAMPERING["a trigger off"][0])
    try:
        assert TAMPERING["a trigger off"][1] in verify()["wrong"]
    finally:
        execute("ALTER TABLE attempts_receipt ENABLE ALWAYS TRIGGER append_only_rows")
