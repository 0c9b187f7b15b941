"""Turns every error into application/problem+json (RFC 9457). The answer never repeats what was submitted."""

import json
from typing import Any

import structlog
from django.core.exceptions import DisallowedHost, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.utils import timezone
from rest_framework import exceptions
from rest_framework.request import Request

from governance.sql.guards import refused_by_database
from governance.violations.errors import RuleBroken
from governance.violations.services import violation_record
from reasoncodes.base.errors import (
    PROBLEMS,
    BodyTooLarge,
    CredentialMissing,
    DomainError,
    FieldError,
    InternalError,
    InvalidInput,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RecordUnavailable,
    ScopeMissing,
    TookTooLong,
    UnsupportedMediaType,
    problem_document,
)
from reasoncodes.base.trace import current_trace

log = structlog.get_logger("holdpoint.api")
CONTENT_TYPE = "application/problem+json"
# PostgreSQL's codes for a statement that its time limit ended, and for a lock that did not come within it.
TOO_LONG = {"57014", "55P03"}


def problem_response(request: HttpRequest | Request, error: DomainError) -> HttpResponse:
    """The error as a response. `instance` is the request id and not the path, because a path may contain what the
    caller wrote."""
    trace = current_trace()
    body = problem_document(error, base_url=_base_url(request), request_id=trace.request_id if trace else "")
    return HttpResponse(json.dumps(body), content_type=CONTENT_TYPE, status=error.status, headers=error.headers)


def _base_url(request: HttpRequest | Request) -> str:
    try:
        return str(request.build_absolute_uri("/")).rstrip("/")
    except DisallowedHost:  # this may be the error that is being answered; a relative reference is valid too
        return ""


def problem_handler(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """DRF's exception handler."""
    _record_violation(context["request"], error)
    problem = as_domain_error(error)
    if isinstance(problem, MethodNotAllowed):
        problem.headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return problem_response(context["request"], problem)


def _record_violation(request: HttpRequest | Request, error: Exception) -> None:
    """Records a violation that a read found, such as somebody else's id. Services record their own."""
    actor = getattr(request, "actor", None)
    if isinstance(error, RuleBroken) and actor is not None:
        violation_record(actor=actor, at=timezone.now(), broken=error)


def as_domain_error(error: Exception) -> DomainError:
    """The DomainError for anything that a view can raise. An unforeseen error is logged and becomes a 500."""
    if isinstance(error, DomainError):
        return error
    if isinstance(error, DatabaseError | InterfaceError) and (found := _from_database(error)) is not None:
        return found
    if isinstance(error, exceptions.APIException | Http404 | PermissionDenied):
        return _from_framework(error)
    if isinstance(error, RequestDataTooBig):
        return BodyTooLarge()
    if isinstance(error, SuspiciousOperation | UnreadablePostError):
        return InvalidInput("The request could not be understood.")
    log.error("unhandled_error", exc_info=error)
    return InternalError()


def _from_database(error: Exception) -> DomainError | None:
    """None: a fault of the program, not of the database."""
    if refused_by_database(error):
        return _refused(error)
    if not isinstance(error, OperationalError | InterfaceError):
        return None
    if getattr(error.__cause__, "sqlstate", "") in TOO_LONG:
        # The connection is sound, so there is no outage to note.
        log.warning("statement_timed_out", exc_info=error)
        return TookTooLong()
    from config.middleware.database import note_outage

    # Other threads' connections are probably dead too: each replaces its own before its next request.
    note_outage()
    log.error("database_unavailable", exc_info=error)
    return RecordUnavailable()


def _refused(error: Exception) -> DomainError:
    """The database answers and will not store it. There is no second store: the caller gets the failure."""
    # Class and code only: the database's text quotes the row.
    cause = error.__cause__
    log.error("record_refused", error=type(cause).__name__, sqlstate=getattr(cause, "sqlstate", ""))
    return RecordUnavailable("The database refused to record this, so nothing was done.")


def _from_framework(error: Exception) -> DomainError:
    if isinstance(error, exceptions.ValidationError):
        return InvalidInput(errors=_field_errors(error.detail))
    if isinstance(error, exceptions.ParseError):
        return InvalidInput("The body is not valid JSON.")
    if isinstance(error, exceptions.MethodNotAllowed):
        return MethodNotAllowed()
    simple: dict[type[Exception], type[DomainError]] = {
        exceptions.NotAuthenticated: CredentialMissing,
        exceptions.AuthenticationFailed: CredentialMissing,
        exceptions.PermissionDenied: ScopeMissing,
        PermissionDenied: ScopeMissing,
        exceptions.NotFound: NotFound,
        Http404: NotFound,
        exceptions.UnsupportedMediaType: UnsupportedMediaType,
        exceptions.NotAcceptable: NotAcceptable,
    }
    for kind, problem in simple.items():
        if isinstance(error, kind):
            return problem()
    log.error("unhandled_error", exc_info=error)
    return InternalError()


def _field_errors(detail: Any, *, pointer: str = "") -> list[FieldError]:
    """DRF's nested errors as JSON pointers ("" is the whole body)."""
    if isinstance(detail, dict):
        found = [
            _field_errors(value, pointer=f"{pointer}/{_escape(key)}" if key else pointer)
            for key, value in detail.items()
        ]
        return [error for errors in found for error in errors]
    if isinstance(detail, list):
        found = [
            _field_errors(value, pointer=f"{pointer}/{index}" if isinstance(value, dict) and value else pointer)
            for index, value in enumerate(detail)
        ]
        return [error for errors in found for error in errors]
    # Only DRF's codes are used: its texts repeat the submitted value.
    code = getattr(detail, "code", "invalid")
    return [FieldError(pointer, MESSAGES.get(code, "is not valid"), rule=code)]


MESSAGES = {
    "required": "is required",
    "null": "may not be null",
    "blank": "may not be empty",
    "invalid": "does not have the expected type or format",
    "invalid_choice": "is not one of the allowed values",
    "not_a_list": "must be a list",
    "not_a_dict": "must be an object",
    "max_length": "is too long",
    "min_length": "is too short",
    "max_value": "is too large",
    "min_value": "is too small",
    "does_not_exist": "does not exist",
    "unknown_field": "is not a known field",
}


def _escape(key: Any) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def known_problems() -> dict[str, type[DomainError]]:
    """For the help pages and the schema."""
    return dict(sorted(PROBLEMS.items()))
