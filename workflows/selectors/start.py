"""What a case's beginning must know, in one statement: definition, tenant, contract, and the run that it may have."""

from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from governance.gate import GATE
from governance.models import Contract, Organization, Product
from governance.rows import stored_row
from governance.statement import fetch
from reasoncodes.tenancy import in_scope
from workflows.models import WorkflowDefinition
from workflows.selectors.instance_held import CONTRACT, ORGANIZATION

DEFINITION = (
    *("id", "organization_id", "product_id", "contract_id"),
    *("slug", "default_mode", "workflow_timeout_seconds", "snapshot_sha256"),
)
PRODUCT = ("id", "organization_id", "slug")


@dataclass(frozen=True, slots=True)
class Start:
    """`known`: the event was taken in before. `definition` is the product's own active one, or the organization's.
    `running`: the case has a run. `under_way` counts the organization's runs up to its cap."""

    known: bool
    definition: WorkflowDefinition | None
    running: UUID | None
    under_way: int


def start_facts(*, organization_id: UUID, product_id: UUID, case_id: UUID, event_id: UUID | None) -> Start:
    """The transaction is through the gate with it. `event_id` None: it is known to be new."""
    if not in_scope(organization_id):
        return Start(known=False, definition=None, running=None, under_way=0)
    ((known, running, under_way, *columns),) = fetch(_sql(), (organization_id, product_id, case_id, event_id))
    return Start(known, _definition(columns), running, under_way or 0)


def _definition(columns: list[Any]) -> WorkflowDefinition | None:
    rows: list[Any] = []
    for model, names in _parts():
        rows.append(stored_row(model, names, columns[: len(names)]))
        columns = columns[len(names) :]
    definition, organization, contract, product = rows
    if definition is not None:
        definition._state.fields_cache |= {"organization": organization, "contract": contract, "product": product}
    return definition


def _parts() -> tuple[tuple[Any, tuple[str, ...]], ...]:
    return (WorkflowDefinition, DEFINITION), (Organization, ORGANIZATION), (Contract, CONTRACT), (Product, PRODUCT)


@cache
def _sql() -> str:
    """$1 organization, $2 product, $3 case, $4 the event's own id."""
    listed = ", ".join(f"{alias}.{name}" for alias, (_, names) in zip("docp", _parts(), strict=True) for name in names)
    return f"""
    WITH passed AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared({GATE}))
    SELECT EXISTS (SELECT 1 FROM workflows_workflowevent WHERE organization_id = $1 AND event_id = $4::uuid),
        (SELECT id FROM workflows_workflowinstance
         WHERE organization_id = $1 AND case_id = $3 AND superseded_by_id IS NULL),
        (SELECT count(*) FROM (SELECT 1 FROM workflows_workflowinstance
         WHERE organization_id = $1 AND state = 'running' LIMIT o.max_concurrency) running),
        {listed}
    FROM passed LEFT JOIN LATERAL (
        SELECT * FROM workflows_workflowdefinition
        WHERE organization_id = $1 AND state = 'active' AND NOT is_template AND (product_id = $2 OR product_id IS NULL)
          AND EXISTS (SELECT 1 FROM governance_product WHERE id = $2 AND organization_id = $1)
        ORDER BY product_id NULLS LAST LIMIT 1
    ) d ON TRUE
    LEFT JOIN governance_organization o ON o.id = d.organization_id
    LEFT JOIN governance_contract c ON c.id = d.contract_id
    LEFT JOIN governance_product p ON p.id = d.product_id
    """  # noqa: S608
