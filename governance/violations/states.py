"""The kinds of violations. The model, its check constraint and the API read this list."""

from enum import StrEnum


class ViolationKind(StrEnum):
    CROSS_TENANT = "cross_tenant"
    RECORD_MUTATION = "record_mutation"
    UNAUTHORIZED_DECISION = "unauthorized_decision"
    OWN_WORK_APPROVED = "own_work_approved"
    STALE_LEASE = "stale_lease"
    SECOND_PERSON_MISSING = "second_person_missing"
    ROLES_FORBIDDEN = "roles_forbidden"
    MODULE_OVERREACH = "module_overreach"
