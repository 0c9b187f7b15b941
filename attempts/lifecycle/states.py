"""States and transitions of an attempt as data; the model, the database trigger and the tests read them from here.

Runtime modes, slot scopes and two names that several folders need are here too. Source document S1 lists the states.
"""

from enum import StrEnum
from typing import Any

ENGINE = "workflow-engine"  # slug of the service account of the engine, which opens the attempts of workflow steps


class AttemptState(StrEnum):
    RECEIVED = "received"
    DEDUPLICATED = "deduplicated"
    PREFLIGHT_DENIED = "preflight-denied"
    REVIEW_REQUIRED = "review-required"
    APPROVED = "approved-for-execution"
    COMPLETED = "completed"
    QUARANTINED = "failed-quarantined"


ATTEMPT_MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        ("received", "deduplicated"),
        ("deduplicated", "preflight-denied"),
        ("deduplicated", "review-required"),
        ("deduplicated", "approved-for-execution"),
        ("review-required", "approved-for-execution"),
        ("review-required", "preflight-denied"),
        ("approved-for-execution", "completed"),
        ("approved-for-execution", "failed-quarantined"),
        ("approved-for-execution", "preflight-denied"),
    }
)
FINAL_STATES: frozenset[str] = frozenset({"preflight-denied", "completed", "failed-quarantined"})


class PatientContext(StrEnum):
    """What an attempt shows about its patient context, with or without a reference to one."""

    GIVEN = "given"
    ABSENT = "absent"
    NOT_APPLICABLE = "not_applicable"


class RuntimeMode(StrEnum):
    ACTIVE = "active"
    CLIENT_DRIVEN = "client_driven"
    SHADOW = "shadow"


class SlotScope(StrEnum):
    """Whose attempts a cap counts. `holds` are those that wait for people; all others count what is under way."""

    KEY = "key"
    CONTEXT = "context"
    WORKFLOW = "workflow"
    USER = "user"
    TENANT = "tenant"
    REGION = "region"
    HOLDS = "holds"


def is_ours_to_execute(attempt: Any) -> bool:
    """Whether a worker of ours may execute it now: released, due, neither client-driven nor a shadow."""
    return bool(
        attempt.state == AttemptState.APPROVED
        and attempt.next_eligible_at is not None
        and attempt.runtime_mode == RuntimeMode.ACTIVE
        and attempt.connector != "external"
    )


DISPATCH = "attempts.tasks.execution.attempt_dispatch"
STEP_DISPATCH = "attempts.tasks.execution.step_dispatch"
