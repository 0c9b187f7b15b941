"""schemathesis against this process: real handler, middleware and database; each request is rolled back.

Path parameters, tokens, digests and codes that fit the document are replaced by ones that exist, so that not
only 404 is tried. What the tool generated as wrong stays wrong.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connections
from drf_spectacular.generators import SchemaGenerator
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation
from schemathesis.engine import Status, events, from_schema
from schemathesis.generation.meta import CONTENT_TYPE_PROBES, CoverageScenario
from schemathesis.hooks import unregister
from schemathesis.transport.wsgi import WSGITransport

from config.wsgi import application
from tests.contract.world import World, undone

CSRF = "c" * 32
REAL = 7  # of eight ids that fit, so many exist
SHARED_PARAMETERS = {"org_id", "page_size", "cursor", "X-Purpose"}
NEED_A_KEY = {"attempts_create", "attempts_replay"}


@dataclass(frozen=True)
class Spared:
    """A finding that is none, and why."""

    check: str
    why: str
    covers: Callable[[Any, Any], bool]


def _without_network_settings(send: Any) -> Any:
    """schemathesis 4.32 hands the network settings of its probes (`ignored_auth`) to in-process applications too."""

    def sent(transport: Any, case: Any, **kwargs: Any) -> Any:
        for name in ("max_redirects", "verify", "cert", "proxies"):
            kwargs.pop(name, None)
        return send(transport, case, **kwargs)

    return sent


class Door:
    """The WSGI application, as the engine's threads call it: on the connection of the test, and without a trace."""

    def __init__(self, *, keeps: bool = False) -> None:
        self.shared, self.keeps = connections["default"], keeps

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        connections["default"] = self.shared
        if "HTTP_X_CSRFTOKEN" in environ:  # the tool sends the cookies of the document alone
            environ["HTTP_COOKIE"] = f"{environ.get('HTTP_COOKIE', '')}; csrftoken={CSRF}"
        if self.keeps:
            return self._answer(environ, start_response)
        with undone():
            return self._answer(environ, start_response)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Threads may use the connection, and no request closes it (as Django's own test client has it)."""
        signals = (request_started, request_finished)
        self.shared.inc_thread_sharing()
        send = WSGITransport.send
        WSGITransport.send = _without_network_settings(send)  # type: ignore[method-assign]
        for signal in signals:
            signal.disconnect(close_old_connections)
        try:
            yield
        finally:
            for signal in signals:
                signal.connect(close_old_connections)
            self.shared.dec_thread_sharing()
            WSGITransport.send = send  # type: ignore[method-assign]

    @staticmethod
    def _answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        answer: Any = application(environ, start_response)
        try:
            return list(answer)
        finally:
            getattr(answer, "close", lambda: None)()


def closed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with every described answer closed: a field that it does not name is a finding. (Published, it stays
    open: a client has to bear new fields.)"""
    for name, component in document["components"]["schemas"].items():
        if name != "Problem" and "properties" in component:
            component.setdefault("additionalProperties", False)
    return document


def shared_boundary(case: Any) -> tuple[str, str] | None:
    """What one piece of code answers for all operations, if the case is about that: the routes' converters, the parser,
    paging, the organization's parameter, the type of a field by its name. The second part says which boundary."""
    data = case.meta.phase.data
    if data.scenario in CONTENT_TYPE_PROBES:
        return "content type", data.description
    if data.scenario is CoverageScenario.UNSPECIFIED_HTTP_METHOD:
        return "method", case.method
    if data.parameter_location is ParameterLocation.PATH:
        return "path", data.description
    if data.parameter in SHARED_PARAMETERS:
        return data.parameter, data.description
    if data.scenario is CoverageScenario.INCORRECT_TYPE:
        where = data.location if data.parameter_location is ParameterLocation.BODY else data.parameter
        return f"type of {where}", data.description
    return None


class Fuzzing:
    """One run of the engine. `findings` are the failures, one for each check, operation and kind."""

    def __init__(
        self,
        world: World,
        config: dict[str, Any],
        spared: Sequence[Spared] = (),
        *,
        keeps: bool = False,
        brief: bool = False,
    ) -> None:
        self.spared, self.brief = spared, brief
        self.asked: set[Any] = set()
        self.real: set[str] = set()
        self.world, self.door = world, Door(keeps=keeps)
        found: Any = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
        self.document = closed(json.loads(json.dumps(found)))
        self.schema = schemathesis.openapi.from_dict(self.document, config=SchemathesisConfig.from_dict(config))
        self.schema.app = self.door
        self.cookies = world.cookies(world.everybody) | {"csrftoken": CSRF}
        self.findings: dict[tuple[str, str, str], str] = {}
        self.reached: dict[str, Counter[int]] = {}
        self.schema.auth(refresh_interval=None)(self._credentials())

    def _credentials(self) -> type:
        key, cookies = self.world.key, self.cookies

        class Credentials:
            """A key with every scope where keys may; else somebody with every role."""

            def get(self, case: Any, context: Any) -> bool:
                return any("apiKey" in one for one in case.operation.definition.raw["security"])

            def set(self, case: Any, data: bool, context: Any) -> None:
                if data:
                    case.headers["Authorization"] = f"Bearer {key}"
                else:
                    case.cookies = dict(case.cookies or {}) | cookies
                    case.headers["X-CSRFToken"] = CSRF

        return Credentials

    def run(self) -> "Fuzzing":
        def before_call(context: Any, case: Any, kwargs: Any) -> None:
            self.make_real(case)

        def filter_case(context: Any, case: Any) -> bool:
            return not self.brief or self.is_new(case)

        schemathesis.hook(before_call)
        schemathesis.hook(filter_case)
        try:
            with self.door.opened():
                for event in from_schema(self.schema).execute():
                    self.note(event)
        finally:
            unregister(before_call)
            unregister(filter_case)
        return self

    def make_real(self, case: Any) -> None:
        """What fits the document is replaced by what exists; what does not stays as it is."""
        if case.id in self.real:
            return
        self.real.add(case.id)
        name, meta = case.operation.definition.raw["operationId"], case.meta
        own = self.world.special.get(name, {})
        if not meta.is_negative_at(ParameterLocation.PATH):
            linked = case._override.path_parameters
            for parameter, value in (case.path_parameters or {}).items():
                number = crc32(str(value).encode("utf-8", "replace"))
                if parameter not in linked and number % (REAL + 1):
                    known = self.world.ids[parameter]
                    case.path_parameters[parameter] = own.get(parameter) or known[number % len(known)]
        if case.query and not meta.is_negative_at(ParameterLocation.QUERY):
            case.query.pop("cursor", None)  # opaque: only what a list gave out is one
            self.replace(case.query, self.world.query)
        if not meta.is_negative_at(ParameterLocation.HEADER):
            self.replace(case.headers, self.world.headers)
            if name in NEED_A_KEY and "Authorization" in case.headers:
                case.headers["Idempotency-Key"] = f"contract-{case.id}"
        if isinstance(case.body, dict) and not meta.is_negative_at(ParameterLocation.BODY):
            case.body = dict(case.body)
            self.replace(case.body, self.world.values | own)

    def is_new(self, case: Any) -> bool:
        """Whether a boundary shows something that none before it has: not the same request again once its values are
        real ones; and of what one piece of code answers for all operations, one boundary here, all of them once."""
        self.make_real(case)
        sent = [case.method, case.formatted_path, case.query, case.headers, case.body, case.media_type]
        request, shared = (case.operation.label, repr(sent)), shared_boundary(case)
        new = {request} - self.asked
        if shared is not None:
            new &= {request} if {(case.operation.label, shared[0]), shared} - self.asked else set()
            self.asked |= {(case.operation.label, shared[0]), shared}
        self.asked.add(request)
        return bool(new)

    @staticmethod
    def replace(container: Any, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if name in container:
                container[name] = value

    def note(self, event: Any) -> None:
        if isinstance(event, events.NonFatalError | events.FatalError):
            error = getattr(event, "value", None) or getattr(event, "exception", None)
            self.findings[("error", str(getattr(event, "label", "")), str(error)[:80])] = str(error)
        if not isinstance(event, events.ScenarioFinished):
            return
        for case_id, answer in event.recorder.interactions.items():
            label = event.recorder.cases[case_id].value.operation.label
            if answer.response is not None:
                self.reached.setdefault(label, Counter())[answer.response.status_code] += 1
        for case_id, nodes in event.recorder.checks.items():
            for node in nodes:
                if node.status == Status.FAILURE:
                    self.found(node, event.recorder.cases[case_id].value, event.recorder.interactions.get(case_id))

    def found(self, node: Any, case: Any, answer: Any) -> None:
        failure = node.failure_info.failure
        if any(one.check == node.name and one.covers(case, answer.response) for one in self.spared):
            return
        where = (node.name, case.operation.label, failure.title + str(getattr(failure, "status_code", "")))
        sent = f"{case.method} {case.formatted_path} query={case.query} body={str(case.body)[:300]}"
        got = answer.response.content[:400] if answer is not None and answer.response is not None else b""
        self.findings.setdefault(where, f"{failure.message[:500]}\n    sent {sent}\n    got {got!r}")

    def report(self) -> str:
        lines = [f"{' | '.join(where)}\n    {text}" for where, text in sorted(self.findings.items())]
        return "\n".join([f"{len(lines)} findings", *lines])
