"""States and moves of runs and steps, as data: models, migrations (triggers), engine and tests use the same."""

from enum import StrEnum


class InstanceStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING_APPROVAL = "waiting_approval"
    HALTED = "halted"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


INSTANCE_MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        ("queued", "running"),
        ("queued", "waiting_approval"),
        ("queued", "completed"),
        ("queued", "halted"),
        ("queued", "cancelled"),
        ("running", "waiting_approval"),
        ("running", "completed"),
        ("running", "halted"),
        ("running", "cancelled"),
        ("waiting_approval", "running"),
        ("waiting_approval", "completed"),
        ("waiting_approval", "halted"),
        ("waiting_approval", "cancelled"),
        ("halted", "running"),
        ("halted", "waiting_approval"),
        ("halted", "completed"),
        ("halted", "cancelled"),
    }
)
ENDED: frozenset[str] = frozenset({"completed", "cancelled"})


class StepStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    WAITING_APPROVAL = "waiting_approval"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


# `pending`: the step's retry is due at `next_eligible_at`, or the gate put it off because a throttle or a cap was full.
STEP_OPEN: frozenset[str] = frozenset({"pending", "in_progress", "waiting_approval"})
STEP_MOVES: frozenset[tuple[str, str]] = frozenset(
    {(source, target) for source in STEP_OPEN for target in StepStatus if source != target and target != "skipped"}
    | {("pending", "skipped"), ("completed", "skipped"), ("failed", "skipped"), ("timed_out", "skipped")}
)


class InterventionAction(StrEnum):
    RETRY_STEP = "retry_step"
    CANCEL = "cancel"
    SUPERSEDE = "supersede"
    HALT = "halt"
    RESUME = "resume"
    MIGRATE = "migrate"


# What a person does to one run, or to many that a filter finds. A migration has an entry point of its own.
PLAIN_ACTIONS: tuple[InterventionAction, ...] = tuple(
    action for action in InterventionAction if action is not InterventionAction.MIGRATE
)


class Drift(StrEnum):
    SKIPPED_GATE = "skipped_gate"
    WRONG_ORDER = "wrong_order"
    UNREQUESTED = "unrequested_completion"
