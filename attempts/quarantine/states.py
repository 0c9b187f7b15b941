"""Categories, investigated outcomes and resolutions of quarantine cases."""

from enum import StrEnum


class QuarantineCategory(StrEnum):
    OUTCOME_UNKNOWN = "outcome_unknown"
    ADAPTER_FAILURE = "adapter_failure"
    TIMEOUT = "timeout"
    INVALID_RESPONSE = "invalid_response"
    POLICY_CHANGED = "policy_changed"
    LEASE_LOST = "lease_lost"


class InvestigatedOutcome(StrEnum):
    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"


class Resolution(StrEnum):
    RETRY_AUTHORIZED = "retry_authorized"
    COMPENSATED = "compensated"
    ACCEPTED = "accepted"
    INCIDENT = "incident"
