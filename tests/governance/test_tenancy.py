"""The tenant scope fails closed: no scope, no answer; and no scope outlives its request."""

import threading
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey, ServiceAccount
from governance.tenancy.models import Organization, Product, RoleGroup
from governance.tenancy.web import TenantScopeMiddleware
from reasoncodes.base.tenancy import (
    TenantManager,
    TenantScopeMissing,
    current_scope,
    enter_scope,
    every_tenant,
    tenant_scope,
)
from reasoncodes.models import ReasonCode
from tests.cast import Cast
from tests.factories import ProductFactory

TENANT_TABLES = [Organization, Product, RoleGroup, ServiceAccount, ApiKey, LedgerEntry, ReasonCode]


@pytest.fixture
def products(cast: Cast) -> tuple[Product, Product]:
    return ProductFactory(organization=cast.organization), ProductFactory(organization=cast.other)


@pytest.mark.parametrize("model", TENANT_TABLES)
def test_a_query_without_a_scope_raises_when_it_runs_and_not_before(db: None, model: Any) -> None:
    rows = model.objects.all()
    for ask in (rows.first, rows.exists, rows.count, lambda: list(rows), lambda: rows.update(id=F("id")), rows.delete):
        with pytest.raises(TenantScopeMissing):
            ask()


def test_every_table_with_an_organization_is_scoped() -> None:
    """A model added later with a plain manager would answer across tenants. guardian's own link rows are the exception:
    only guardian reads them, by user."""
    for model in apps.get_models():
        if any(field.name == "organization" for field in model._meta.get_fields() if field.many_to_one):
            assert isinstance(model._default_manager, TenantManager), model


def test_a_scope_shows_its_own_organizations_and_no_other(cast: Cast, products: tuple[Product, Product]) -> None:
    mine, theirs = products
    rows = Product.objects.order_by("id")
    with tenant_scope([cast.organization.id]):
        assert list(rows.all()) == [mine]
    with tenant_scope([cast.other.id]):
        assert list(rows.all()) == [theirs]
    with tenant_scope([cast.organization.id, cast.other.id]):
        assert list(rows.all()) == [mine, theirs]
    with tenant_scope([]):
        assert list(rows.all()) == []
    with every_tenant():
        assert list(rows.all()) == [mine, theirs]


def test_a_stranger_cannot_change_or_delete_a_row_out_of_scope(cast: Cast, products: tuple[Product, Product]) -> None:
    with tenant_scope([cast.organization.id]):
        assert Product.objects.update(name="Mine now") == 1
        assert Product.objects.filter(id=products[1].id).delete() == (0, {})
    with every_tenant():
        assert Product.objects.get(id=products[1].id).name == products[1].name


def test_the_scope_reaches_through_foreign_keys_and_related_managers(cast: Cast) -> None:
    cast.key("ledger:read")
    cast.key("ledger:read", organization=cast.other)
    with tenant_scope([cast.organization.id]):
        assert {key.service_account.organization_id for key in ApiKey.objects.all()} == {cast.organization.id}
        assert cast.organization.service_accounts.count() == 1
        assert cast.other.service_accounts.count() == 0
    with pytest.raises(TenantScopeMissing):
        cast.organization.service_accounts.count()


def test_shared_rows_are_seen_from_every_scope_even_an_empty_one(cast: Cast) -> None:
    ReasonCode.objects.bulk_create([ReasonCode(organization=cast.other, scope="halt", code="theirs", label="Theirs")])
    with tenant_scope([]):
        assert ReasonCode.objects.filter(code="policy_denied").exists()
        assert not ReasonCode.objects.filter(code="theirs").exists()
    with tenant_scope([cast.other.id]):
        assert ReasonCode.objects.filter(code="theirs").exists()


def test_scopes_nest_and_come_back_also_after_an_exception() -> None:
    outer, inner = uuid4(), uuid4()
    with tenant_scope([outer]):
        with suppress(ZeroDivisionError), tenant_scope([inner]):
            assert current_scope().organization_ids == {inner}
            raise ZeroDivisionError
        with every_tenant():
            assert current_scope().everything
        assert current_scope().organization_ids == {outer}
    with pytest.raises(TenantScopeMissing):
        current_scope()


@pytest.mark.parametrize("failing", [False, True])
def test_a_request_starts_and_ends_without_a_scope(failing: bool) -> None:
    def view(request: HttpRequest) -> HttpResponse:
        with pytest.raises(TenantScopeMissing):
            current_scope()
        enter_scope([uuid4()])
        if failing:
            raise ZeroDivisionError
        return HttpResponse()

    enter_scope([uuid4()])  # left over by whoever used this thread before
    request = RequestFactory().get("/api/v1/anything")
    if failing:
        with pytest.raises(ZeroDivisionError):
            TenantScopeMiddleware(view)(request)
    else:
        TenantScopeMiddleware(view)(request)
    with pytest.raises(TenantScopeMissing):
        current_scope()


def test_one_callers_scope_is_gone_for_the_next_caller_on_the_same_thread(cast: Cast) -> None:
    mine = cast.api("ledger:read").get("/api/v1/ledger/entries").json()["results"]
    theirs = cast.api("ledger:read", organization=cast.other).get("/api/v1/ledger/entries").json()["results"]
    assert {row["organization_id"] for row in mine} == {str(cast.organization.id)}
    assert {row["organization_id"] for row in theirs} == {str(cast.other.id)}
    with pytest.raises(TenantScopeMissing):
        current_scope()


def test_two_threads_have_separate_scopes() -> None:
    ids = [uuid4(), uuid4()]
    both_entered = threading.Barrier(2, timeout=5)
    seen: dict[UUID, Any] = {}

    def work(organization_id: UUID) -> None:
        enter_scope([organization_id])
        both_entered.wait()
        seen[organization_id] = current_scope().organization_ids

    threads = [threading.Thread(target=work, args=[one]) for one in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert seen == {one: {one} for one in ids}
    with pytest.raises(TenantScopeMissing):
        current_scope()


def test_another_organizations_object_is_not_found_for_everybody_but_its_owner(cast: Cast) -> None:
    with every_tenant():
        entry = LedgerEntry.objects.filter(organization=cast.other).first()
    assert entry is not None
    url = f"/api/v1/ledger/entries/{entry.id}"
    assert cast.api("ledger:read", organization=cast.other).get(url).status_code == 200
    assert cast.session(cast.other_operator).get(url).status_code == 200
    stranger = cast.api("ledger:read").get(url)
    missing = cast.api("ledger:read").get(f"/api/v1/ledger/entries/{uuid4()}")
    assert stranger.status_code == missing.status_code == 404
    assert {**stranger.json(), "instance": ""} == {**missing.json(), "instance": ""}
    assert cast.session(cast.operator).get(url).status_code == 404
