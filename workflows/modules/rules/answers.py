"""What the answer of a module over HTTP means, and what its silence means. Pure."""

import json
import re
from dataclasses import dataclass
from typing import Any

from workflows.kinds.base import Json
from workflows.kinds.call_events import COMPLETED, FAILED
from workflows.kinds.shapes import CODE_PATTERN

ACCEPTED, DRIFTED, UNKNOWN = "accepted", "drifted", "unknown"
OWN_CODE = "adapter_failed"


@dataclass(frozen=True, slots=True)
class CallResult:
    """`word`: completed or failed, with what the event of this word would say; accepted (an event will answer), drifted
    (an answer that nobody can read), or unknown (it may have acted)."""

    word: str
    payload: Json | None = None
    status: int | None = None


def failed(reason_code: str = OWN_CODE, *, retryable: bool = False, status: int | None = None) -> CallResult:
    return CallResult(FAILED, {"reason_code": reason_code, "retryable": retryable}, status)


def result_of_answer(*, effect: str, status: int, body: bytes | None) -> CallResult:
    """`body` None: it was too long, or broke off."""
    said = _object(body)
    if status == 202:
        return CallResult(ACCEPTED, status=status)
    if 200 <= status < 300:
        # It acted, so an answer that cannot be read is a broken promise and nothing to try again.
        fits = said is not None
        return CallResult(COMPLETED if fits else DRIFTED, {"result": said} if fits else None, status)
    told = said or {}
    retryable = told.get("retryable")
    if isinstance(retryable, bool) or _code(told):
        return failed(_code(told) or OWN_CODE, retryable=retryable is True, status=status)
    if status >= 500 and effect == "once":
        # Nobody says that it did not act: a proxy in between may have given up on a request that went through.
        return CallResult(UNKNOWN, None, status)
    return failed(retryable=status == 429 or status >= 500, status=status)


def result_of_silence(*, effect: str, sent: bool, why: str) -> CallResult:
    """There was no answer. `sent`: some of the request went out."""
    if not sent:
        return failed(retryable=why == "no_connection")
    # Never tried again, whatever the effect: only an answer proves that nothing happened. A read has no effect that
    # anybody would have to look for.
    return failed() if effect == "none" else CallResult(UNKNOWN)


def _object(body: bytes | None) -> Json | None:
    """An empty body is an empty object."""
    if body is None:
        return None
    try:
        found: Any = json.loads(body or b"{}", parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _no_constant(_: str) -> Any:
    raise ValueError("NaN and Infinity are no JSON")


def _code(problem: Json) -> str:
    code = problem.get("reason_code")
    return code if isinstance(code, str) and re.fullmatch(CODE_PATTERN, code) else ""
