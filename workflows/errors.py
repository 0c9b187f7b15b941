"""Refusals of this app; the docstring is the help page under `/problems/`."""

from reasoncodes.errors import DomainError


class EventInvalid(DomainError):
    """The event does not match the schema of its type, so it was not accepted.

    `errors` lists every place that is wrong, by pointer and never with a value. `GET /api/v1/event-types` returns the
    JSON Schema of every type and version. Correct the event and send it again with the same event_id.
    """

    code = "event-invalid"
    status = 422
    title = "The event is invalid"
    default_reason_code = "invalid_input"


class DefinitionInvalid(DomainError):
    """The definition has errors and cannot be published.

    `errors` lists all findings at once: the rule, the place in the document, what to do, and the nearest name that
    exists. Nothing was changed. Correct the definition and publish again. `POST …/validate` runs the same checks
    without publishing.
    """

    code = "definition-invalid"
    status = 422
    title = "The definition is invalid"
    default_reason_code = "invalid_input"


class InterventionNotLegal(DomainError):
    """The instance is not in a state that allows this intervention.

    An ended instance cannot change. You can resume only a halted one. You can retry a step that failed or timed out, or
    the step at which the workflow halted. After the workflow's deadline nothing continues. Check the state of the
    instance and choose again; `supersede` starts the case anew.
    """

    code = "intervention-not-legal"
    status = 409
    title = "Not possible in this state"


class OutcomeUnresolved(DomainError):
    """The step's last request was sent, and nobody knows whether it took effect.

    This effect must not happen twice. Open the quarantine case, find out what happened, and record the finding. If it
    is `did_not_happen`, you can retry the step.
    """

    code = "outcome-unresolved"
    status = 409
    title = "The last outcome is unknown"
    default_reason_code = "outcome_unknown"


class NoPlaceFree(DomainError):
    """The organization has reached its limit of concurrent runs, so this run stays halted.

    Try again when one of them has ended, or ask an administrator to raise the limit. Runs that have not started yet
    wait in a queue and start on their own. A run that a person stopped continues only when a person resumes it.
    """

    code = "no-place-free"
    status = 409
    title = "No place is free"
    default_reason_code = "concurrency_limit"


class MessageStillRefused(DomainError):
    """Holdpoint tried the parked message again and still cannot accept it. It stays parked.

    A retry skips no check. The message has to be signed by a live key with `orchestrator:write`, name that key's
    organization and match the schema of its type. Correct what is named, or have the module send the event again with
    the same event_id.
    """

    code = "message-still-refused"
    status = 409
    title = "The message is still refused"


class MessageGone(DomainError):
    """The message is no longer in its stream, so it cannot be processed again.

    Only the stream keeps the content of a parked message, for seven days. Have the module send the event again with the
    same event_id, and dismiss this row.
    """

    code = "message-gone"
    status = 410
    title = "The message is gone"


class StreamsUnavailable(DomainError):
    """The event streams cannot be reached, so the message could not be read.

    Nothing was changed. Check `/health/ready`, and try again when `streams` is up.
    """

    code = "streams-unavailable"
    status = 503
    title = "The streams are not available"
    default_reason_code = "record_unavailable"
