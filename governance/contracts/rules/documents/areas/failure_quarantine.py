"""Which failures stop in quarantine under which category, who is called, and what closing a case needs."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import (
    SLUG_PATTERN,
    array,
    choice,
    closed_object,
    document,
    fixed,
    flag,
    integer,
    text,
)

CATEGORIES = (
    "outcome_unknown",
    "adapter_failure",
    "timeout",
    "invalid_response",
    "policy_changed",
    "lease_lost",
)
# What happened → the category it gets unless the document says otherwise.
DEFAULT_TRIGGERS = {
    "intent_without_receipt": "outcome_unknown",
    "adapter_timeout": "outcome_unknown",
    "adapter_reported_failure": "adapter_failure",
    "deadline_passed_before_intent": "timeout",
    "response_rejected": "invalid_response",
    "recheck_refused_after_lease": "policy_changed",
}
# After these nobody knows whether the side effect happened. Another category would hide that (constitution, "what does
# a timeout mean").
TRIGGERS_OF_UNKNOWN_OUTCOME = ("intent_without_receipt", "adapter_timeout")
CONTRACT_REFERENCE_PATTERN = r"^[a-z][a-z0-9]*([-_][a-z0-9]+)*/v?[0-9]{1,6}([.][0-9]{1,6}){0,2}$"
_TITLE = "Failure quarantine and compensation"

AREA = Area(
    name="failure_quarantine",
    owner_group="trust-operations",
    title=_TITLE,
    description=(
        "Decides under which category each kind of failure stops in quarantine, which group is called and "
        "after how long, which contract a person may use to compensate, and whether a case can be closed "
        "without an incident. Nothing is repaired or compensated automatically: a person does it, with a "
        "new attempt and all checks."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "categories": array(
                description="Categories in use; executors may report only these.",
                items=choice(description="Failure category.", options=CATEGORIES),
                min_items=1,
                max_items=len(CATEGORIES),
            ),
            "triggers": array(
                description="What sends an attempt to quarantine. Every trigger is listed exactly once.",
                items=closed_object(
                    description="One trigger and the category its cases get.",
                    fields={
                        "on": choice(description="What happened.", options=tuple(DEFAULT_TRIGGERS)),
                        "category": choice(description="Category of the case.", options=CATEGORIES),
                    },
                ),
                min_items=len(DEFAULT_TRIGGERS),
                max_items=len(DEFAULT_TRIGGERS),
            ),
            "escalation_owner": text(
                description="Owner group or role that is called for a case.",
                pattern=SLUG_PATTERN,
                max_length=64,
            ),
            "escalation_after_seconds": integer(
                description="How long a case may stay unclaimed before it is escalated.",
                minimum=60,
                maximum=604_800,
            ),
            "compensation_contract": text(
                description="Contract a person may use to compensate, as slug/version; null means none.",
                pattern=CONTRACT_REFERENCE_PATTERN,
                max_length=128,
                nullable=True,
            ),
            "incident_required": flag(description="Whether a case needs a linked incident before it is resolved."),
            "blocked_actions": fixed(
                description="Blocked actions stay listed until a person has resolved the case.",
                value="listed_until_resolved",
            ),
        },
    ),
    default={
        "categories": list(CATEGORIES),
        "triggers": [{"on": on, "category": category} for on, category in DEFAULT_TRIGGERS.items()],
        "escalation_owner": "trust-operations",
        "escalation_after_seconds": 3_600,
        "compensation_contract": None,
        "incident_required": True,
        "blocked_actions": "listed_until_resolved",
    },
)
