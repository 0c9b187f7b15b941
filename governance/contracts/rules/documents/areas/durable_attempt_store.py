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
        "Decides in which class of storage attempts live and when evidence of them is made, and confirms what "
        "is kept of every attempt. Nothing on the list can be left out, because the record must be able to "
        "show years later who asked, what was decided and what happened."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "storage_class": choice(
                description="Kind of store. Only a transactional database can hold work and record together.",
                options=("postgresql",),
            ),
            "keep": array(
                description="What is kept per attempt. All entries are mandatory.",
                items=choice(description="Kind of record.", options=KEPT),
                min_items=len(KEPT),
                max_items=len(KEPT),
            ),
        },
        optional={
            "evidence": choice(
                description=(
                    "Whether an evidence bundle is made when an attempt or a run ends, or only on request. Without it: "
                    "at the end for workflow runs and for attempts of high risk."
                ),
                options=("at_end", "on_request"),
            ),
        },
    ),
    default={"storage_class": "postgresql", "keep": list(KEPT)},
)
