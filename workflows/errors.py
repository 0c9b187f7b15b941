"""Refusals of this app; the docstring is the help page under `/problems/`."""

from reasoncodes.errors import DomainError


class EventInvalid(DomainError):
    """The event does not have the shape of its type, so it was not taken in.

    `errors` lists every place that is wrong, by pointer, never with a value. `GET /api/v1/event-types` gives the JSON
    Schema of every type and version. Correct the event and send it again with the same event_id.
    """

    code = "event-invalid"
    status = 422
    title = "The event is invalid"
    default_reason_code = "invalid_input"


class DefinitionInvalid(DomainError):
    """The definition cannot be published as it is.

    `errors` lists all findings at once: the rule, where in the document, what to do, and the nearest name that exists.
    Nothing was changed. `POST …/validate` runs the same checks without publishing.
    """

    code = "definition-invalid"
    status = 422
    title = "The definition is invalid"
    default_reason_code = "invalid_input"


class InterventionNotLegal(DomainError):
    """What you asked for is not possible in the state that the instance is in.

    An ended instance stays as it is. Only a halted one can be resumed; a step can be retried when it has failed or
    timed out, or when the workflow halted at it; and nothing goes on after the workflow's deadline. Look at the
    instance's state and choose again; `supersede` starts the case anew.
    """

    code = "intervention-not-legal"
    status = 409
    title = "Not possible in this state"


class OutcomeUnresolved(DomainError):
    """The step's last request was sent and nobody knows whether it took effect.

    Its effect is of the kind that must not happen twice. Open its quarantine case, find out, and record the finding;
    with `did_not_happen` the step can be retried.
    """

    code = "outcome-unresolved"
    status = 409
    title = "The last outcome is unknown"
    default_reason_code = "outcome_unknown"


class NoPlaceFree(DomainError):
    """The organization has as many runs under way as it may have, so this one stays halted.

    Try again when one of them has ended, or ask an administrator to raise the organization's limit. Runs that have not
    begun yet queue by themselves; one that a person stopped goes on only when a person says so.
    """

    code = "no-place-free"
    status = 409
    title = "No place is free"
    default_reason_code = "concurrency_limit"


class MessageStillRefused(DomainError):
    """The parked message was tried again and cannot be taken in as it is; it stays parked.

    Driving again lowers no check: it must be signed by a live key with `orchestrator:write`, name that key's
    organization and fit the schema of its type. Correct what is named, or have the module send the
    event again, with the same event_id.
    """

    code = "message-still-refused"
    status = 409
    title = "The message is still refused"


class MessageGone(DomainError):
    """The message is no longer in its stream, so there is nothing to drive again.

    What a parked message says is kept in its stream only, for seven days. Have the module send the event again, with
    the same event_id, and dismiss this row.
    """

    code = "message-gone"
    status = 410
    title = "The message is gone"


class StreamsUnavailable(DomainError):
    """The streams cannot be reached, so the message could not be read.

    Nothing was changed. Look at `/health/ready`, and try again when `streams` is well.
    """

    code = "streams-unavailable"
    status = 503
    title = "The streams are not available"
    default_reason_code = "record_unavailable"
