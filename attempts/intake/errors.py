"""Errors of intake: the idempotency key, denials and throttles."""

from reasoncodes.base.errors import DomainError


class KeyMissing(DomainError):
    """The contract requires an `Idempotency-Key` header, and the request has none.

    Make one key per side effect, store it before you first send the request, and send the same key with every retry.
    """

    code = "idempotency-key-missing"
    status = 400
    title = "Idempotency-Key missing"


class KeyInvalid(DomainError):
    """The `Idempotency-Key` does not have the format that the contract requires.

    The contract's idempotency_key_policy document gives the length and the allowed characters. A key is kept for ever,
    so one that looks like a person's name, personal data or a secret is refused too; `errors` names the rule. A UUID
    always fits.
    """

    code = "idempotency-key-invalid"
    status = 400
    title = "Idempotency-Key not valid"


class KeyInProgress(DomainError):
    """Holdpoint is still processing the first request with this key.

    Repeat the request after the time in `Retry-After`. You will get the answer to the first request.
    """

    code = "idempotency-in-progress"
    status = 409
    title = "Still being taken in"
    default_headers = {"Retry-After": "1"}


class KeyConflict(DomainError):
    """This key was already used for a different request.

    `errors` names the parts that differ, never their values. Use a new key for a new side effect.
    """

    code = "idempotency-conflict"
    status = 422
    title = "Idempotency-Key used for something else"


class KeyExpired(DomainError):
    """This key has expired. Holdpoint still knows it, so that nothing happens twice.

    Find out what became of the first attempt before you ask again with a new key.
    """

    code = "idempotency-key-expired"
    status = 410
    title = "Idempotency-Key expired"


class AttemptDenied(DomainError):
    """Holdpoint decided on this request and denied it. The denial is on record.

    `reason_code` says why. `/attempts/{attempt_id}/decision` shows the verdict of every evaluator in words.
    """

    code = "attempt-denied"
    status = 403
    title = "Attempt denied"


class RateLimited(DomainError):
    """The contract does not allow this many requests, or this many attempts at the same time.

    Wait for the time in `Retry-After`, then send the request again. Its idempotency key is still unused.
    """

    code = "rate-limited"
    status = 429
    title = "Rate limited"


class ThrottleUnavailable(DomainError):
    """Holdpoint cannot read the counters that limit this contract, so it denies the request.

    It lets no request pass uncounted. Retry after the time in `Retry-After`. Operators find the failing dependency at
    `/health/ready`.
    """

    code = "throttle-unavailable"
    status = 503
    title = "Throttles unavailable"
    default_reason_code = "throttle_unavailable"
