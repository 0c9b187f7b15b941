"""The intake operation in the OpenAPI document. Intake is a plain Django view, so drf-spectacular cannot describe
it."""

from typing import Any

from attempts.intake.rules import BODY_SCHEMA
from config.api.problems import CONTENT_TYPE
from governance.people.rules.roles import ApiScope

PATH = "/api/v1/execution/{workflow_slug}/{contract_version}/attempts"
PROBLEM = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
REFUSALS = {
    "400": "`invalid-input` (also one refusal on the ledger), `idempotency-key-missing`, `idempotency-key-invalid`.",
    "403": "`attempt-creation-disabled` (body unread, nothing stored), `attempt-denied` (stored), `scope-missing`.",
    "409": "`idempotency-in-progress`: the first request with this key is still being taken in.",
    "410": "`idempotency-key-expired`: the key is past its end; nothing happens again.",
    "411": "`length-required`: the body came without a Content-Length.",
    "422": "`metadata-boundary`, `idempotency-conflict`: places and parts, never values.",
    "429": "`rate-limited`: over a throttle or a cap; the key is not used up.",
    "503": "`record-unavailable`, `throttle-unavailable`: nothing was executed.",
}
ATTEMPT = {
    "type": "object",
    "required": ["id", "state", "decision_id", "action_digest"],
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "state": {"type": "string"},
        "reason_code": {"type": ["string", "null"]},
        "workflow_slug": {"type": "string"},
        "contract_version": {"type": "integer"},
        "runtime_mode": {"type": "string"},
        "risk_tier": {
            "type": "string",
            "description": "What was declared, raised to the contract's where that is higher.",
        },
        "decision_id": {"type": "string", "format": "uuid"},
        "action_digest": {"type": "string"},
        "created_at": {"type": "string", "format": "date-time"},
        "review": {"type": ["object", "null"]},
    },
}
EXAMPLE = {
    "patient_context_ref": "ctx-0001",
    "runtime_mode": "active",
    "action": {
        "connector": "external",
        "operation": "case.update",
        "target_ref": "case-0001",
        "risk_tier": "low",
        "payload_ref": "payload-0001",
        "payload_sha256": "0" * 64,
        "fields": ["status"],
    },
    "metadata": {},
}


CREATED = {"application/json": {"schema": {"$ref": "#/components/schemas/AttemptCreated"}}}
ANSWERS = {
    "201": {"description": "Allowed: `approved-for-execution`. Also a replay of such.", "content": CREATED},
    "202": {"description": "Held: `review-required`, with the review.", "content": CREATED},
    **{status: {"description": text, "content": PROBLEM} for status, text in REFUSALS.items()},
}
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "As the contract's idempotency_key_policy demands.",
    "schema": {"type": "string", "maxLength": 200},
}
# These operations create an attempt from an older one, and answer as intake does.
LIKE_INTAKE = {"attempts_replay": [KEY], "quarantine_cases_authorize_retry": [], "quarantine_cases_compensate": []}


def document_intake(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's postprocessing hook."""
    result["components"].setdefault("schemas", {})["AttemptCreated"] = ATTEMPT
    for path in result["paths"].values():
        for operation in path.values():
            if operation["operationId"] in LIKE_INTAKE:
                operation["responses"] = dict(ANSWERS)
                operation["parameters"] = [*operation["parameters"], *LIKE_INTAKE[operation["operationId"]]]
    result["paths"][PATH] = {"post": _operation()}
    return result


def _operation() -> dict[str, Any]:
    return {
        "operationId": "attempts_create",
        "summary": "Ask before acting",
        "description": "Decided from address, headers and credential first: a closed contract leaves the body unread.",
        "tags": ["execution"],
        "security": [{"apiKey": [ApiScope.ATTEMPTS_CREATE.value]}],
        "parameters": [
            {"name": "workflow_slug", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "contract_version", "in": "path", "required": True, "schema": {"type": "string"}},
            KEY,
            {"name": "traceparent", "in": "header", "required": False, "schema": {"type": "string"}},
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": BODY_SCHEMA, "examples": {"smallest": {"value": EXAMPLE}}}},
        },
        "responses": dict(ANSWERS),
    }
