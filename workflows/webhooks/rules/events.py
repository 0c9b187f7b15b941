"""The events that webhook endpoints can get: every type with the schema of its `data`, and how its body is built. Pure.

A body has ids, a status and codes; the receiver fetches everything else with an API key. Types come from two sources:
the outbox (a workflow's life, and what its `emit_webhook` steps say) and the sealed ledger (everything else).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from workflows.definitions.states import Mode
from workflows.events.rules import stamp
from workflows.kinds.base import Json
from workflows.kinds.shapes import CODE, DIALECT, METADATA, MOMENT, RESERVED_PREFIXES, UUID_SCHEMA, closed
from workflows.runs.states import InterventionAction

EMIT: Final = "workflow.webhook_emit.requested"
TEST: Final = "webhook.test"
VERSION: Final = "v1"


@dataclass(frozen=True, slots=True)
class WebhookType:
    """`action` is the ledger action that it tells of; empty: it comes from the outbox, or from a person's test."""

    name: str
    description: str
    data: Json
    action: str = ""
    status: str = ""


def _status(word: str) -> Json:
    return {"const": word}


def _workflow(name: str, status: str, description: str, **more: Json) -> WebhookType:
    fields = {
        "organization_id": UUID_SCHEMA,
        "case_id": UUID_SCHEMA,
        "instance_id": UUID_SCHEMA,
        "status": _status(status),
        **more,
    }
    return WebhookType(name, description, closed(fields, optional=("halt_step_id", "step_id")), status=status)


def _ledger(name: str, subject: str, status: str, description: str) -> WebhookType:
    """Named as its ledger action. A shutdown of the whole installation belongs to no organization."""
    fields = {
        "organization_id": UUID_SCHEMA,
        f"{subject}_id": UUID_SCHEMA,
        "status": _status(status),
        "reason_code": CODE,
    }
    optional: tuple[str, ...] = ("reason_code",)
    if subject in {"review", "quarantine_case"}:
        fields, optional = fields | {"attempt_id": UUID_SCHEMA}, (*optional, "attempt_id")
    if subject == "shutdown":
        optional = (*optional, "organization_id")
    return WebhookType(name, description, closed(fields, optional=optional), name, status)


_LIFE = (
    _workflow(
        "workflow.started",
        "running",
        "An instance began.",
        definition_id=UUID_SCHEMA,
        mode={"enum": [mode.value for mode in Mode]},
    ),
    _workflow("workflow.halted", "halted", "An instance stopped with a reason.", reason_code=CODE, halt_step_id=CODE),
    _workflow("workflow.completed", "completed", "An instance reached its good end."),
    _workflow("workflow.cancelled", "cancelled", "A person ended an instance for good."),
    _workflow(
        "workflow.intervened",
        "intervened",
        "A person acted on an instance.",
        action={"enum": [action.value for action in InterventionAction]},
        reason_code=CODE,
        step_id=CODE,
    ),
    WebhookType(
        EMIT,
        "An emit_webhook step. Delivered under the name that the step gives, with what its template said as payload.",
        closed(
            {"organization_id": UUID_SCHEMA, "case_id": UUID_SCHEMA, "instance_id": UUID_SCHEMA, "payload": METADATA}
        ),
    ),
    WebhookType(
        TEST, "A person tries an endpoint.", closed({"organization_id": UUID_SCHEMA, "endpoint_id": UUID_SCHEMA})
    ),
)
_RECORD = (
    _ledger("attempt.held", "attempt", "review-required", "An attempt waits for people."),
    _ledger("attempt.approved", "attempt", "approved-for-execution", "An attempt was released for execution."),
    _ledger("attempt.denied", "attempt", "preflight-denied", "An attempt was denied, and will not be executed."),
    _ledger("attempt.completed", "attempt", "completed", "An attempt was executed."),
    _ledger("attempt.quarantined", "attempt", "failed-quarantined", "An attempt failed, or nobody knows its outcome."),
    _ledger("review.opened", "review", "open", "A person's judgement is asked for."),
    _ledger("review.approved", "review", "approved", "A review reached its quorum."),
    _ledger("review.rejected", "review", "rejected", "A reviewer rejected."),
    _ledger("review.confirmed", "review", "confirmed", "A reviewer confirmed what a workflow found."),
    _ledger("review.overridden", "review", "overridden", "A reviewer overrode what a workflow found."),
    _ledger("review.decided", "review", "decided", "People decided a task of a workflow."),
    _ledger("review.requeued", "review", "open", "A reviewer declined; the review is back in the queue."),
    _ledger("review.expired", "review", "expired", "Nobody decided in time."),
    _ledger("review.canceled", "review", "canceled", "A review ended with its attempt or step."),
    _ledger("quarantine.found", "quarantine_case", "found", "A person said what happened."),
    _ledger("quarantine.escalated", "quarantine_case", "escalated", "A case waited too long."),
    _ledger("quarantine.incident_linked", "quarantine_case", "incident_linked", "A case belongs to an incident."),
    _ledger("quarantine.retry_authorized", "quarantine_case", "retry_authorized", "A new attempt was authorized."),
    _ledger("quarantine.compensated", "quarantine_case", "compensated", "A compensating attempt was opened."),
    _ledger("quarantine.accepted", "quarantine_case", "accepted", "The outcome was accepted."),
    _ledger("quarantine.handed_over", "quarantine_case", "incident", "The linked incident has taken the case over."),
    _ledger("contract.opened", "contract", "open", "A contract takes attempts."),
    _ledger("contract.suspended", "contract", "suspended", "A contract takes no attempts for now."),
    _ledger("contract.retired", "contract", "retired", "A version of a contract has ended."),
    _ledger("shutdown.engaged", "shutdown", "engaged", "A shutdown stops everything in its scope."),
    _ledger("shutdown.released", "shutdown", "released", "A shutdown is over."),
    _ledger("webhook_endpoint.disabled", "webhook_endpoint", "disabled", "An endpoint gets nothing any more."),
)
TYPES: Final[Mapping[str, WebhookType]] = {
    one.name: one for one in sorted((*_LIFE, *_RECORD), key=lambda one: one.name)
}
BY_ACTION: Final[Mapping[str, WebhookType]] = {one.action: one for one in TYPES.values() if one.action}
# Of a lifecycle event's payload, what a thin body takes over. Notes and people are not among it.
_TAKEN: Final = ("definition_id", "mode", "reason_code", "halt_step_id", "action", "step_id")


def webhook_schema(one: WebhookType) -> Json:
    """The JSON Schema of the whole body."""
    name: Json = {"const": one.name} if one.name != EMIT else {"type": "string", "maxLength": 100}
    head = {
        "$schema": DIALECT,
        "title": f"{one.name} {VERSION}",
        "description": one.description,
    }
    return head | closed({"type": name, "timestamp": MOMENT, "data": one.data})


def type_of_outbox(event_type: str, payload: Mapping[str, Any]) -> str:
    """Under which name an outgoing event reaches endpoints; empty: it is not for them."""
    if event_type == EMIT:
        name = str(payload.get("event_name", ""))
        own = name in TYPES or name.startswith(RESERVED_PREFIXES)  # published before the name was reserved
        return EMIT if own or not name else name
    return event_type if event_type in TYPES else ""


def body_of_outbox(name: str, envelope: Mapping[str, Any], *, instance_id: str) -> bytes:
    known, payload = TYPES.get(name), envelope["payload"]
    data: Json = {"organization_id": envelope["org_id"], "case_id": envelope["case_id"], "instance_id": instance_id}
    if envelope["event_type"] == EMIT or known is None:
        data["payload"] = payload.get("payload", {})
    else:
        data |= {"status": known.status} | {field: payload[field] for field in _TAKEN if field in payload}
    return body_bytes(name, envelope["occurred_at"], data)


def body_of_entry(
    one: WebhookType, *, organization_id: str | None, subject_id: str, reason_code: str, attempt_id: str, at: datetime
) -> bytes:
    """Of a ledger entry: its header, and which attempt it is about."""
    subject = next(name for name in one.data["properties"] if name.endswith("_id") and name != "organization_id")
    given = {"organization_id": organization_id, subject: subject_id, "status": one.status, "reason_code": reason_code}
    if "attempt_id" in one.data["properties"]:
        given |= {"attempt_id": given.get("attempt_id") or attempt_id}
    return body_bytes(one.name, stamp(at), {name: value for name, value in given.items() if value})


def body_bytes(name: str, timestamp: str, data: Json) -> bytes:
    """UTF-8 as it is, not escaped: these are the bytes that are signed, stored and sent."""
    return json.dumps(
        {"type": name, "timestamp": timestamp, "data": data}, separators=(",", ":"), ensure_ascii=False
    ).encode()
