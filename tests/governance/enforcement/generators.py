"""Hypothesis strategies: any JSON, requests and worlds that are good or spoiled in one place, and worse worlds."""

from typing import Any

from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
REFERENCES = st.sampled_from(
    [
        "ctx-42",
        "ticket/42",
        "Jane Doe",
        "jane@example.org",
        "ssn-123-45-6789",
        "4111111111111111",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "a sentence of more than three words.",
        "with space",
        "",
        "x" * 300,
        "nul\x00",
        None,
    ]
)
TEXTS = st.sampled_from(["ticket.update", "ticket.close", "Jane Doe", "http", "email", "jane@example.org"])
NUMBERS = st.sampled_from([1, 2.0, 5, 5.0, 7, 1e16, 1e22, 0.5, -0.0, 2**53])
REQUEST_CHANGES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "envelope.request_trace_id": REFERENCES,
        "envelope.idempotency_key": REFERENCES,
        "envelope.patient_context_ref": REFERENCES,
        "envelope.review_owner": REFERENCES,
        "envelope.runtime_mode": st.sampled_from(["active", "client_driven", "shadow", "other", None]),
        "envelope.contract_version": st.sampled_from(["3", 3, 3.0, "4", None]),
        "action.connector": TEXTS,
        "action.operation": TEXTS,
        "action.target_ref": REFERENCES,
        "action.payload_ref": REFERENCES,
        "action.risk_tier": st.sampled_from(["low", "medium", "high"]),
        "action.fields": st.lists(TEXTS, max_size=4),
        "metadata.priority": NUMBERS,
        "metadata.ticket": st.sampled_from(["TKT-1", "jane@example.org", "Jane Doe", "a\x00b"]),
        "metadata.extra": JSON,
    },
)
# Each of these makes the world worse or leaves it as bad as it was.
WORSE: list[dict[str, Any]] = [
    {"facts.contract_state": "suspended"},
    {"contract": None},
    {"policy": None},
    {"region": None},
    {"facts.shutdowns": [{"id": "sd-9", "scope": "global"}]},
    {"facts.shutdowns": [{"id": "sd-9", "scope": "unheard_of"}]},
    {"facts.deployment_region": "KW"},
    {"facts.organization.regions": []},
    {"facts.organization.status": "closed"},
    {"facts.caller.scopes": []},
    {"facts.caller.status": "suspended"},
    {"facts.throttle.status": "limited"},
    {"facts.throttle.status": "unavailable"},
    {"facts.concurrency": {"status": "unavailable"}},
    {"facts.failures": {"region": "timeout"}},
    {"facts.failures": {"policy": "raised:KeyError"}},
    {"facts.at": "yesterday"},
    {"facts.throttle": {"status": None}},
    {"facts.policy_sha256": "0" * 64},
]
PATHS = [
    "facts.at",
    "facts.organization",
    "facts.organization.regions",
    "facts.caller",
    "facts.caller.scopes",
    "facts.shutdowns",
    "facts.throttle",
    "facts.throttle.retry_after",
    "facts.concurrency",
    "facts.failures",
    "facts.deployment_region",
    "facts.contract_sha256",
    "contract",
    "contract.documents",
    "contract.documents.metadata_boundary",
    "contract.documents.attempt_identity_envelope.required",
    "contract.version",
    "policy",
    "policy.rules",
    "policy.version",
    "region",
    "region.profiles",
    "region.terms",
]
