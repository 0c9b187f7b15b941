"""Which definition a run follows: the statement that starts a run, the reading alone, and the rule in words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from governance.tenancy.models import Product
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ProductFactory
from tests.properties import examples
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.selectors import definition_active
from workflows.definitions.states import DefinitionStatus
from workflows.runs.selectors.start import definition_for, start_facts

OWN_WORLD = [HealthCheck.function_scoped_fixture]  # every example undoes what it did: see `undone`
PRODUCTS = ("one", "two", "theirs", "")
DEFINITIONS = st.lists(
    st.fixed_dictionaries(
        {
            "whose": st.sampled_from(["ours", "ours", "theirs", "template"]),
            "product": st.sampled_from(PRODUCTS),
            "state": st.sampled_from([DefinitionStatus.ACTIVE, *DefinitionStatus]),
        }
    ),
    max_size=6,
)


@contextmanager
def undone() -> Iterator[None]:
    with every_tenant(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def products(cast: Cast) -> dict[str, Product]:
    return {
        "one": ProductFactory(organization=cast.organization),  # type: ignore[dict-item]
        "two": ProductFactory(organization=cast.organization),  # type: ignore[dict-item]
        "theirs": ProductFactory(organization=cast.other),  # type: ignore[dict-item]
    }


@examples(80, suppress_health_check=OWN_WORLD)
@given(rows=DEFINITIONS, product=st.sampled_from(["one", "two", "theirs", "unknown"]))
def test_the_definition_that_runs(
    cast: Cast, products: dict[str, Product], rows: list[dict[str, Any]], product: str
) -> None:
    with undone():
        made = [make(cast, products, row, number) for number, row in enumerate(one_active_each(rows), start=1)]
        asked = products[product].id if product in products else uuid7()
        expected = in_words(cast, made, asked, is_ours=product in {"one", "two"})
        start = start_facts(organization_id=cast.organization.id, product_id=asked, case_id=uuid7(), event_id=None)
        alone = definition_for(organization_id=cast.organization.id, product_id=asked)
        assert [start.definition and start.definition.id, alone and alone.id] == [expected] * 2
        exact = definition_active(organization_id=cast.organization.id, product_id=asked)
        assert exact is None or product == "theirs" or exact.id == expected


def one_active_each(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The database allows one active definition per organization and product: later ones are archived."""
    seen, found = set(), []
    for row in rows:
        where = (row["whose"], row["product"])
        again = row["state"] == DefinitionStatus.ACTIVE and where in seen
        seen |= {where} if row["state"] == DefinitionStatus.ACTIVE else set()
        found.append(row | {"state": DefinitionStatus.ARCHIVED} if again else row)
    return found


def make(cast: Cast, products: dict[str, Product], row: dict[str, Any], number: int) -> WorkflowDefinition:
    organization = {"ours": cast.organization, "theirs": cast.other, "template": None}[row["whose"]]
    return WorkflowDefinition.objects.create(
        organization=organization,
        product=products.get(row["product"]),
        slug=f"definition-{number}",
        name=f"Definition {number}",
        version=number,
        is_template=organization is None,
        status=row["state"].value,
        workflow_timeout_seconds=60,
        snapshot_sha256="ab" * 32,
        created_at=timezone.now(),
        updated_at=timezone.now(),
    )


def in_words(cast: Cast, made: list[WorkflowDefinition], product_id: UUID, *, is_ours: bool) -> UUID | None:
    """The product's own active definition, or the one for the whole organization."""
    active = {
        row.product_id: row.id
        for row in made
        if row.organization_id == cast.organization.id and row.status == DefinitionStatus.ACTIVE
    }
    return (active.get(product_id) or active.get(None)) if is_ours else None
