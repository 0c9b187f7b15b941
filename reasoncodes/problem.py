"""A refusal as an RFC 9457 document. Pure; doors add the media type."""

from typing import Any

from reasoncodes.errors import DomainError


def problem_document(error: DomainError, *, base_url: str, request_id: str) -> dict[str, Any]:
    """`instance` is the request id: a path may carry what the caller wrote into it."""
    body: dict[str, Any] = {
        "type": f"{base_url}/problems/{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "instance": f"urn:holdpoint:request:{request_id}" if request_id else "urn:holdpoint:request",
    }
    if error.reason_code:
        body["reason_code"] = error.reason_code
    if error.errors:
        body["errors"] = [field.as_json() for field in error.errors]
    return body | error.extensions
