"""Limits on requests per time, when a caller is suspended for misuse, and the rules for shutdowns."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import array, choice, closed_object, document, fixed, integer

DIMENSIONS = ("tenant", "user", "service", "workflow", "context", "region")
SHUTDOWN_SCOPES = ("global", "organization", "contract", "connector", "region")
_TITLE = "Throttles and misuse"
_DAY = 86_400
_DEFAULT_PER_MINUTE = {
    "tenant": 300,
    "user": 60,
    "service": 120,
    "workflow": 120,
    "context": 10,
    "region": 6_000,  # of all organizations of the region together
}


def _window(what: str) -> dict[str, object]:
    return integer(description=f"Length of the window in which {what}, in seconds.", minimum=1, maximum=_DAY)


_LIMIT = closed_object(
    description="One throttle.",
    fields={
        "per": choice(description="Whose requests are counted together.", options=DIMENSIONS),
        "limit": integer(description="Requests accepted within one window.", minimum=1, maximum=1_000_000),
        "window_seconds": _window("requests are counted"),
    },
)
_MISUSE = closed_object(
    description="When violations of a caller count as misuse.",
    fields={
        "strikes": integer(
            description="Recorded violations within the window that are misuse.", minimum=1, maximum=100
        ),
        "window_seconds": _window("violations are counted"),
        "action": choice(
            description="What follows: the service account is suspended until a person reinstates it.",
            options=("suspend_service_account",),
        ),
    },
)
_SHUTDOWN = closed_object(
    description="How shutdowns reach this contract.",
    fields={
        "scopes": fixed(
            description="Scopes of shutdowns that stop this contract: all of them.",
            value=list(SHUTDOWN_SCOPES),
        ),
        "release_needs_two_people": fixed(
            description="The person who engaged a shutdown cannot release it.", value=True
        ),
        "propose_after_quarantined": integer(
            description=("New quarantine cases within the window after which operators are asked to shut down."),
            minimum=1,
            maximum=1_000,
        ),
        "propose_window_seconds": _window("quarantine cases are counted"),
    },
)

AREA = Area(
    name="throttles_and_misuse",
    owner_group="security-operations",
    title=_TITLE,
    description=(
        "Decides how many requests are accepted per organization, user, service account, workflow, patient "
        "context, and region (of all its organizations), how many violations suspend a service account, and when "
        "operators are asked whether to shut the contract down. Counters that cannot be read count as exceeded. Only "
        "people engage and release shutdowns, apart from deny mode."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "limits": array(
                description="Throttles. Each of the six kinds is limited at least once; a request must pass all.",
                items=_LIMIT,
                min_items=len(DIMENSIONS),
                max_items=24,
            ),
            "misuse": _MISUSE,
            "shutdown_rules": _SHUTDOWN,
        },
    ),
    default={
        "limits": [{"per": per, "limit": limit, "window_seconds": 60} for per, limit in _DEFAULT_PER_MINUTE.items()],
        "misuse": {"strikes": 5, "window_seconds": 600, "action": "suspend_service_account"},
        "shutdown_rules": {
            "scopes": list(SHUTDOWN_SCOPES),
            "release_needs_two_people": True,
            "propose_after_quarantined": 5,
            "propose_window_seconds": 600,
        },
    },
)
