"""What a definition asks of its contract: the effect, and the policy documents that suit a workflow's steps. Pure."""

from collections.abc import Mapping
from typing import Any

from governance.contracts.rules.documents import ENVELOPE_FIELDS, default_documents
from governance.contracts.states import STRICTNESS, Effect
from workflows.definitions.rules.document import Definition
from workflows.kinds.base import StepKind, bound_kind

# The metadata that the engine gives with a step's request: codes and ids. What is not listed is refused.
METADATA_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "definition": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "slug": {"type": "string", "pattern": "^[a-z0-9-]{1,63}$"},
                "version": {"type": "integer", "minimum": 1},
            },
        },
        "step_id": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$"},
        "step_kind": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$"},
        "instance_id": {"type": "string", "format": "uuid"},
        "case_id": {"type": "string", "format": "uuid"},
    },
}
# Requests in a minute. The engine is one service account and one case has several steps, so the defaults for a single
# governed action would hold up a clinic of ordinary size.
PER_MINUTE = {"tenant": 6000, "user": 6000, "service": 6000, "workflow": 6000, "context": 60, "region": 60000}

CLINICAL = "clinical"


def effect_of(definition: Definition, kinds: Mapping[str, StepKind]) -> Effect:
    """The strictest effect of its steps, and never milder than what the event adapter can prove."""
    effects = {Effect(bound_kind(kinds[step.kind], step.params).effect) for step in definition.steps.values()}
    return max(effects | {Effect.IDEMPOTENT}, key=lambda effect: STRICTNESS[effect])


def retries_of(definition: Definition) -> int:
    """The most automatic retries that a step asks for."""
    return max((step.max_retries for step in definition.steps.values()), default=0)


def first_documents(definition: Definition, kinds: Mapping[str, StepKind]) -> dict[str, Any]:
    """The documents of a first contract: the safe defaults, adapted to steps that follow each other in one case."""
    documents = default_documents()
    documents["attempt_identity_envelope"] |= {"runtime_modes": ["active"]} | _patient_context(definition, kinds)
    # Steps of one case, and cases of one patient, must not block each other; the organization's own cap remains.
    documents["concurrency_and_locks"]["limits"] |= {"per_context": None, "per_workflow": None, "per_tenant": None}
    documents["throttles_and_misuse"]["limits"] = [
        {"per": per, "limit": limit, "window_seconds": 60} for per, limit in PER_MINUTE.items()
    ]
    documents["metadata_boundary"]["schema"] = METADATA_SCHEMA
    if effect_of(definition, kinds) is not Effect.ONCE:
        documents["retry_and_replay"] = with_retries(documents["retry_and_replay"], retries_of(definition))
    return documents


def _patient_context(definition: Definition, kinds: Mapping[str, StepKind]) -> dict[str, Any]:
    """Whether its actions are about patients: required of clinical steps and of format 1, which was made for them. The
    owner of the area can choose otherwise."""
    clinical = any(kinds[step.kind].pack == CLINICAL for step in definition.steps.values())
    if clinical or definition.format == 1:
        return {"required": list(ENVELOPE_FIELDS)}
    return {"patient_context": "not_applicable"}


def with_retries(document: dict[str, Any], retries: int) -> dict[str, Any]:
    """`retry_and_replay` with automatic retries allowed, because a step asks for them. How many and when is in the
    step."""
    if retries == 0 or document["automatic_retries"] != "never":
        return document
    return document | {"automatic_retries": "when_safe", "max_attempts": 10, "window_seconds": 86_400}
