"""Where attempts are stored and what is kept of each of them."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import array, choice, document

KEPT = (
    "identity",
    "idempotency_record",
    "transitions",
    "decisions",
    "reviews",
    "receipts",
    "trace_references",
    "retry_counters",
    "audit_links",
)
_TITLE = "Durable attempt store"

AREA = Area(
    name="durable_attempt_store",
    owner_group="platform-architecture",
    title=_TITLE,
    description=(
        "Decides in which class of storage attempts live, whether their tables are split by month, and "
        "confirms what is kept of every attempt. Nothing on the list can be left out, because the record "
        "must be able to show years later who asked, what was decided and what happened."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "storage_class": choice(
                description="Kind of store. Only a transactional database can hold work and record together.",
                options=("postgresql",),
            ),
            "partitioning": choice(
                description="Whether attempt tables are split by month of receipt.",
                options=("none", "monthly"),
            ),
            "keep": array(
                description="What is kept per attempt. All entries are mandatory.",
                items=choice(description="Kind of record.", options=KEPT),
                min_items=len(KEPT),
                max_items=len(KEPT),
            ),
        },
    ),
    default={"storage_class": "postgresql", "partitioning": "none", "keep": list(KEPT)},
)
