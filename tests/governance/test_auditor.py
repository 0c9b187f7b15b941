"""The auditor reads everything and changes nothing: every console page is tried, those to come too.

Every route of the API: tests/contract/test_permissions.py."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.urls import reverse
from django.utils import timezone

from governance.admin.base import ConsoleAdmin
from governance.models import ApiKey, LedgerEntry, Organization, Product, ServiceAccount, User
from reasoncodes.actors import SYSTEM
from reasoncodes.models import ReasonCode
from reasoncodes.services.reason_code import reason_code_create
from reasoncodes.tenancy import every_tenant
from tests.cast import Cast
from tests.contract.permissions import patterns
from tests.factories import ProductFactory
from tests.governance.support import row_counts


def snapshot() -> dict[str, int]:
    """Everything but violations: those are recorded on purpose."""
    return {table: count for table, count in row_counts().items() if "violation" not in table}


def test_a_view_that_names_no_scope_for_a_method_is_closed() -> None:
    for route, callback in patterns("api/v1/"):
        view: Any = getattr(callback, "cls", None)
        if hasattr(view, "required_scopes"):
            handled = {method.upper() for method in ("get", "post", "put", "patch", "delete") if hasattr(view, method)}
            assert handled == set(view.required_scopes), route


@pytest.fixture
def rows(cast: Cast) -> dict[type[Any], Any]:
    """One row of Clinic's for every console page of part 1."""
    cast.key("ledger:read")
    ProductFactory(organization=cast.organization)
    with every_tenant():
        code = reason_code_create(
            actor=SYSTEM,
            at=timezone.now(),
            organization_id=cast.organization.id,
            scope="halt",
            code="ours",
            label="Ours",
        )
        return {
            Organization: cast.organization,
            Product: Product.objects.get(),
            User: cast.reviewer,
            ServiceAccount: ServiceAccount.objects.get(),
            ApiKey: ApiKey.objects.get(),
            ReasonCode: code,
            LedgerEntry: LedgerEntry.objects.filter(organization=cast.organization).first(),
        }


def page(model: type[Any], name: str, *arguments: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=arguments)


def console_pages() -> Iterator[tuple[type[Any], ConsoleAdmin]]:
    for model, model_admin in admin.site._registry.items():
        if isinstance(model_admin, ConsoleAdmin):
            yield model, model_admin


def test_the_auditor_sees_every_console_page_and_none_offers_a_change(cast: Cast, rows: dict[type[Any], Any]) -> None:
    console = cast.console(cast.auditor)
    for model, _ in console_pages():
        assert console.get(page(model, "changelist")).status_code == 200, model
        assert console.get(page(model, "add")).status_code == 403, model
    for model, row in rows.items():
        shown = console.get(page(model, "change", row.pk))
        assert shown.status_code == 200, model
        assert b'name="_save"' not in shown.content, model
        assert b"/act/" not in shown.content, model
        assert console.get(page(model, "delete", row.pk)).status_code == 403, model


def test_every_post_to_the_console_refuses_the_auditor(cast: Cast, rows: dict[type[Any], Any]) -> None:
    console = cast.console(cast.auditor)
    before = snapshot()
    for model, model_admin in console_pages():
        assert console.post(page(model, "add"), {"slug": "x", "name": "x"}).status_code == 403, model
        console.post(page(model, "changelist"), {"action": "delete_selected", "_selected_action": [str(uuid4())]})
        if model not in rows:
            continue
        pk = rows[model].pk
        for name in ("change", "delete"):
            assert console.post(page(model, name, pk), {"post": "yes", "name": "x"}).status_code == 403, (model, name)
        for act in model_admin.acts:
            for answer in (
                console.get(page(model, "act", pk, act.verb)),
                console.post(page(model, "act", pk, act.verb)),
            ):
                assert answer.status_code == 403, (model, act.verb)
    assert snapshot() == before
