"""`@governed`: a function that runs only with permission, at most once per `ref`, and whose end is reported.

Ask, lease, run, report. If the process dies between lease and report, the record says that the outcome is unknown, and
calling again runs nothing: a person finds out first.
"""

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

from holdpoint_client.async_client import AsyncHoldpoint
from holdpoint_client.client import Holdpoint
from holdpoint_client.errors import (
    AlreadyDone,
    DeniedError,
    HeldError,
    HoldpointError,
    LeaseLost,
    NotLeasable,
    OutcomeUnknown,
    StillWaiting,
    TakenElsewhere,
    Unreachable,
)
from holdpoint_client.handling import Success, failure_of
from holdpoint_client.heart import AsyncHeart, Heart
from holdpoint_client.reporting import report, report_async
from holdpoint_client.results import BY_STATE, Action, Allowed, Answer, Attempt, Completed, Denied, Held, Lease

P = ParamSpec("P")
R = TypeVar("R")
_lease: ContextVar[Lease] = ContextVar("holdpoint_lease")


def current_lease() -> Lease:
    """Inside a governed function: its lease, with the `effect_key` to send on."""
    return _lease.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a call of the function is asked for. The callables get the function's own arguments."""

    contract: str
    version: int
    ref: Callable[..., str]
    action: Callable[..., Action | Mapping[str, Any]]
    metadata: Callable[..., Mapping[str, Any]] | None
    patient_context_ref: Callable[..., str] | None
    report: Callable[[Any], Success] | None
    wait: float

    def asked(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        context = self.patient_context_ref
        return {
            "contract": self.contract,
            "version": self.version,
            "ref": self.ref(*args, **kwargs),
            "action": self.action(*args, **kwargs),
            "metadata": self.metadata(*args, **kwargs) if self.metadata else None,
            "patient_context_ref": context(*args, **kwargs) if context else None,
            "mode": "client_driven",
        }

    def success(self, result: Any) -> Success:
        return self.report(result) if self.report else Success()


def governed(
    client: Holdpoint | AsyncHoldpoint | None = None,
    *,
    contract: str,
    version: int = 1,
    ref: Callable[..., str],
    action: Callable[..., Action | Mapping[str, Any]],
    metadata: Callable[..., Mapping[str, Any]] | None = None,
    patient_context_ref: Callable[..., str] | None = None,
    report: Callable[[Any], Success] | None = None,
    wait: float = 0.0,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """For plain and for async functions. `wait`: seconds to wait for people before HeldError is raised. `report` turns
    the function's result into what may enter the record; without it nothing of the result does. Without a client one
    is made from the environment at the first call."""
    terms = Terms(
        contract=contract,
        version=version,
        ref=ref,
        action=action,
        metadata=metadata,
        patient_context_ref=patient_context_ref,
        report=report,
        wait=wait,
    )

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function):
            return cast(Callable[P, R], _async(client, terms, function))
        return _plain(client, terms, function)

    return decorate


def _plain(client: Any, terms: Terms, function: Callable[P, R]) -> Callable[P, R]:
    made = functools.cache(lambda: _fitting(client, Holdpoint))

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        holdpoint = made()
        answer = holdpoint.attempt(**terms.asked(*args, **kwargs))
        if isinstance(answer, Held) and terms.wait:
            answer = _waited(answer, lambda: holdpoint.wait(answer.attempt.id, timeout=terms.wait))
        attempt = permitted(answer)
        try:
            lease = holdpoint.lease(attempt.id)
        except Unreachable as error:
            raise lease_in_doubt(answer, error) from error
        except NotLeasable as error:
            raise not_leasable(answer, error, holdpoint.get(attempt.id)) from error
        return _run(holdpoint, lease, terms, lambda: function(*args, **kwargs))

    return wrapper


def _run(client: Holdpoint, lease: Lease, terms: Terms, function: Callable[[], R]) -> R:
    token = _lease.set(lease)
    try:
        with Heart(client, lease):
            result = function()
    except BaseException as error:
        _tell(client, lease, error)
        raise
    finally:
        _lease.reset(token)
    try:
        report(client, lease, terms.success(result))
    except HoldpointError as error:
        raise _unreported(lease, error, result) from error
    return result


def _async(client: Any, terms: Terms, function: Callable[..., Any]) -> Callable[..., Any]:
    made = functools.cache(lambda: _fitting(client, AsyncHoldpoint))

    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        holdpoint = made()
        answer = await holdpoint.attempt(**terms.asked(*args, **kwargs))
        if isinstance(answer, Held) and terms.wait:
            try:
                found = await holdpoint.wait(answer.attempt.id, timeout=terms.wait)
            except StillWaiting as error:
                found = error.attempt
            answer = answer_for(answer, found)
        attempt = permitted(answer)
        try:
            lease = await holdpoint.lease(attempt.id)
        except Unreachable as error:
            raise lease_in_doubt(answer, error) from error
        except NotLeasable as error:
            raise not_leasable(answer, error, await holdpoint.get(attempt.id)) from error
        return await _run_async(holdpoint, lease, terms, lambda: function(*args, **kwargs))

    return wrapper


async def _run_async(client: AsyncHoldpoint, lease: Lease, terms: Terms, function: Callable[[], Any]) -> Any:
    """A function whose lease is lost is not cancelled: it may be in the middle. `current_lease().check()` tells."""
    token = _lease.set(lease)
    try:
        async with AsyncHeart(client, lease):
            result = await function()
    except BaseException as error:
        await _tell_async(client, lease, error)
        raise
    finally:
        _lease.reset(token)
    try:
        await asyncio.shield(report_async(client, lease, terms.success(result)))
    except HoldpointError as error:
        raise _unreported(lease, error, result) from error
    return result


def permitted(answer: Answer) -> Attempt:
    """The attempt, if the function may be tried; otherwise why not."""
    attempt = answer.attempt
    if isinstance(answer, Allowed):
        return attempt
    if isinstance(answer, Denied):
        raise DeniedError(answer, f"attempt {attempt.id} was denied: {attempt.reason_code or 'see its decision'}")
    if isinstance(answer, Held):
        raise HeldError(answer, f"attempt {attempt.id} waits for a person")
    if isinstance(answer, Completed):
        raise AlreadyDone(answer, f"attempt {attempt.id} was done before")
    raise OutcomeUnknown(attempt.id, "failed or unknown; it is in quarantine until a person resolves it")


def lease_in_doubt(answer: Answer, error: Unreachable) -> HoldpointError:
    """Nothing ran. With a lost answer the lease may be ours, but without its token: it ends as unknown by itself."""
    if not error.sent:
        return error
    words = "the lease's answer was lost; nothing ran here, and a person has to say so"
    return OutcomeUnknown(answer.attempt.id, words)


def not_leasable(answer: Answer, error: NotLeasable, attempt: Attempt) -> HoldpointError:
    """Why, by what the attempt is by now."""
    try:
        permitted(answer_for(answer, attempt))
    except HoldpointError as found:
        return found
    return TakenElsewhere(answer, f"attempt {attempt.id} is leased elsewhere, or may not run yet: {error}")


def answer_for(answer: Answer, attempt: Attempt) -> Answer:
    return BY_STATE.get(attempt.state, Held)(attempt, answer.key, answer.replayed)


def _waited(answer: Held, wait: Callable[[], Attempt]) -> Answer:
    try:
        return answer_for(answer, wait())
    except StillWaiting as error:
        return answer_for(answer, error.attempt)


def _tell(client: Holdpoint, lease: Lease, error: BaseException) -> None:
    """The function's own error is what the caller has to see; that the report failed is added to it."""
    try:
        report(client, lease, failure_of(error))
    except HoldpointError as lost:
        error.add_note(unreported_words(lost))


async def _tell_async(client: AsyncHoldpoint, lease: Lease, error: BaseException) -> None:
    try:
        await asyncio.shield(report_async(client, lease, failure_of(error)))
    except HoldpointError as lost:
        error.add_note(unreported_words(lost))


def unreported_words(lost: HoldpointError) -> str:
    if isinstance(lost, LeaseLost):
        return "Holdpoint: the lease was lost; the report is kept as late evidence."
    return f"Holdpoint: the report did not arrive ({lost}); the outcome counts as unknown."


def _unreported(lease: Lease, error: HoldpointError, result: Any) -> OutcomeUnknown:
    return OutcomeUnknown(lease.attempt.id, f"it ran, but {error}", ran=True, result=result)


def _fitting(client: Any, kind: type[R]) -> R:
    if client is None:
        return kind()
    if not isinstance(client, kind):
        raise TypeError(f"this function needs a client of the type {kind.__name__}")
    return client
