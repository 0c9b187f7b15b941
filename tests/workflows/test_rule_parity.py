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
WHERE = [(whose, product) for whose in ("ours", "theirs", "template") for product in ("one", "two", "theirs", "")]
STATES = st.sampled_from([None, DefinitionStatus.ACTIVE, DefinitionStatus.ACTIVE, *DefinitionStatus])
# One state or none for each place: where two are active, the order between them counts in many examples.
DEFINITIONS = st.fixed_dictionaries(dict.fromkeys(WHERE, STATES))


@contextmanager
def undone() -> Iterator[None]:
    with every_tenant(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def products(cast: Cast) -> dict[str, Product]:
    owners = {"one": cast.organization, "two": cast.organization, "theirs": cast.other}
    products: dict[str, Any] = {name: ProductFactory(organization=owner) for name, owner in owners.items()}
    return products


@examples(80, suppress_health_check=OWN_WORLD)
@given(rows=DEFINITIONS, product=st.sampled_from(["one", "two", "theirs", "unknown"]))
def test_the_definition_that_runs(
    cast: Cast, products: dict[str, Product], rows: dict[tuple[str, str], DefinitionStatus | None], product: str
) -> None:
    with undone():
        made = [
            make(cast, products, whose, of, state, number)
            for number, ((whose, of), state) in enumerate(rows.items(), start=1)
            if state is not None
        ]
        asked = products[product].id if product in products else uuid7()
        expected = in_words(cast, made, asked, is_ours=product in {"one", "two"})
        start = start_facts(organization_id=cast.organization.id, product_id=asked, case_id=uuid7(), event_id=None)
        alone = definition_for(organization_id=cast.organization.id, product_id=asked)
        assert [start.definition and start.definition.id, alone and alone.id] == [expected] * 2
        new = WorkflowDefinition(organization=cast.organization, product_id=asked, slug="another-one")
        exact = definition_active(definition=new)
        assert exact is None or product == "theirs" or exact.id == expected


def make(
    cast: Cast, products: dict[str, Product], whose: str, product: str, state: DefinitionStatus, number: int
) -> WorkflowDefinition:
    organization = {"ours": cast.organization, "theirs": cast.other, "template": None}[whose]
    return WorkflowDefinition.objects.create(
        organization=organization,
        product=products.get(product),
        slug=f"definition-{number}",
        name=f"Definition {number}",
        version=number,
        is_template=organization is None,
        state=state.value,
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
        if row.organization_id == cast.organization.id and row.state == DefinitionStatus.ACTIVE
    }
    return (active.get(product_id) or active.get(None)) if is_ours else None
