"""Refusals of this app."""

from reasoncodes.errors import DomainError


class KeyMissing(DomainError):
    """The contract demands an `Idempotency-Key` header, and there is none.

    Make a key per side effect, store it before the first send, and send the same one with every retry.
    """

    code = "idempotency-key-missing"
    status = 400
    title = "Idempotency-Key missing"


class KeyInvalid(DomainError):
    """The `Idempotency-Key` does not have the format that the contract demands.

    Length and characters are in the contract's idempotency_key_policy document. A UUID always fits.
    """

    code = "idempotency-key-invalid"
    status = 400
    title = "Idempotency-Key not valid"


class KeyInProgress(DomainError):
    """The first request with this key is still being taken in.

    Repeat the request after the time in `Retry-After`; you will get the first answer.
    """

    code = "idempotency-in-progress"
    status = 409
    title = "Still being taken in"
    default_headers = {"Retry-After": "1"}


class KeyConflict(DomainError):
    """This key was used before for another request.

    `errors` names the parts that differ, never their values. Use a new key for a new side effect.
    """

    code = "idempotency-conflict"
    status = 422
    title = "Idempotency-Key used for something else"


class KeyExpired(DomainError):
    """This key has passed its end. It stays known so that nothing happens twice.

    Find out what became of the first attempt before you ask again with a new key.
    """

    code = "idempotency-key-expired"
    status = 410
    title = "Idempotency-Key expired"


class AttemptDenied(DomainError):
    """The request was read, decided on and denied. The denial is on record.

    `reason_code` says why; `/attempts/{attempt_id}/decision` shows every evaluator's verdict in words.
    """

    code = "attempt-denied"
    status = 403
    title = "Attempt denied"


class NotEligible(DomainError):
    """This attempt may not be repeated.

    The contract's retry_and_replay document says from which states a replay is allowed. A quarantined attempt is
    repeated by a person's order, from its quarantine case.
    """

    code = "not-eligible"
    status = 409
    title = "Not eligible for replay"


class FindingNeeded(DomainError):
    """A person must first say what happened.

    Look at the receiver's side, then send `finding` (happened or did_not_happen) with a reference to the evidence.
    """

    code = "finding-needed"
    status = 409
    title = "A finding is needed"


class IncidentNeeded(DomainError):
    """This contract demands that an incident is linked before the case is resolved.

    Link it first; the case stays open until then.
    """

    code = "incident-needed"
    status = 409
    title = "An incident is needed"


class RateLimited(DomainError):
    """More requests than the contract allows, or too many attempts under way.

    Wait for the time in `Retry-After`. The key of this request was not used up.
    """

    code = "rate-limited"
    status = 429
    title = "Rate limited"


class ThrottleUnavailable(DomainError):
    """The counters that guard this contract cannot be read, so the answer is no.

    Holdpoint does not let anything pass uncounted. Retry after the time in `Retry-After`; operators find the failing
    dependency at `/health/ready`.
    """

    code = "throttle-unavailable"
    status = 503
    title = "Throttles unavailable"
    default_reason_code = "throttle_unavailable"
