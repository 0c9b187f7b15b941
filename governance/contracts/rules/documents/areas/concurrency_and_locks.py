"""How many attempts may be under way at the same time, and what happens when all slots are taken."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import choice, closed_object, document, fixed, integer

_TITLE = "Concurrency and lock model"
_MOST = 10_000


def _limit(what: str) -> dict[str, object]:
    return integer(
        description=f"Attempts under way at once per {what}; null leaves only the organization's own cap.",
        minimum=1,
        maximum=_MOST,
        nullable=True,
    )


_LIMITS = closed_object(
    description="Attempts that may be under way at the same time, of whatever contract.",
    fields={
        "per_key": fixed(description="One attempt per idempotency key, always.", value=1),
        "per_context": _limit("patient context"),
        "per_workflow": _limit("workflow"),
        "per_tenant": _limit("organization"),
    },
    optional={
        "per_user": _limit("person who is responsible for the calling service"),
        "per_region": _limit("region, in all organizations that have the region"),
    },
)

AREA = Area(
    name="concurrency_and_locks",
    owner_group="platform-reliability",
    title=_TITLE,
    description=(
        "Decides how many attempts of this contract may be under way at the same time per idempotency key, "
        "per patient context, per workflow, per person, per organization and per region, and whether a further "
        "attempt is refused at once or waits for a free slot."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "limits": _LIMITS,
            "when_busy": choice(
                description="What a further attempt gets: deny refuses it with 429, queue lets it wait.",
                options=("deny", "queue"),
            ),
            "queue_timeout_seconds": integer(
                description=("How long a queued attempt waits before it is denied. Read only when when_busy is queue."),
                minimum=1,
                maximum=3_600,
            ),
            "retry_after_seconds": integer(
                description="Retry-After that a refused caller is given.", minimum=1, maximum=3_600
            ),
        },
    ),
    default={
        "limits": {"per_key": 1, "per_context": 1, "per_workflow": 10, "per_tenant": 50},
        "when_busy": "deny",
        "queue_timeout_seconds": 30,
        "retry_after_seconds": 5,
    },
)
