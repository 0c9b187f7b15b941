"""The shape of a definition's document (S4 3.1) as JSON Schema: what an editor checks, and the validator first."""

from workflows.definitions.document import BACKOFFS, DEFAULT_WORKFLOW_TIMEOUT, TERMINAL
from workflows.kinds.base import Json
from workflows.kinds.shapes import CODE, DIALECT
from workflows.states import Mode

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
