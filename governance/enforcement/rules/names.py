"""Names that several modules share: the evaluators in their fixed order, formats, and the request's references."""

from typing import Final

# Law 3: the order is part of the meaning of every stored decision: it chooses the reason code among equal verdicts.
# Inserting or moving one would make replays of old decisions differ.
EVALUATORS: Final = (
    "contract_open",
    "shutdown",
    "envelope",
    "metadata_boundary",
    "region",
    "authorization",
    "throttle",
    "concurrency",
    "policy",
)
# Names of results that replace the evaluators' when request or environment cannot be judged at all.
REQUEST_SHAPE: Final = "request_shape"
ENVIRONMENT_SHAPE: Final = "environment_shape"

REQUEST_FORMAT: Final = "holdpoint-request-v1"
ENVIRONMENT_FORMAT: Final = "holdpoint-environment-v1"
CONTRACT_FORMAT: Final = "holdpoint-contract-v1"
POLICY_FORMAT: Final = "holdpoint-policy-v1"
DECISION_FORMAT: Final = "holdpoint-decision-v1"

# What a request is decided again before: the first try of an executor, a later try, the request of a workflow step.
ACTS: Final = ("lease", "retry", "dispatch")
# Status of throttle and slot in such a decision: the request was counted when it came in, and is not counted twice.
TAKEN: Final = "taken"

RISK_TIERS: Final = ("low", "medium", "high")
# References that a caller writes freely, so the boundary inspects them before they may be stored. The first group has
# few different values, so their inspection is cached.
REPEATED_REFERENCES: Final = (("action", "connector"), ("action", "operation"), ("envelope", "review_owner"))
UNIQUE_REFERENCES: Final = (
    ("action", "payload_ref"),
    ("action", "target_ref"),
    ("envelope", "idempotency_key"),
    ("envelope", "patient_context_ref"),
    ("envelope", "request_trace_id"),
)
FIELDS_POINTER: Final = "/action/fields"
