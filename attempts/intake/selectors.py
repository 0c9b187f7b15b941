"""Reads idempotency records, how often each key was used again, and who may replay."""

from uuid import UUID

from django.db.models import QuerySet

from attempts.intake.models import EffectAsk, IdempotencyRecord
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import documents_of
from governance.contracts.states import ContractState
from governance.ledger.models import LedgerEntry
from governance.ledger.selectors import tells
from governance.people.rules.roles import roles_meant
from governance.people.selectors.people import has_role
from governance.tenancy.selectors import tenant_get

# A page must not become slower because a caller repeats its key all day.
COUNT_LIMIT = 1000
ACTIONS = {
    "replays": "attempt.replayed",
    "conflicts": "attempt.conflicted",
    "after_expiry": "attempt.key_expired",
}


def idempotency_record_list(*, key: str | None = None) -> QuerySet[IdempotencyRecord]:
    rows = IdempotencyRecord.objects.order_by("-id")
    return rows.filter(key=key) if key is not None else rows


def idempotency_record_get(*, record_id: UUID) -> IdempotencyRecord:
    return tenant_get(IdempotencyRecord, record_id)


def key_uses(*, record: IdempotencyRecord) -> dict[str, int]:
    """Replays, conflicts and uses after expiry, from the ledger, each counted up to COUNT_LIMIT."""
    entries = LedgerEntry.objects.filter(subject_id=record.attempt_id).order_by()
    return {name: entries.filter(tells(action))[:COUNT_LIMIT].count() for name, action in ACTIONS.items()}


SHOWN = 10


def asked_before(*, attempt: Attempt) -> list[EffectAsk]:
    """Who asked for the same effect before this attempt, newest first, under other keys; the first SHOWN of them."""
    own = EffectAsk.objects.filter(attempt_id=attempt.id).first()
    if own is None or not own.effect_sha256:
        return []
    rows = EffectAsk.objects.filter(
        organization_id=own.organization_id, effect_sha256=own.effect_sha256, number__lt=own.number
    )
    return list(rows.select_related("attempt").order_by("-number")[:SHOWN])


def has_replay_role(*, attempt: Attempt, person_id: UUID, role: str | None) -> bool:
    """`role`: what the contract asks for; None: it lets no person replay."""
    found = {"user_id": person_id, "organization_id": attempt.organization_id}
    return role is not None and any(has_role(**found, role=name) for name in roles_meant(role))


def replay_possible(*, attempt: Attempt, person_id: UUID) -> bool:
    """Whether this person can replay it now. The service checks everything again."""
    rules = documents_of(attempt)["retry_and_replay"]["replay"]
    repeatable = attempt.state in rules["eligible_states"] and attempt.erased_at is None and attempt.operation != ""
    return (
        repeatable
        and attempt.contract.state == ContractState.OPEN
        and attempt.caller.responsible_id != person_id
        and has_replay_role(attempt=attempt, person_id=person_id, role=rules["requires_role"])
    )
