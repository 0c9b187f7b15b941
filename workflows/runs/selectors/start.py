"""Reads what the start of a case needs, in one statement: definition, organization, contract, and the case's run if it
has one."""

from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from attempts.lifecycle.states import ENGINE
from governance.enforcement.selectors import OwnArrival, own_columns, own_joins, own_side
from governance.enforcement.sql import TAKE_SEND_LOCK
from governance.sql.statements import fetch, stored_row
from governance.tenancy.models import Product
from reasoncodes.base.tenancy import in_scope
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.sql import definition_named_sql, definition_runs_sql
from workflows.runs.models import LIVE

DEFINITION = (
    *("id", "organization_id", "product_id", "contract_id", "takes_cases"),
    *("slug", "default_mode", "workflow_timeout_seconds", "snapshot_sha256"),
)
PRODUCT = ("id", "organization_id", "slug")
# The run of a case, and the definition that a new one would follow. A run with a business key is not the case's own.
# $3 is the case.
OF_CASE = (
    """SELECT id FROM workflows_workflowinstance
    WHERE organization_id = $1 AND case_id = $3 AND superseded_by_id IS NULL AND business_key = ''""",
    definition_runs_sql(organization="$1", product="$2"),
)
# The same for a business key, of which only runs that have not ended count. $3 is the slug, $5 the key.
OF_KEY = (
    f"""SELECT id FROM workflows_workflowinstance
    WHERE organization_id = $1 AND definition_slug = $3 AND business_key = $5 AND business_key <> ''
        AND state IN ({", ".join(f"'{state}'" for state in LIVE)})""",  # noqa: S608
    definition_named_sql(organization="$1", product="$2", slug="$3"),
)
NAMED = f"SELECT id FROM ({definition_named_sql(organization='$1', product='$2', slug='$3')}) d"  # noqa: S608
DEFINITION_FOR = f"SELECT id FROM ({definition_runs_sql(organization='$1', product='$2')}) d"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Start:
    """`known`: the event was received before. `definition`: the product's own active one, or the organization's; or the
    one that was asked for. `running`: the run of the case, or of the business key. `under_way`: the organization's
    running runs, counted up to its cap. `arrival`: what intake would check about the definition's contract."""

    known: bool
    definition: WorkflowDefinition | None
    running: UUID | None
    under_way: int
    arrival: OwnArrival | None = None


def start_facts(*, organization_id: UUID, product_id: UUID, case_id: UUID, event_id: UUID | None) -> Start:
    """Also takes the send lock. `event_id` None: the caller knows that the event is new."""
    return _facts(OF_CASE, (organization_id, product_id, case_id, event_id))


def request_facts(
    *, organization_id: UUID, product_id: UUID, slug: str, business_key: str, event_id: UUID | None
) -> Start:
    """The same for a run that was asked for by the definition's slug and a business key."""
    return _facts(OF_KEY, (organization_id, product_id, slug, event_id, business_key))


def _facts(which: tuple[str, str], parameters: tuple[Any, ...]) -> Start:
    # Hand-written SQL passes by the tenant manager, so the scope is checked here.
    if not in_scope(parameters[0]):
        return Start(known=False, definition=None, running=None, under_way=0)
    ((known, running, under_way, *columns),) = fetch(_sql(*which), parameters, first=TAKE_SEND_LOCK)
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


def definition_named(*, organization_id: UUID, product_id: UUID, slug: str) -> WorkflowDefinition | None:
    """The definition that a new run would follow if it was asked for by this slug."""
    if not in_scope(organization_id):
        return None
    found = fetch(NAMED, (organization_id, product_id, slug))
    rows = WorkflowDefinition.objects.select_related("organization", "contract", "product")
    return rows.get(id=found[0][0]) if found else None


@cache
def _sql(running: str, definition: str) -> str:
    """$1 organization, $2 product, $4 the event's own id; $3 and $5 are those of `running` and `definition`."""
    listed = ", ".join([f"d.{name}" for name in DEFINITION] + [f"product.{name}" for name in PRODUCT])
    return f"""
    SELECT EXISTS (SELECT 1 FROM workflows_workflowevent WHERE organization_id = $1 AND event_id = $4::uuid),
        ({running}),
        (SELECT count(*) FROM (SELECT 1 FROM workflows_workflowinstance
         WHERE organization_id = $1 AND state = 'running' LIMIT o.max_concurrency) running),
        {listed}, {own_columns()}
    FROM (SELECT 1) once LEFT JOIN LATERAL ({definition}) d ON TRUE
    LEFT JOIN governance_organization o ON o.id = d.organization_id
    LEFT JOIN governance_contract c ON c.id = d.contract_id
    LEFT JOIN governance_product product ON product.id = d.product_id
    {own_joins(f"'{ENGINE}'")}
    """  # noqa: S608
