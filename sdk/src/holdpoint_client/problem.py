"""Problem documents (RFC 9457) as the server sends them, and what to make of an answer that is none."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KNOWN = frozenset({"type", "title", "status", "detail", "instance", "reason_code", "errors"})


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the server said no. `type` opens as a help page; `code` is its last part."""

    status: int
    code: str = ""
    title: str = ""
    detail: str = ""
    type: str = ""
    reason_code: str | None = None
    errors: tuple[Mapping[str, Any], ...] = ()
    request_id: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether Holdpoint itself said it, not something between here and there."""
        return bool(self.code)

    def __str__(self) -> str:
        words = self.detail or self.title or f"the server answered {self.status}"
        places = "; ".join(f"{one.get('pointer') or 'the whole'}: {one.get('message', '')}" for one in self.errors)
        reason = f" ({self.reason_code})" if self.reason_code else ""
        return words + reason + (f" [{places}]" if places else "")


def problem_parse(status: int, headers: Mapping[str, str], body: bytes) -> Problem:
    """Never raises: what cannot be read is a problem without a code."""
    if not headers.get("content-type", "").startswith("application/problem+json"):
        return Problem(status)
    try:
        document = json.loads(body)
    except ValueError:
        return Problem(status)
    return _from(status, document) if isinstance(document, dict) else Problem(status)


def _from(status: int, document: dict[str, Any]) -> Problem:
    type_, errors = _text(document, "type"), document.get("errors")
    return Problem(
        status=status,
        code=type_.rpartition("/problems/")[2] if "/problems/" in type_ else "",
        title=_text(document, "title"),
        detail=_text(document, "detail"),
        type=type_,
        reason_code=_text(document, "reason_code") or None,
        errors=tuple(one for one in errors if isinstance(one, dict)) if isinstance(errors, list) else (),
        request_id=_text(document, "instance").rpartition(":")[2],
        more={name: value for name, value in document.items() if name not in KNOWN},
    )


def _text(document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""
