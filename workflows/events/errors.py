"""Refusals of this app; the docstring is the help page under `/problems/`."""

from reasoncodes.base.errors import DomainError


class EventInvalid(DomainError):
    """The event does not match the schema of its type, so it was not accepted.

    `errors` lists every place that is wrong, by pointer and never with a value. `GET /api/v1/event-types` returns the
    JSON Schema of every type and version. Correct the event and send it again with the same event_id.
    """

    code = "event-invalid"
    status = 422
    title = "The event is invalid"
    default_reason_code = "invalid_input"


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
