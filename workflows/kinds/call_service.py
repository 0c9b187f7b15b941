"""Calls an operation of a registered module, over HTTP or the streams, and goes on with what it returns.

What the operation is (its effect, how it is reached) was written into the published version as the param `pinned`; a
draft does not have it, and its effect then counts as `once`.
"""

from dataclasses import replace

from governance.boundary.rules.schema import compile_schema
from workflows.kinds.base import Evaluator, Json, StepAnswer, StepKind
from workflows.kinds.call_events import (
    COMPLETED,
    FAILED,
    OPERATION_PATTERN,
    REQUESTED,
    SLUG_PATTERN,
    call_event,
    call_event_name,
)
from workflows.kinds.shapes import closed

_SLUG: Json = {"type": "string", "pattern": f"^{SLUG_PATTERN}$", "description": "the slug of a registered module"}
_OPERATION: Json = {"type": "string", "pattern": f"^{OPERATION_PATTERN}$", "description": "an operation of the module"}
_SCHEMA: Json = {"type": "object", "description": "JSON Schema of a closed object"}
OVER_HTTP = "http"


def _prepare(params: Json, context: Json, evaluator: Evaluator) -> Json:
    named = {name: params[name] for name in ("module", "operation")}
    return named | {"send": evaluator.fill(params.get("send", {}))}


def _answer(params: Json, payload: Json) -> StepAnswer:
    return StepAnswer(outcome="on_complete", output=payload["result"])


def _bind(params: Json) -> StepKind:
    module, operation, pinned = params["module"], params["operation"], params.get("pinned", {})
    request, completion, failure = (
        call_event(call_event_name(module, operation, word)) for word in (REQUESTED, COMPLETED, FAILED)
    )
    returns = params.get("returns", KIND.output_schema)
    compile_schema(returns)  # raises ValueError, and then the step has no output that anything could rely on
    if returns.get("type") != "object" or None in (request, completion, failure):
        raise ValueError("what it returns is no object, or it has no name")
    return replace(
        KIND,
        module=module,
        effect=pinned.get("effect", "once"),
        output_schema=returns,
        request=request,
        completion=completion,
        failure=failure,
        operation=f"{module}.{operation}",
        target=module,
        call=_call(module, operation, pinned) if pinned.get("transport") == OVER_HTTP else None,
    )


def _call(module: str, operation: str, pinned: Json) -> Json:
    named = {name: pinned[name] for name in ("version", "method", "path", "effect")}
    return {"module": module, "operation": operation} | named


KIND = StepKind(
    name="call_service",
    title="Call of a service",
    description="Asks a registered module for one of its operations. What comes back must fit `returns`.",
    params_schema=closed(
        {"module": _SLUG, "operation": _OPERATION, "send": {"type": "object"}, "returns": _SCHEMA},
        optional=("send", "returns"),
    ),
    outcomes=("on_complete", "on_failure"),
    output_schema=closed({}),
    effect="once",
    formats=(2,),
    failure_outcome="on_failure",
    default_timeout_seconds=300,
    templates=("send",),
    prepare=_prepare,
    answer=_answer,
    bind=_bind,
)
