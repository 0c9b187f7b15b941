"""The auditor reads everything and changes nothing: pages offer nothing, and no view is open by oversight.

Every route and every console page, those to come too: tests/contract/test_permissions.py."""

from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey, ServiceAccount, User
from governance.tenancy.models import Organization, Product
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.models import ReasonCode
from reasoncodes.services import reason_code_create
from tests.cast import Cast
from tests.contract.permissions import patterns
from tests.factories import ProductFactory


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


def test_no_page_offers_the_auditor_a_change(cast: Cast, rows: dict[type[Any], Any]) -> None:
    console = cast.console(cast.auditor)
    for model, row in rows.items():
        shown = console.get(page(model, "change", row.pk))
        assert shown.status_code == 200, model
        assert b'name="_save"' not in shown.content, model
        assert b"/act/" not in shown.content, model
        console.post(page(model, "changelist"), {"action": "delete_selected", "_selected_action": [str(row.pk)]})
        with every_tenant():
            assert type(row)._default_manager.filter(pk=row.pk).exists(), model
