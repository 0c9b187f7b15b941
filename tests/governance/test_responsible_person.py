"""A service account always has a responsible person; Holdpoint's own accounts are marked instead. And nobody but
another administrator ends an administrator's access."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from attempts.lifecycle.states import ENGINE
from governance import migrations
from governance.ledger.models import LedgerEntry
from governance.people.models import ServiceAccount, User
from governance.people.services.accounts import (
    RESERVED_SLUGS,
    api_key_issue,
    service_account_create,
    service_account_ensure,
    service_account_reinstate,
    service_accounts_suspended_record,
)
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ServiceAccountFactory

URL = "/api/v1/authority-changes"
LEFT = {"reason_code": "person_left"}


def unanswered(cast: Cast) -> ServiceAccount:
    """What the migration leaves of an account that had no responsible person."""
    account: ServiceAccount = ServiceAccountFactory(organization=cast.organization, slug="old")
    with every_tenant():
        ServiceAccount.objects.filter(id=account.id).update(
            responsible=None, status="suspended", suspended_reason_code="responsible_missing"
        )
        account.refresh_from_db()
    return account


def confirmed(cast: Cast, **body: Any) -> Any:
    _ = cast.second_operator
    change = cast.session(cast.operator).post(URL, body, format="json")
    assert change.status_code == 201, change.json()
    third = cast.fresh(cast.session(cast.person("theo", "operator")))
    return third.post(f"{URL}/{change.json()['id']}/confirm", {}, format="json")


@pytest.mark.parametrize("who", ["nobody", "other_operator"])
def test_the_responsible_person_has_a_role_in_that_organization(cast: Cast, who: str) -> None:
    with every_tenant(), pytest.raises(DomainError) as refused:
        service_account_create(
            actor=SYSTEM,
            at=timezone.now(),
            organization=cast.organization,
            slug="caller",
            responsible=getattr(cast, who),
        )
    assert refused.value.errors[0].pointer == "/responsible"


def test_nobody_without_access_is_responsible(cast: Cast) -> None:
    User.objects.filter(id=cast.auditor.id).update(is_active=False)
    cast.auditor.refresh_from_db()
    with every_tenant(), pytest.raises(DomainError):
        service_account_create(
            actor=SYSTEM, at=timezone.now(), organization=cast.organization, slug="x", responsible=cast.auditor
        )


def test_the_database_refuses_a_working_account_that_is_nobodys(cast: Cast) -> None:
    account = unanswered(cast)
    with every_tenant(), pytest.raises(IntegrityError, match="responsible_person"), transaction.atomic():
        ServiceAccount.objects.filter(id=account.id).update(status="active", suspended_reason_code="")


def test_an_old_account_without_one_is_mended_by_two_people_and_then_reinstated(cast: Cast) -> None:
    account = unanswered(cast)
    page = cast.console(cast.operator).get(f"/admin/governance/serviceaccount/{account.id}/change/").content.decode()
    assert "Name the responsible person" in page
    with every_tenant(), pytest.raises(DomainError) as refused:
        service_account_reinstate(actor=SYSTEM, at=timezone.now(), service_account_id=account.id)
    assert refused.value.code == "responsible-person-missing"
    named = confirmed(cast, kind="service_account.responsible", subject="old", details={"responsible": "alice"})
    assert named.status_code == 200, named.json()
    assert confirmed(cast, kind="service_account.reinstate", subject="old").status_code == 200
    with every_tenant():
        account.refresh_from_db()
        entry = LedgerEntry.objects.get(action="service_account.responsible_named")
    assert (account.status, account.responsible) == ("active", cast.operator)
    assert entry.payload is not None
    assert entry.payload["responsible"]


def test_neither_the_old_nor_the_new_responsible_person_confirms_the_change(cast: Cast) -> None:
    _ = cast.second_operator
    ServiceAccountFactory(organization=cast.organization, slug="caller", responsible=cast.second_operator)
    body = {"kind": "service_account.responsible", "subject": "caller", "details": {"responsible": "theo"}}
    theo = cast.person("theo", "operator")
    change = cast.session(cast.operator).post(URL, body, format="json").json()["id"]
    for who in (cast.second_operator, theo):
        assert cast.fresh(cast.session(who)).post(f"{URL}/{change}/confirm", {}, format="json").status_code == 403


def test_the_migration_marks_holdpoints_own_account_and_suspends_the_others(cast: Cast) -> None:
    (file,) = Path(migrations.__path__[0]).glob("*_people.py")
    migration = import_module(f"governance.migrations.{file.stem}")
    with every_tenant(), connection.cursor() as cursor:
        old: ServiceAccount = ServiceAccountFactory(organization=cast.organization, slug="old")
        kept: ServiceAccount = ServiceAccountFactory(organization=cast.organization, slug="kept")
        own = service_account_ensure(at=timezone.now(), organization=cast.organization, slug=ENGINE, description="")
        # As before the migration; PostgreSQL changes no table with checks that still wait.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE governance_serviceaccount DROP CONSTRAINT service_account_has_a_responsible_person")
        ServiceAccount.objects.filter(id=old.id).update(responsible=None)
        ServiceAccount.objects.filter(id=own.id).update(internal=False)
        migration.internal_or_suspended(apps, None)
        for account in (old, kept, own):
            account.refresh_from_db()
    assert (old.status, old.suspended_reason_code) == ("suspended", "responsible_missing")
    assert (kept.status, own.status, own.internal) == ("active", "active", True)


def test_what_the_migration_suspended_is_on_the_ledger_once(cast: Cast) -> None:
    account = unanswered(cast)
    with every_tenant():
        assert [service_accounts_suspended_record(at=timezone.now()) for _ in range(2)] == [1, 0]
        entry = LedgerEntry.objects.get(action="service_account.suspended", subject_id=account.id)
    assert (entry.reason_code, entry.actor_kind) == ("responsible_missing", "system")


def test_holdpoints_own_account_is_marked_has_no_key_and_its_name_is_reserved(cast: Cast) -> None:
    with every_tenant():
        own = service_account_ensure(at=timezone.now(), organization=cast.organization, slug=ENGINE, description="")
        assert (own.internal, own.responsible) == (True, None)
        with pytest.raises(DomainError):
            api_key_issue(actor=SYSTEM, at=timezone.now(), service_account=own, scopes=["attempts:create"])
    assert ENGINE in RESERVED_SLUGS
    _ = cast.second_operator
    body = {"kind": "service_account.create", "subject": ENGINE, "details": {"responsible": "alice"}}
    assert cast.session(cast.other_operator).post(URL, body, format="json").status_code == 400
    with every_tenant(), pytest.raises(DomainError):
        service_account_create(
            actor=SYSTEM, at=timezone.now(), organization=cast.other, slug=ENGINE, responsible=cast.other_operator
        )


def test_the_command_creates_an_account_for_a_responsible_person_only(cast: Cast) -> None:
    _ = cast.operator
    with pytest.raises(CommandError, match="--responsible"):
        call_command("create_api_key", "clinic", "caller", "--scope", "attempts:create")
    call_command("create_api_key", "clinic", "caller", "--scope", "attempts:create", "--responsible", "alice")
    with every_tenant():
        assert ServiceAccount.objects.get(slug="caller").responsible == cast.operator


def test_an_operator_cannot_end_an_administrators_access_and_the_try_is_recorded(cast: Cast) -> None:
    root = cast.administrator
    cast.person("root", "operator")
    page = f"/admin/governance/user/{root.id}/act/deactivate/"
    assert cast.console(cast.operator).post(page, LEFT).status_code == 403
    root.refresh_from_db()
    assert root.is_active
    with every_tenant():
        assert list(GovernanceViolation.objects.values_list("kind", flat=True)) == ["unauthorized_decision"]


def test_another_administrator_can_but_not_they_themselves(cast: Cast) -> None:
    root, other = cast.administrator, cast.person("second-root")
    User.objects.filter(id=other.id).update(is_superuser=True)
    page = f"/admin/governance/user/{root.id}/act/deactivate/"
    assert cast.console(root).post(page, LEFT).status_code == 403
    assert cast.console(User.objects.get(id=other.id)).post(page, LEFT).status_code == 302
    root.refresh_from_db()
    assert not root.is_active


def test_nobody_resets_their_own_sign_in_nor_an_administrators(cast: Cast) -> None:
    root = cast.administrator
    cast.person("root", "operator")
    console = cast.console(cast.operator)
    reason = {"reason_code": "planned_maintenance"}
    for user in (cast.operator, root):
        assert console.post(f"/admin/governance/user/{user.id}/act/reset-sign-in/", reason).status_code == 403
    assert cast.console(root).post(f"/admin/governance/user/{cast.operator.id}/act/reset-sign-in/", reason)
