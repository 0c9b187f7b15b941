"""States and moves of an attempt, as data: model, database trigger and tests read the same (S1, exactly these)."""

from enum import StrEnum
from typing import Any

ENGINE = "workflow-engine"  # the account in whose name the engine opens attempts


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


class RuntimeMode(StrEnum):
    ACTIVE = "active"
    CLIENT_DRIVEN = "client_driven"
    SHADOW = "shadow"


class SlotScope(StrEnum):
    KEY = "key"
    CONTEXT = "context"
    WORKFLOW = "workflow"
    TENANT = "tenant"


def is_ours_to_execute(attempt: Any) -> bool:
    """Released, and Holdpoint itself calls the adapter: not the caller's own doing, and no shadow."""
    return bool(
        attempt.state == AttemptState.APPROVED
        and attempt.next_eligible_at is not None
        and attempt.runtime_mode == RuntimeMode.ACTIVE
        and attempt.connector != "external"
    )


DISPATCH = "attempts.tasks.execution.attempt_dispatch"
