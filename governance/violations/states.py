"""States and moves of this app's machines, as data: models, database triggers and tests read the same tables."""

from enum import StrEnum


class ViolationKind(StrEnum):
    CROSS_TENANT = "cross_tenant"
    RECORD_MUTATION = "record_mutation"
    UNAUTHORIZED_DECISION = "unauthorized_decision"
    OWN_WORK_APPROVED = "own_work_approved"
    STALE_LEASE = "stale_lease"
    SECOND_PERSON_MISSING = "second_person_missing"
