"""States and moves of definitions, instances and steps, as data: models, triggers, engine and tests read the same."""

from enum import StrEnum


class DefinitionStatus(StrEnum):
    DRAFT = "draft"
    ACTIVE = "active"
    ARCHIVED = "archived"


DEFINITION_MOVES: frozenset[tuple[str, str]] = frozenset(
    {("draft", "active"), ("active", "archived"), ("draft", "archived")}
)


class Mode(StrEnum):
    ACTIVE = "active"
    CLIENT_DRIVEN = "client_driven"


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


# `pending` is a step whose retry is due at `next_eligible_at`, or which waits for a place in a cap.
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


class EventOutcome(StrEnum):
    """What an inbound event did."""

    ADVANCED = "advanced"
    STALE = "stale"  # its correlation is not the current one
    LATE = "late"  # the instance is halted or has ended
    DRIFT = "drift"  # client-driven: not what the definition expected now
    UNMATCHED = "unmatched"  # no instance, or no active definition: kept, and driven again by a person
    IGNORED = "ignored"  # known, and of no consequence


class Drift(StrEnum):
    SKIPPED_GATE = "skipped_gate"
    WRONG_ORDER = "wrong_order"
    UNREQUESTED = "unrequested_completion"


class OutboxStatus(StrEnum):
    PENDING = "pending"
    SENT = "sent"
    PARKED = "parked"  # refused by its stream again and again; what follows in its instance waits for it


class ParkedStatus(StrEnum):
    """Of a message on a stream that could not be taken in."""

    PARKED = "parked"
    TAKEN = "taken"  # driven again by a person
    DISMISSED = "dismissed"  # a person found that nothing is to be done


class ParkedWhy(StrEnum):
    SIGNATURE = "signature"  # no key that lives has signed it
    SCOPE = "scope"  # the key may not send events
    UNREADABLE = "unreadable"
    WRONG_STREAM = "wrong_stream"
    INVALID = "invalid"  # the envelope or the payload does not fit its schema
    FOREIGN = "foreign"  # names another organization than the key's
    REFUSED = "refused"
    DELIVERIES = "deliveries"  # taken up again and again, and never finished


class DeliveryState(StrEnum):
    """Of a webhook. An ended one goes back to `pending` when a person asks for it again."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


DELIVERY_MOVES: frozenset[tuple[str, str]] = frozenset(
    {("pending", "delivered"), ("pending", "failed"), ("delivered", "pending"), ("failed", "pending")}
)


class DisabledWhy(StrEnum):
    """Why an endpoint gets nothing."""

    PERSON = "person"
    GONE = "gone"  # it answered 410
    FAILING = "failing"  # for days
    REMOVED = "removed"
