"""Calls into higher apps by name. This app may not import them, so they register what it needs in their `apps.py`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from reasoncodes.base.actors import Actor


class Recorder(Protocol):
    """Writes one ledger entry in the caller's transaction."""

    def __call__(
        self,
        *,
        action: str,
        organization_id: UUID | None,
        subject_type: str,
        subject_id: UUID,
        actor: Actor,
        at: datetime,
        payload: Mapping[str, Any],
        reason_code: str = "",
    ) -> object: ...


class UsageCounter(Protocol):
    """How often the organization's record names each of these codes, counted up to `limit`."""

    def __call__(self, *, organization_id: UUID | None, codes: list[str], limit: int) -> dict[str, int]: ...


class TextCheck(Protocol):
    """Refuses text that looks like a person, a secret or a patient's record."""

    def __call__(self, *, text: str, pointer: str) -> None: ...


_recorder: Recorder | None = None
_text_check: TextCheck | None = None
_usage_counter: UsageCounter | None = None


def register_recorder(recorder: Recorder) -> None:
    global _recorder
    _recorder = recorder


def recorder() -> Recorder:
    if _recorder is None:
        # Raises instead of skipping the entry: a change without a ledger entry must not be possible.
        raise RuntimeError("no ledger recorder is registered: nothing may change without a record")
    return _recorder


def register_text_check(check: TextCheck) -> None:
    global _text_check
    _text_check = check


def registered_text_check() -> TextCheck:
    if _text_check is None:
        raise RuntimeError("no text check is registered: nothing may be stored unchecked")
    return _text_check


def register_usage_counter(counter: UsageCounter) -> None:
    global _usage_counter
    _usage_counter = counter


def usage_counter() -> UsageCounter:
    if _usage_counter is None:
        raise RuntimeError("no usage counter is registered")
    return _usage_counter
