"""One error class per cause. The API answers with it as problem+json; `/problems/<code>` explains it to a person.

The docstring of each class is the text of that page: the first line says what happened, the rest what to do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """Where in the request something is wrong. Never contains the submitted value."""

    pointer: str
    message: str
    rule: str = ""
    suggestion: str = ""
    """The nearest valid name, where there is one."""
    remedy: str = ""
    """What can be done about it, and who can."""

    def as_json(self) -> dict[str, str]:
        more = {"rule": self.rule, "suggestion": self.suggestion, "remedy": self.remedy}
        return {"pointer": self.pointer, "message": self.message} | {name: text for name, text in more.items() if text}


PROBLEMS: dict[str, type["DomainError"]] = {}


class DomainError(Exception):
    """Base of every refusal. Subclasses name a problem type, an HTTP status and a title."""

    code: ClassVar[str] = ""
    status: ClassVar[int] = 400
    title: ClassVar[str] = ""
    default_reason_code: ClassVar[str | None] = None
    default_headers: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "code" in cls.__dict__:
            # Two classes with one code would share one help page, and one of them would be explained wrongly.
            other = PROBLEMS.setdefault(cls.code, cls)
            if other is not cls:
                raise TypeError(f"problem type {cls.code} is taken by {other.__name__}")

    def __init__(
        self,
        detail: str = "",
        *,
        reason_code: str | None = None,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        self.detail = detail or self.summary()
        self.reason_code = reason_code or self.default_reason_code
        self.errors = tuple(errors)
        self.headers = dict(self.default_headers) | dict(headers or {})
        self.extensions = dict(extensions or {})
        # Only the code is the exception's text, so that no log of the exception can contain a value.
        super().__init__(self.code)

    @classmethod
    def summary(cls) -> str:
        return (cls.__doc__ or cls.title).strip().splitlines()[0]

    @classmethod
    def advice(cls) -> str:
        return "\n".join(line.strip() for line in (cls.__doc__ or "").strip().splitlines()[1:]).strip()


class CredentialMissing(DomainError):
    """The request has no valid credential.

    Send `Authorization: Bearer <api key>`, or sign in. An unknown, an expired and a revoked key get the same answer, so
    that an attacker learns nothing from it. An operator can see in the console whether a key is still live.
    """

    code = "credential-missing"
    status = 401
    title = "Credential missing or not valid"
    default_headers = {"WWW-Authenticate": 'Bearer realm="holdpoint"'}


class ScopeMissing(DomainError):
    """The credential is valid, but lacks the scope or role that this operation needs.

    `required_scope` names it. Ask an operator for a key with that scope, or for the role.
    """

    code = "scope-missing"
    status = 403
    title = "Scope or role missing"


class AttemptCreationDisabled(DomainError):
    """This contract accepts no attempts now. The request was refused before its body was read.

    Nothing was stored, and nothing will happen later. A contract opens when the owners of all ten readiness areas have
    approved it. It closes at once when an owner revokes an approval, when an operator suspends it, or when a shutdown
    covers it. Check the readiness board of the contract, or ask its owners. The reason code `ledger_inconsistent` means
    that the whole installation is stopped: its record does not match what its witnesses hold, and an administrator has
    to confirm the loss.
    """

    code = "attempt-creation-disabled"
    status = 403
    title = "Attempt creation is disabled"
    default_reason_code = "attempt_creation_disabled"


class NotFound(DomainError):
    """This does not exist, or it belongs to another organization.

    Both cases get the same answer. Check the id, and check that your credential belongs to the organization that owns
    it.
    """

    code = "not-found"
    status = 404
    title = "Not found"


class InvalidInput(DomainError):
    """The body or the parameters of the request do not have the expected shape.

    `errors` lists every wrong place with a JSON pointer. Correct them and send again. The API's schema at
    `/api/schema/` gives the exact shape, with examples.
    """

    code = "invalid-input"
    status = 400
    title = "Invalid input"
    default_reason_code = "invalid_input"


class UnknownParameter(DomainError):
    """This operation does not know one of the query parameters.

    Holdpoint refuses it because a mistyped filter would otherwise return everything. `errors` and the API's schema list
    the known parameters.
    """

    code = "unknown-parameter"
    status = 400
    title = "Unknown parameter"


class BodyTooLarge(DomainError):
    """The body is larger than 64 KiB.

    Holdpoint stores only metadata: identifiers, references, hashes, codes and numbers. Keep the content in your own
    system, and send a reference to it with its SHA-256.
    """

    code = "body-too-large"
    status = 413
    title = "Body too large"


class LengthRequired(DomainError):
    """The request does not say how long its body is.

    Send a `Content-Length` header instead of a chunked body. Holdpoint uses it to decide whether to read the body.
    """

    code = "length-required"
    status = 411
    title = "Length required"


class BodyTooDeep(DomainError):
    """The JSON is nested too deep: more than eight levels, or 32 where a contract or a workflow is written.

    Send flat metadata. If you need the structure, keep it in your own system and send a reference to it.
    """

    code = "body-too-deep"
    status = 400
    title = "JSON nested too deep"


class UnsupportedMediaType(DomainError):
    """The body is not `application/json`.

    Send JSON with the header `Content-Type: application/json`.
    """

    code = "unsupported-media-type"
    status = 415
    title = "Unsupported media type"


class RequestMalformed(DomainError):
    """This is not a well-formed HTTP request, so nothing of it was read further.

    A library that speaks HTTP/1.1 makes well-formed requests. Check the request line, the names and values of the
    headers, and the sizes in a chunked body.
    """

    code = "request-malformed"
    status = 400
    title = "Not a well-formed request"


class AddressTooLong(DomainError):
    """The address of the request is longer than 4,096 characters.

    Every list has few and short parameters. Send identifiers in the body, not in the address.
    """

    code = "address-too-long"
    status = 414
    title = "Address too long"


class HeadersTooLarge(DomainError):
    """The request has more than 64 headers, one that is longer than 8,190 characters, or more than 64 KiB of them.

    Remove headers that Holdpoint does not use. In a browser, delete the cookies of this site.
    """

    code = "headers-too-large"
    status = 431
    title = "Headers too large"


class RequestTooSlow(DomainError):
    """The request did not arrive in time, so nothing was done.

    Send the headers within ten seconds and the whole body within twenty. You can repeat the request with the same
    Idempotency-Key. Operators find the limits under `WEB_HEAD_SECONDS` and `WEB_BODY_SECONDS`.
    """

    code = "request-too-slow"
    status = 408
    title = "The request took too long"


class TooManyConnections(DomainError):
    """There are too many connections, and all of them are in use, so nothing of the request was read.

    Use one connection for several requests, and close those that you do not need. Try again after the time in
    `Retry-After`. Operators find the limits under `WEB_CONNECTIONS` and `WEB_CONNECTIONS_PER_ADDRESS`.
    """

    code = "too-many-connections"
    status = 503
    title = "Too many connections"
    default_headers = {"Retry-After": "5"}


class TransferCodingUnknown(DomainError):
    """The body is sent in a transfer coding that Holdpoint does not know.

    Send the body with a `Content-Length` header and without `Transfer-Encoding`.
    """

    code = "transfer-coding-unknown"
    status = 501
    title = "Unknown transfer coding"


class ExpectationUnknown(DomainError):
    """The header `Expect` asks for something that Holdpoint cannot do.

    Only `Expect: 100-continue` is known. Leave the header out.
    """

    code = "expectation-unknown"
    status = 417
    title = "Unknown expectation"


class MethodNotAllowed(DomainError):
    """This address does not support that method.

    The `Allow` header lists the methods that it supports.
    """

    code = "method-not-allowed"
    status = 405
    title = "Method not allowed"


class NotAcceptable(DomainError):
    """Holdpoint cannot answer in a media type that the request accepts.

    Accept `application/json`. Errors are `application/problem+json`.
    """

    code = "not-acceptable"
    status = 406
    title = "Not acceptable"


class WrongState(DomainError):
    """The object is not in a state that allows this.

    Somebody else may have changed it before you. Read the object again: its state shows what is possible now.
    """

    code = "wrong-state"
    status = 409
    title = "Wrong state"


class AlreadyExists(DomainError):
    """Something with this name already exists here.

    Names are unique within an organization. Change the existing one, or choose another name.
    """

    code = "already-exists"
    status = 409
    title = "Already exists"


class Refused(DomainError):
    """A rule of the record forbids this.

    `detail` says which rule. Nothing was changed.
    """

    code = "refused"
    status = 403
    title = "Refused"


class RecordUnavailable(DomainError):
    """The database that keeps the record cannot be reached, or refused to record this. Nothing was done.

    Holdpoint does nothing that it cannot record. Retry with the same Idempotency-Key after the time in `Retry-After`.
    Operators find the failing dependency at `/health/ready`. If the database answers and refuses (rights, a read-only
    server, another schema, a trigger), the log line `record_refused` has its code, and retrying does not help until
    that is repaired.
    """

    code = "record-unavailable"
    status = 503
    title = "The record is unavailable"
    default_reason_code = "record_unavailable"
    default_headers = {"Retry-After": "5"}


class TookTooLong(RecordUnavailable):
    """The database took longer than this installation allows for one step of a request, so nothing was done.

    The whole request was rolled back. Try again after the time in `Retry-After`; with the same Idempotency-Key nothing
    happens twice. In the console, choose a narrower filter or a shorter time range. If it happens again, tell an
    operator: another transaction may hold a lock for a long time, or the database may be overloaded. The limit is the
    setting `HOLDPOINT_WEB_STATEMENT_SECONDS`.
    """

    code = "took-too-long"
    title = "The database took too long"


class InternalError(DomainError):
    """Something failed inside Holdpoint. The operation was rolled back.

    You can repeat the request safely with the same Idempotency-Key. If it fails again, tell an operator the request id
    in `X-Request-ID`: it leads to the log line.
    """

    code = "internal-error"
    status = 500
    title = "Internal error"


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
