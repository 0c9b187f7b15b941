"""Reads what the start of a case needs, in one statement: definition, organization, contract, and the case's run if it
has one."""

from dataclasses import dataclass
from functools import cache
from uuid import UUID

from attempts.lifecycle.states import ENGINE
from governance.enforcement.selectors import OwnArrival, own_columns, own_joins, own_side
from governance.enforcement.sql import TAKE_SEND_LOCK
from governance.sql.statements import fetch, stored_row
from governance.tenancy.models import Product
from reasoncodes.base.tenancy import in_scope
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.sql import definition_runs_sql

DEFINITION = (
    *("id", "organization_id", "product_id", "contract_id"),
    *("slug", "default_mode", "workflow_timeout_seconds", "snapshot_sha256"),
)
PRODUCT = ("id", "organization_id", "slug")
DEFINITION_FOR = f"SELECT id FROM ({definition_runs_sql(organization='$1', product='$2')}) d"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Start:
    """`known`: the event was received before. `definition`: the product's own active one, or the organization's.
    `running`: the case's run. `under_way`: the organization's running runs, counted up to its cap. `arrival`: what
    intake would check about the definition's contract."""

    known: bool
    definition: WorkflowDefinition | None
    running: UUID | None
    under_way: int
    arrival: OwnArrival | None = None


def start_facts(*, organization_id: UUID, product_id: UUID, case_id: UUID, event_id: UUID | None) -> Start:
    """Also takes the send lock. `event_id` None: the caller knows that the event is new."""
    # Hand-written SQL passes by the tenant manager, so the scope is checked here.
    if not in_scope(organization_id):
        return Start(known=False, definition=None, running=None, under_way=0)
    parameters = (organization_id, product_id, case_id, event_id)
    ((known, running, under_way, *columns),) = fetch(_sql(), parameters, first=TAKE_SEND_LOCK)
    definition, product = (
        stored_row(WorkflowDefinition, DEFINITION, columns[: len(DEFINITION)]),
        stored_row(Product, PRODUCT, columns[len(DEFINITION) : len(DEFINITION) + len(PRODUCT)]),
    )
    if definition is None:
        return Start(known, None, running, under_way or 0)
    ours = own_side(columns[len(DEFINITION) + len(PRODUCT) :])
    beside = {"organization": ours.organization, "contract": ours.contract, "product": product}
    # Set by hand, because `stored_row` does not call Model.__init__; without it each of them would be a query.
    definition._state.fields_cache |= beside
    return Start(known, definition, running, under_way or 0, ours.arrival)


def definition_for(*, organization_id: UUID, product_id: UUID) -> WorkflowDefinition | None:
    """The definition that a new run would follow, by the same rule."""
    if not in_scope(organization_id):
        return None
    found = fetch(DEFINITION_FOR, (organization_id, product_id))
    rows = WorkflowDefinition.objects.select_related("organization", "contract", "product")
    return rows.get(id=found[0][0]) if found else None


@cache
def _sql() -> str:
    """$1 organization, $2 product, $3 case, $4 the event's own id."""
    listed = ", ".join([f"d.{name}" for name in DEFINITION] + [f"product.{name}" for name in PRODUCT])
    return f"""
    SELECT EXISTS (SELECT 1 FROM workflows_workflowevent WHERE organization_id = $1 AND event_id = $4::uuid),
        (SELECT id FROM workflows_workflowinstance
         WHERE organization_id = $1 AND case_id = $3 AND superseded_by_id IS NULL ORDER BY id DESC LIMIT 1),
        (SELECT count(*) FROM (SELECT 1 FROM workflows_workflowinstance
         WHERE organization_id = $1 AND state = 'running' LIMIT o.max_concurrency) running),
        {listed}, {own_columns()}
    FROM (SELECT 1) once LEFT JOIN LATERAL ({definition_runs_sql(organization="$1", product="$2")}) d ON TRUE
    LEFT JOIN governance_organization o ON o.id = d.organization_id
    LEFT JOIN governance_contract c ON c.id = d.contract_id
    LEFT JOIN governance_product product ON product.id = d.product_id
    {own_joins(f"'{ENGINE}'")}
    """  # noqa: S608
