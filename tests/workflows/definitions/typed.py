"""Documents of format 2 for the validator's tests. Kinds that no file in `workflows/kinds` has stand in here, with the
shapes that the format's document gives them."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.workflows.pure import HALT_CODES, TIERS
from workflows.definitions.rules.findings import DefinitionFinding
from workflows.definitions.rules.validate import validate
from workflows.kinds.base import Json, StepKind
from workflows.kinds.registry import kinds
from workflows.kinds.shapes import CODE, REFERENCE, closed

_ANY: Json = {"type": "object"}
_COUNT: Json = {"type": "integer", "minimum": 1}


def _kind(name: str, params: Json, outcomes: tuple[str, ...], **more: Any) -> StepKind:
    given = {"optional": (), "output": closed({})} | more
    schema = closed(params, optional=given.pop("optional"))
    output = given.pop("output")
    return StepKind(
        name=name,
        title=name,
        description=name,
        params_schema=schema,
        outcomes=outcomes,
        output_schema=output,
        effect="idempotent",
        formats=(2,),
        **given,
    )


def _returned(kind: StepKind) -> StepKind:
    return replace(kind, bind=lambda params: replace(kind, output_schema=params["returns"], bind=None))


def _task(kind: StepKind) -> StepKind:
    def bind(params: Json) -> StepKind:
        form = params.get("form", closed({}))
        fields = {"outcome": {"enum": params["outcomes"]}, "reviewer": REFERENCE, **form["properties"]}
        output = closed(fields, optional=tuple(name for name in form["properties"] if name not in form["required"]))
        outcomes = (*(f"on_{name}" for name in params["outcomes"]), "on_expired")
        return replace(kind, outcomes=outcomes, output_schema=output, bind=None)

    return replace(kind, bind=bind)


_STAND_INS = [
    _returned(
        _kind(
            "call_service",
            {"module": {"type": "string"}, "operation": {"type": "string"}, "send": _ANY, "returns": _ANY},
            ("on_complete", "on_failure"),
            failure_outcome="on_failure",
        )
    ),
    _returned(
        _kind(
            "wait_for_event",
            {"event_type": {"type": "string"}, "match": _ANY, "returns": _ANY},
            ("on_event", "on_timeout"),
            timeout_outcome="on_timeout",
        )
    ),
    _task(
        _kind(
            "human_task",
            {
                "tier": CODE,
                "title": {"type": "string"},
                "facts": _ANY,
                "form": _ANY,
                "outcomes": {"type": "array", "items": CODE},
                "approvals": _COUNT,
                "expires_seconds": _COUNT,
            },
            ("on_expired",),
            optional=("facts", "form", "approvals", "expires_seconds"),
            human_tier="tier",
            timeout_outcome="on_expired",
        )
    ),
    _kind(
        "subflow",
        {"definition_slug": {"type": "string"}, "version": _COUNT, "input": _ANY},
        ("on_complete", "on_failure"),
        optional=("version", "input"),
        failure_outcome="on_failure",
    ),
    _kind(
        "assign_reviewer",
        {"tier": CODE, "rule": {"type": ["string", "object"]}},
        ("on_complete",),
        output=closed({"reviewer": REFERENCE}),
        human_tier="tier",
    ),
]
KINDS = {kind.name: kind for kind in _STAND_INS} | kinds()
CODES = HALT_CODES | {"adapter_failed"}


def findings(document: Any) -> list[DefinitionFinding]:
    return validate(document, kinds=KINDS, halt_codes=CODES, tiers=TIERS | {"finance"})


def refund() -> Json:
    found: Json = json.loads(Path(__file__).with_name("refund.definition.json").read_text())
    return found


def document(steps: Json, *, start: str = "", **more: Any) -> Json:
    """`steps` in the order of work; the last one leads to TERMINAL."""
    return deepcopy({"format": 2, "name": "Case", "start_step": start or next(iter(steps)), "steps": steps} | more)


def call(then: str, *, fails: str = "", **returns: Json) -> Json:
    """A call that gives these fields, all of them for sure."""
    return {
        "kind": "call_service",
        "params": {"module": "m", "operation": "o", "send": {}, "returns": closed(returns)},
        "transitions": {"on_complete": then, "on_failure": fails or then},
    }


def assign(then: str, **values: str) -> Json:
    return {"kind": "assign", "params": {"values": values}, "transitions": {"on_complete": then}}


def block(kind: str, then: str, *, otherwise: str = "", **params: Any) -> Json:
    other = "on_exhausted" if kind == "loop" else "on_failure"
    return {"kind": kind, "params": params, "transitions": {"on_complete": then, other: otherwise or then}}


def found(document: Json) -> list[tuple[str, str, str]]:
    return [(one.rule, one.pointer, one.suggestion) for one in findings(document)]
