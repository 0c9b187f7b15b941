"""What can go wrong, one class per cause. None of these is ever retried behind your back."""

from typing import Any

from holdpoint_client.problem import Problem


class HoldpointError(Exception):
    """Base of everything that this package raises."""


class SettingMissing(HoldpointError):
    """No address, or no key: see HOLDPOINT_URL and HOLDPOINT_KEY."""


class RefUsed(HoldpointError):
    """This `ref` named another request before. One side effect, one ref; another body is another side effect."""


class Unreachable(HoldpointError):
    """No answer before the deadline. With `sent` something may have arrived: ask again under the same `ref`."""

    def __init__(self, why: str, *, sent: bool) -> None:
        self.why, self.sent = why, sent
        super().__init__(f"Holdpoint did not answer: {why}" + ("; the request may have arrived" if sent else ""))


class StillWaiting(HoldpointError):
    """`wait` reached its end, or was cancelled, before anybody decided. Nothing is lost: wait again."""

    def __init__(self, attempt: Any) -> None:
        self.attempt = attempt
        super().__init__(f"attempt {attempt.id} is still {attempt.state}")


class Refused(HoldpointError):
    """The server said no, and why. `retry_after` is in seconds, where the server named a time."""

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        self.problem, self.retry_after = problem, retry_after
        super().__init__(str(problem))


class CredentialRefused(Refused):
    """The key is missing, unknown, expired or revoked."""


class ScopeMissing(Refused):
    """The key does not carry the scope, or only people may do this."""


class Closed(Refused):
    """The contract takes no attempts now. Nothing was stored."""


class NotFound(Refused):
    """There is no such thing in your organization."""


class InvalidRequest(Refused):
    """The request does not have the expected shape, or holds what must not enter the record."""


class KeyConflict(Refused):
    """This key was used for another request."""


class KeyExpired(Refused):
    """This key is past its end. Find out what became of the attempt before you ask anew."""


class WrongState(Refused):
    """The object is not in a state that allows this."""


class NotLeasable(WrongState):
    """Not released, not due, taken, or ended. Do not act."""


class LeaseLost(WrongState):
    """The lease is somebody else's, or over. Stop; a person finds out what happened."""


class TryLater(Refused):
    """Throttled, busy or away, and still so at the deadline."""


class NotPermitted(HoldpointError):
    """A governed function did not run: it was denied, is held, or was done before. `answer` says which."""

    def __init__(self, answer: Any, words: str) -> None:
        self.answer = answer
        super().__init__(words)


class DeniedError(NotPermitted):
    """Denied, with `answer.reason_code`. Asking again changes nothing."""


class HeldError(NotPermitted):
    """A person has to release it first. Call again with the same arguments later: it is the same attempt."""


class AlreadyDone(NotPermitted):
    """It was done before, under this ref. Nothing ran now."""


class TakenElsewhere(NotPermitted):
    """Another process holds the lease for this very action. Nothing ran here."""


class OutcomeUnknown(HoldpointError):
    """It may or may not have happened, and only a person finds out. Never retried by this package.

    With `ran` the function came to its end here, with `result`, and only the report did not arrive.
    """

    def __init__(self, attempt_id: str, words: str, *, ran: bool = False, result: Any = None) -> None:
        self.attempt_id, self.ran, self.result = attempt_id, ran, result
        super().__init__(f"attempt {attempt_id}: {words}")


class WebhookRefused(HoldpointError):
    """Not signed by whoever holds the secret, or too old. Answer 401 and do nothing."""


BY_CODE: dict[str, type[Refused]] = {
    "credential-missing": CredentialRefused,
    "scope-missing": ScopeMissing,
    "attempt-creation-disabled": Closed,
    "idempotency-conflict": KeyConflict,
    "idempotency-key-expired": KeyExpired,
    "not-leasable": NotLeasable,
    "lease-lost": LeaseLost,
}
BY_STATUS: dict[int, type[Refused]] = {
    400: InvalidRequest,
    401: CredentialRefused,
    403: ScopeMissing,
    404: NotFound,
    409: WrongState,
    411: InvalidRequest,
    412: WrongState,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    425: TryLater,
    429: TryLater,
    500: TryLater,
    502: TryLater,
    503: TryLater,
    504: TryLater,
}


def refusal(problem: Problem, retry_after: float | None) -> Refused:
    if problem.code == "idempotency-in-progress":
        return TryLater(problem, retry_after)
    kind = BY_CODE.get(problem.code)
    if kind is None and problem.status == 403 and problem.ours:  # a rule's own 403: second-person-needed, own-work …
        kind = Refused
    return (kind or BY_STATUS.get(problem.status, Refused))(problem, retry_after)
