"""The ten areas in their fixed order, their owner groups, and copies of their default documents."""

from __future__ import annotations

from copy import deepcopy

from governance.contracts.rules.documents.area import Area, Document
from governance.contracts.rules.documents.areas import (
    attempt_identity_envelope,
    attempt_state_machine,
    concurrency_and_locks,
    durable_attempt_store,
    failure_quarantine,
    idempotency_key_policy,
    metadata_boundary,
    regional_compliance,
    retry_and_replay,
    throttles_and_misuse,
)
from governance.contracts.rules.documents.errors import UnknownAreaError

AREAS: tuple[Area, ...] = (
    attempt_identity_envelope.AREA,
    idempotency_key_policy.AREA,
    attempt_state_machine.AREA,
    durable_attempt_store.AREA,
    concurrency_and_locks.AREA,
    retry_and_replay.AREA,
    failure_quarantine.AREA,
    throttles_and_misuse.AREA,
    metadata_boundary.AREA,
    regional_compliance.AREA,
)
# Nine groups, because platform-architecture owns two areas. In the order of the areas.
OWNER_GROUPS: tuple[str, ...] = tuple(dict.fromkeys(entry.owner_group for entry in AREAS))
_BY_NAME = {entry.name: entry for entry in AREAS}


def area(name: str) -> Area:
    """The area with this name. Raises UnknownAreaError."""
    try:
        return _BY_NAME[name]
    except (KeyError, TypeError):
        raise UnknownAreaError from None


def default_documents() -> dict[str, Document]:
    """The ten default documents, as deep copies that the caller may change."""
    return {entry.name: deepcopy(entry.default) for entry in AREAS}
