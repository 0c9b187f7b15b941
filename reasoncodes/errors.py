"""One error class per cause. A door turns it into problem+json; `/problems/<code>` explains it to a person.

The docstring of each class is that page's text: first line what happened, the rest what to do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """Where in the request something is wrong. Never the submitted value."""

    pointer: str
    message: str
    rule: str = ""
    suggestion: str = ""
    """The nearest valid name, where there is one."""

    def as_json(self) -> dict[str, str]:
        more = {"rule": self.rule, "suggestion": self.suggestion}
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
        super().__init__(self.code)

    @classmethod
    def summary(cls) -> str:
        return (cls.__doc__ or cls.title).strip().splitlines()[0]

    @classmethod
    def advice(cls) -> str:
        return "\n".join(line.strip() for line in (cls.__doc__ or "").strip().splitlines()[1:]).strip()


class CredentialMissing(DomainError):
    """The request carries no valid credential.

    Send `Authorization: Bearer <api key>`, or sign in. A key that is unknown, expired or revoked gets the same
    answer, so that guessing teaches nothing. An operator can see in the console whether a key is still live.
    """

    code = "credential-missing"
    status = 401
    title = "Credential missing or not valid"
    default_headers = {"WWW-Authenticate": 'Bearer realm="holdpoint"'}


class ScopeMissing(DomainError):
    """The credential is valid but does not carry the scope or role that this operation needs.

    The field `required_scope` names it. Ask an operator for a key with that scope, or for the role.
    """

    code = "scope-missing"
    status = 403
    title = "Scope or role missing"


class AttemptCreationDisabled(DomainError):
    """This contract does not take attempts now, so the request was refused before its body was read.

    A contract opens when the owners of all ten readiness areas have approved it, and closes at once when one of them
    revokes, when it is suspended, or when a shutdown covers it. Nothing was stored and nothing will happen later. Look
    at the readiness board of the contract, or ask its owners. With the reason code `ledger_inconsistent` the whole
    installation is stopped: its record does not fit what its witnesses hold, and an administrator has to confirm.
    """

    code = "attempt-creation-disabled"
    status = 403
    title = "Attempt creation is disabled"
    default_reason_code = "attempt_creation_disabled"


class NotFound(DomainError):
    """There is no such thing, or it belongs to somebody else.

    Both get the same answer. Check the id, and that the credential belongs to the organization that owns it.
    """

    code = "not-found"
    status = 404
    title = "Not found"


class InvalidInput(DomainError):
    """The request's body or parameters do not have the expected shape.

    `errors` lists every place with a JSON pointer. The API's schema at `/api/schema/` has the exact shape, with
    examples.
    """

    code = "invalid-input"
    status = 400
    title = "Invalid input"
    default_reason_code = "invalid_input"


class UnknownParameter(DomainError):
    """The request has a query parameter that this operation does not know.

    A mistyped filter would otherwise quietly return everything. The known ones are in `errors` and in the API's schema.
    """

    code = "unknown-parameter"
    status = 400
    title = "Unknown parameter"


class BodyTooLarge(DomainError):
    """The body is larger than 64 KiB.

    Holdpoint takes metadata: identifiers, references, hashes, codes and numbers. Keep the content in your own system
    and send a reference and its SHA-256.
    """

    code = "body-too-large"
    status = 413
    title = "Body too large"


class LengthRequired(DomainError):
    """The body came in chunks, without saying how long it is.

    Send a `Content-Length`: Holdpoint decides from it whether to read the body at all.
    """

    code = "length-required"
    status = 411
    title = "Length required"


class BodyTooDeep(DomainError):
    """The JSON is nested more than eight levels deep.

    Metadata is flat by nature; send a reference to the structure instead.
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


class MethodNotAllowed(DomainError):
    """This address exists but does not answer that method.

    The `Allow` header lists the methods that it answers.
    """

    code = "method-not-allowed"
    status = 405
    title = "Method not allowed"


class NotAcceptable(DomainError):
    """The answer cannot be given in the media type that the request accepts.

    Ask for `application/json`; errors are `application/problem+json`.
    """

    code = "not-acceptable"
    status = 406
    title = "Not acceptable"


class WrongState(DomainError):
    """The object is not in a state that allows this.

    Somebody may have been faster. Read the object again; its state says what is possible now.
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
    """A rule of the record forbids this, whoever asks.

    `detail` says which rule. The refusal itself is on record.
    """

    code = "refused"
    status = 403
    title = "Refused"


class RecordUnavailable(DomainError):
    """The database that keeps the record cannot be reached, so nothing was done.

    Holdpoint does nothing that it cannot write down. Retry with the same Idempotency-Key after the time in
    `Retry-After`; operators find the failing dependency at `/health/ready`.
    """

    code = "record-unavailable"
    status = 503
    title = "The record is unavailable"
    default_reason_code = "record_unavailable"
    default_headers = {"Retry-After": "5"}


class InternalError(DomainError):
    """Something failed inside Holdpoint. What was under way was rolled back.

    The request id in `X-Request-ID` leads operators to the log line. Repeating the request with the same
    Idempotency-Key is safe.
    """

    code = "internal-error"
    status = 500
    title = "Internal error"
