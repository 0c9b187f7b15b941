"""Commands of part 1: a key from the command line, and the database role that may only add to the record."""

from collections.abc import Iterator
from io import StringIO
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from psycopg import sql
from rest_framework.test import APIClient

from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey, ServiceAccount
from governance.sql.guards import append_only_tables
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

FORBIDDEN = [
    "UPDATE {table} SET {key} = {key}",
    "DELETE FROM {table}",
    "TRUNCATE {table} CASCADE",
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
]


def create(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("create_api_key", *arguments, stdout=out, stderr=err)
    return out.getvalue().strip(), err.getvalue()


def test_a_key_from_the_command_line_works_and_its_account_is_made(cast: Cast) -> None:
    wanted = ("--scope", "ledger:read", "--scope", "governance:read")
    secret, said = create("clinic", "importer", *wanted, "--responsible", cast.operator.username)
    assert "Shown once" in said
    assert secret not in said
    answer = APIClient().get("/api/v1/ledger/entries", HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert answer.status_code == 200
    with every_tenant():
        key = ApiKey.objects.get(service_account__slug="importer")
        assert set(key.scopes) == {"ledger:read", "governance:read"}
        assert key.expires_at is not None
        assert (key.expires_at - key.created_at).days in {89, 90}
        assert key.service_account.responsible_id == cast.operator.id
        assert LedgerEntry.objects.filter(action="api_key.issued", actor_kind="system").count() == 1
    create("clinic", "importer", "--scope", "ledger:read", "--days", "0")
    with every_tenant():
        assert ServiceAccount.objects.filter(slug="importer").count() == 1
        longest = ApiKey.objects.exclude(id=key.id).get()
        assert longest.expires_at is not None
        assert (longest.expires_at - longest.created_at).days in {364, 365}, "no key is for ever"
    with pytest.raises(CommandError, match="two live API keys"):
        create("clinic", "importer", "--scope", "ledger:read")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere", "importer", "--scope", "ledger:read", "--responsible", "alice"),
        ("clinic", "importer", "--scope", "all", "--responsible", "alice"),
        ("clinic", "importer", "--scope", "ledger:read"),
        ("clinic", "importer", "--scope", "ledger:read", "--responsible", "nobody"),
        ("clinic", "importer", "--scope", "ledger:read", "--responsible", "oscar"),
        ("clinic",),
    ],
)
def test_a_wrong_command_makes_nothing(cast: Cast, arguments: tuple[str, ...]) -> None:
    assert (cast.operator.username, cast.other_operator.username) == ("alice", "oscar")  # Oscar is of another one
    with pytest.raises(CommandError):
        create(*arguments)
    with every_tenant():
        assert not ServiceAccount.objects.exists()


def parameters(user: str) -> dict[str, Any]:
    found = {**connection.get_connection_params(), "user": user}
    for name in ("cursor_factory", "context", "prepare_threshold"):
        found.pop(name, None)
    return found


@pytest.fixture
def role(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A fresh login role, granted what the command grants."""
    name = f"app_{uuid4().hex[:8]}"
    identifier = sql.Identifier(name)
    with psycopg.connect(**parameters("postgres"), autocommit=True) as superuser:
        superuser.execute(sql.SQL("CREATE ROLE {} LOGIN").format(identifier))
        monkeypatch.setenv("HOLDPOINT_APP_ROLE", name)
        call_command("grant_application_role", stdout=StringIO())
        yield name
        superuser.execute(sql.SQL("DROP OWNED BY {}").format(identifier))
        superuser.execute(sql.SQL("DROP ROLE {}").format(identifier))


def test_the_application_role_may_add_to_the_record_and_not_touch_it(role: str) -> None:
    cast = Cast()
    with transaction.atomic():
        assert cast.organization
    models = {model._meta.db_table: model for model in apps.get_models()}
    tables = append_only_tables(list(models.values()))
    assert "governance_ledgerentry" in tables
    with psycopg.connect(**parameters(role), autocommit=True) as application:
        columns = [field.column for field in LedgerEntry._meta.concrete_fields if field.column != "id"]
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        application.execute(
            sql.SQL(
                "INSERT INTO governance_ledgerentry (id, {0}) "
                "SELECT gen_random_uuid(), {0} FROM governance_ledgerentry LIMIT 1"
            ).format(names)
        )
        for table in tables:
            key = sql.Identifier(models[table]._meta.pk_fields[0].column)  # a composite key has no column
            for statement in FORBIDDEN:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    application.execute(sql.SQL(statement).format(table=sql.Identifier(table), key=key))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            application.execute("DELETE FROM django_migrations")
        application.execute("UPDATE governance_organization SET name = name")
        application.execute("SELECT count(*) FROM django_migrations")


def test_granting_twice_changes_nothing(role: str) -> None:
    out = StringIO()
    call_command("grant_application_role", stdout=out)
    assert "insert-only" in out.getvalue()


def test_without_a_role_it_says_so_and_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDPOINT_APP_ROLE", raising=False)
    out = StringIO()
    call_command("grant_application_role", stdout=out)
    assert "not set" in out.getvalue()
