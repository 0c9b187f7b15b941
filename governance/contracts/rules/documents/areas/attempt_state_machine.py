"""The reference lifecycle. It is written out, so that its owner approves exactly these states and moves."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import document, fixed

LIFECYCLE = "reference-v1"
STATES = (
    "received",
    "deduplicated",
    "preflight-denied",
    "review-required",
    "approved-for-execution",
    "completed",
    "failed-quarantined",
)
FINAL_STATES = ("preflight-denied", "completed", "failed-quarantined")
# (from, to, only_when). The lifecycle service must prove `nothing_ran` or `before_first_lease` before it moves.
TRANSITIONS: tuple[tuple[str, str, str | None], ...] = (
    ("received", "deduplicated", None),
    ("deduplicated", "preflight-denied", None),
    ("deduplicated", "review-required", None),
    ("deduplicated", "approved-for-execution", None),
    ("review-required", "approved-for-execution", None),
    ("review-required", "preflight-denied", "nothing_ran"),
    ("approved-for-execution", "completed", None),
    ("approved-for-execution", "failed-quarantined", None),
    ("approved-for-execution", "preflight-denied", "before_first_lease"),
)
_TITLE = "Attempt state machine"
_DEFAULT = {
    "lifecycle": LIFECYCLE,
    "initial_state": STATES[0],
    "states": list(STATES),
    "final_states": list(FINAL_STATES),
    "transitions": [{"from": source, "to": target, "only_when": only} for source, target, only in TRANSITIONS],
}

AREA = Area(
    name="attempt_state_machine",
    owner_group="workflow-platform",
    title=_TITLE,
    description=(
        "States the lifecycle that attempts of this contract follow. There is one lifecycle, the reference "
        "one: its owner confirms that this is the version the contract was reviewed against. States and "
        "moves can be neither added nor removed; a new lifecycle would be a new named version of the "
        "program."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "lifecycle": fixed(description="Name and version of the lifecycle in force.", value=LIFECYCLE),
            "initial_state": fixed(description="State in which every attempt starts.", value=_DEFAULT["initial_state"]),
            "states": fixed(description="All states an attempt can be in.", value=_DEFAULT["states"]),
            "final_states": fixed(
                description="States that are never left; what follows is a new attempt.",
                value=_DEFAULT["final_states"],
            ),
            "transitions": fixed(
                description="All legal moves, each with the condition that must be proven first, if any.",
                value=_DEFAULT["transitions"],
            ),
        },
    ),
    default=_DEFAULT,
)
