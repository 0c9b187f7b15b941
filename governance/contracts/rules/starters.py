"""Starters: rules and ten filled-in documents for a first contract, and an example request for it. Pure."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from governance.contracts.rules.documents import default_documents

REVIEWER = "approvers"  # the tier that every organization begins with
HOLD: dict[str, Any] = {"when": "true", "verdict": "needs_approval", "tier": REVIEWER, "expires_in_seconds": 86400}
METADATA: dict[str, Any] = {
    "source": {"type": "string", "maxLength": 40},
    "model": {"type": "string", "maxLength": 60},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    "priority": {"enum": ["routine", "urgent"]},
}


@dataclass(frozen=True, slots=True)
class Starter:
    """`changes` are merged into the safe default documents, area by area."""

    name: str
    title: str
    description: str
    rules: tuple[dict[str, Any], ...]
    effect: str = "once"
    adapter: str = "external"
    risk_tier: str = "medium"
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def policy_slug(self) -> str:
        return f"starter-{self.name}"


STARTERS: tuple[Starter, ...] = (
    Starter(
        "one-reviewer",
        "One reviewer releases each action",
        "Every action waits for one reviewer, a day at most; then it is denied. The caller carries it out and reports.",
        (HOLD | {"id": "one-reviewer", "approvals_required": 1},),
    ),
    Starter(
        "two-reviewers",
        "Two different reviewers release each action",
        "For what cannot be taken back: two people have to agree, and neither of them may have asked for it.",
        (HOLD | {"id": "two-reviewers", "approvals_required": 2},),
        risk_tier="high",
    ),
    Starter(
        "low-risk-passes",
        "Low risk passes, the rest waits",
        "Actions that the caller marks as low risk pass at once; medium and high risk wait for one reviewer.",
        (
            {"id": "low-risk", "when": 'action.risk_tier == "low"', "verdict": "allow"},
            HOLD | {"id": "rest", "approvals_required": 1},
        ),
        # The least that a caller can declare: with a higher one nothing would be of low risk.
        risk_tier="low",
    ),
    Starter(
        "record-only",
        "Everything passes and is on record",
        "To find out what a service does before anything is held: all actions pass, each with its decision and record.",
        ({"id": "all", "when": "true", "verdict": "allow", "description": "Everything passes."},),
    ),
)


def starter(name: str) -> Starter:
    """The starter with this name. Raises KeyError for an unknown name."""
    return {one.name: one for one in STARTERS}[name]


def starter_documents(one: Starter) -> dict[str, Any]:
    """All ten documents: the safe defaults with a few metadata fields and higher limits."""
    # The defaults admit one attempt per patient context at a time: a first trial would be refused at its second
    # request while the first one waits for a reviewer.
    documents = default_documents()
    documents["metadata_boundary"]["schema"]["properties"] = dict(METADATA)
    documents["concurrency_and_locks"]["limits"] |= {"per_context": 10, "per_workflow": 50}
    documents["failure_quarantine"]["incident_required"] = False
    for area, change in one.changes.items():
        documents[area] |= dict(change)
    return documents


def attempt_example() -> dict[str, Any]:
    """The smallest body that starters and demo contracts accept. Without a connector it is the contract's own."""
    return {
        "patient_context_ref": "ctx-0001",
        "action": {
            "operation": "case.update",
            "target_ref": "case-0001",
            "risk_tier": "low",
            "payload_ref": "payload-0001",
            "payload_sha256": "0" * 64,
            "fields": ["status"],
        },
        "metadata": {},
    }


def curl_line(*, base_url: str, slug: str, version: int, secret: str, key: str, body: Mapping[str, Any]) -> str:
    """One complete command for a POSIX shell."""
    # Quoted: a value with an apostrophe would otherwise end the argument and run as shell text.
    words = [
        f"curl -sS -X POST {base_url}/api/v1/execution/{slug}/{version}/attempts",
        f"-H {shlex.quote(f'Authorization: Bearer {secret}')}",
        f"-H {shlex.quote(f'Idempotency-Key: {key}')}",
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(json.dumps(body))}",
    ]
    return " \\\n  ".join(words)
