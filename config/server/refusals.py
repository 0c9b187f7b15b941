"""The web server's own refusals, before the application sees a request: problem+json like all others, with nothing of
the request in it. gunicorn's own pages repeat what was sent."""

import json
from http import HTTPStatus

from gunicorn.http.errors import (
    ConfigurationProblem,
    ExpectationFailed,
    InvalidResponseHeader,
    InvalidResponseHeaderName,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
    UnsupportedTransferCoding,
)

from reasoncodes.base.errors import (
    AddressTooLong,
    DomainError,
    ExpectationUnknown,
    HeadersTooLarge,
    InternalError,
    RequestMalformed,
    TransferCodingUnknown,
    problem_document,
)
from reasoncodes.base.ids import uuid7

# In this order: some of gunicorn's errors derive from others.
CAUSES: tuple[tuple[type[Exception], type[DomainError]], ...] = (
    (InvalidResponseHeader, InternalError),
    (InvalidResponseHeaderName, InternalError),
    (ConfigurationProblem, InternalError),
    (LimitRequestLine, AddressTooLong),
    (LimitRequestHeaders, HeadersTooLarge),
    (UnsupportedTransferCoding, TransferCodingUnknown),
    (ExpectationFailed, ExpectationUnknown),
    (ParseException, RequestMalformed),
    (OSError, RequestMalformed),  # TLS
)


def refusal_of(error: BaseException) -> DomainError:
    return next((problem() for cause, problem in CAUSES if isinstance(error, cause)), InternalError())


def refusal_bytes(problem: DomainError) -> bytes:
    """The whole answer. The connection closes after it: nobody knows where the next request would begin."""
    request_id = str(uuid7())
    # Without the host: it may be what could not be read.
    body = json.dumps(problem_document(problem, base_url="", request_id=request_id)).encode()
    head = {
        "Connection": "close",
        "Content-Type": "application/problem+json",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "X-Request-ID": request_id,
        **problem.headers,
    }
    lines = [f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in head.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
