"""A definition's document as typed values: the engine and the validator read these, never raw JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions.states import Mode
from workflows.kinds.base import Json, StepKind, bound_kind
from workflows.kinds.shapes import CODE, DIALECT

TERMINAL = "TERMINAL"
JOIN = "JOIN"  # ends a branch or a body, in documents of format 2
DEFAULT_WORKFLOW_TIMEOUT = 30 * 24 * 3600
BACKOFFS = ("exponential", "linear", "fixed")


@dataclass(frozen=True, slots=True)
class StepDefinition:
    id: str
    kind: str
    params: dict[str, Any]
    transitions: dict[str, str]
    timeout_seconds: int | None
    max_retries: int
    retry_backoff: str
    retry_delay_seconds: int
    due_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A document that passed validation."""

    id: str
    name: str
    default_mode: str
    workflow_timeout_seconds: int
    start_step: str
    steps: dict[str, StepDefinition]
    format: int = 1
    input: Json | None = None  # the schema of what a run must bring
    output: dict[str, str] = field(default_factory=dict)  # name: expression

    def step(self, step_id: str) -> StepDefinition:
        return self.steps[step_id]

    def kind(self, step_id: str, kinds: Mapping[str, StepKind]) -> StepKind | None:
        """The kind of this step, as its params bind it. None: there is no such step or kind."""
        step = self.steps.get(step_id)
        known = kinds.get(step.kind) if step else None
        return bound_kind(known, step.params) if step and known else None


def read_definition(document: Mapping[str, Any], *, definition_id: str) -> Definition:
    """From stored JSON. `definition_id` is part of the seed of `sample()`, so that a case always gets the same
    answer."""
    return Definition(
        id=definition_id,
        name=str(document.get("name", "")),
        default_mode=document.get("default_mode", "active"),
        workflow_timeout_seconds=document.get("workflow_timeout_seconds", DEFAULT_WORKFLOW_TIMEOUT),
        start_step=document["start_step"],
        steps={step_id: _step(step_id, step) for step_id, step in document["steps"].items()},
        format=document.get("format", 1),
        input=document.get("input"),
        output=dict(document.get("output", {})),
    )


def _step(step_id: str, step: Mapping[str, Any]) -> StepDefinition:
    params = dict(step.get("params", {}))
    if "expr" in step:  # S4 writes a condition's expression beside its params
        params["expr"] = step["expr"]
    return StepDefinition(
        id=step_id,
        kind=step["kind"],
        params=params,
        transitions=dict(step.get("transitions", {})),
        timeout_seconds=step.get("timeout_seconds"),
        max_retries=step.get("max_retries", 0),
        retry_backoff=step.get("retry_backoff", "exponential"),
        retry_delay_seconds=step.get("retry_delay_seconds", 5),
        due_seconds=step.get("due_seconds"),
    )


MAX_STEPS = 200
MAX_BYTES = 64 * 1024
MAX_DEPTH = 8
MAX_NAME = 120
MAX_DESCRIPTION = 280
MAX_RETRIES = 10
MAX_WORKFLOW_SECONDS = 366 * 24 * 3600

_SECONDS: Json = {"type": "integer", "minimum": 1, "maximum": MAX_WORKFLOW_SECONDS}
STEP_SCHEMA: Json = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind"],
    "properties": {
        "kind": {**CODE, "title": "Step kind"},
        "params": {"type": "object", "title": "What the kind needs to know"},
        "expr": {"type": "string", "minLength": 1, "maxLength": 2000, "title": "Expression of a condition"},
        "timeout_seconds": {**_SECONDS, "title": "No completion by then: the step is timed out and the workflow halts"},
        "max_retries": {"type": "integer", "minimum": 0, "maximum": MAX_RETRIES, "default": 0},
        "retry_backoff": {"enum": list(BACKOFFS), "default": "exponential"},
        "retry_delay_seconds": {"type": "integer", "minimum": 1, "maximum": 86_400, "default": 5},
        "transitions": {
            "type": "object",
            "title": f"Outcome: the next step, or {TERMINAL}",
            "maxProperties": 20,
            "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 64},
        },
    },
}
DOCUMENT_SCHEMA: Json = {
    "$schema": DIALECT,
    "$id": "/api/v1/workflow-definitions/schema",
    "title": "Workflow definition",
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "start_step", "steps"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
        "description": {"type": "string", "maxLength": MAX_DESCRIPTION},
        "default_mode": {"enum": [mode.value for mode in Mode], "default": Mode.ACTIVE.value},
        "workflow_timeout_seconds": {**_SECONDS, "default": DEFAULT_WORKFLOW_TIMEOUT},
        "start_step": {"type": "string", "minLength": 1, "maxLength": 64},
        "steps": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": MAX_STEPS,
            "propertyNames": CODE,
            "additionalProperties": STEP_SCHEMA,
        },
    },
}
_EXPRESSION: Json = {"type": "string", "minLength": 1, "maxLength": 2000}
# What a document may say more with `"format": 2`.
STEP_SCHEMA_2: Json = STEP_SCHEMA | {
    "properties": STEP_SCHEMA["properties"]
    | {"due_seconds": {**_SECONDS, "title": "From then on the step is overdue; it goes on"}}
}
DOCUMENT_SCHEMA_2: Json = DOCUMENT_SCHEMA | {
    "$id": "/api/v1/workflow-definitions/schema?format=2",
    "required": ["format", *DOCUMENT_SCHEMA["required"]],
    "properties": {"format": {"const": 2, "title": "Of this document"}}
    | DOCUMENT_SCHEMA["properties"]
    | {
        "input": {"type": "object", "title": "JSON Schema of what a run must bring, a closed object"},
        "output": {
            "type": "object",
            "title": "What the run gives at its end: name and expression",
            "maxProperties": 50,
            "propertyNames": CODE,
            "additionalProperties": _EXPRESSION,
        },
        "steps": DOCUMENT_SCHEMA["properties"]["steps"] | {"additionalProperties": STEP_SCHEMA_2},
    },
}


def format_of(document: Any) -> int:
    """Of any JSON. What is no known format is read as format 1, which then says what is wrong with it."""
    return 2 if isinstance(document, dict) and document.get("format") is not True and document.get("format") == 2 else 1


def schemas_of(document: Any) -> tuple[Json, Json]:
    """The schemas of the document and of its steps."""
    return (DOCUMENT_SCHEMA_2, STEP_SCHEMA_2) if format_of(document) == 2 else (DOCUMENT_SCHEMA, STEP_SCHEMA)
