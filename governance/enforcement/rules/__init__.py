"""Enforcement (law 3): one decision from a request and its recorded environment, the same today and years later.
Pure: no database, no clock and no randomness of its own. Described in docs/enforcement.md."""

from governance.enforcement.rules.deciding import SLOWEST_SECONDS, evaluate
from governance.enforcement.rules.environment import Environment
from governance.enforcement.rules.names import EVALUATORS
from governance.enforcement.rules.schemas import FACTS_SCHEMA, REQUEST_SCHEMA
from governance.enforcement.rules.shape import request_problems
from governance.enforcement.rules.storage import (
    approval_document,
    decision_document,
    environment_sha256,
    request_sha256,
    results_from_document,
)
from governance.enforcement.rules.verdict import Approval, Decision, EvaluatorResult, Verdict
from governance.enforcement.rules.withholding import boundary_findings, storable_request, withhold

__all__ = [
    "EVALUATORS",
    "FACTS_SCHEMA",
    "REQUEST_SCHEMA",
    "SLOWEST_SECONDS",
    "Approval",
    "Decision",
    "Environment",
    "EvaluatorResult",
    "Verdict",
    "approval_document",
    "boundary_findings",
    "decision_document",
    "environment_sha256",
    "evaluate",
    "request_problems",
    "request_sha256",
    "results_from_document",
    "storable_request",
    "withhold",
]
