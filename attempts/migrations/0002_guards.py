"""What the database itself refuses: illegal moves of an attempt, changes of what it is, changes of the record."""

from django.db import migrations

from attempts.lifecycle.states import ATTEMPT_MOVES
from governance.sql.guards import legal_moves_only, protect_table

FROZEN = [
    "organization_id",
    "contract_id",
    "decision_id",
    "caller_id",
    "idempotency_key",
    "patient_context_ref",
    "runtime_mode",
    "connector",
    "operation",
    "target_ref",
    "effect",
    "risk_tier",
    "payload_ref",
    "payload_sha256",
    "fields",
    "action_digest",
    "metadata",
    "retry_of_id",
    "compensates_id",
    "origin_step",
    "created_at",
]


class Migration(migrations.Migration):
    dependencies = [("attempts", "0001_initial"), ("governance", "0004_decision_guards")]
    operations = [
        protect_table("attempts_attempttransition"),
        protect_table("attempts_idempotencyrecord"),
        protect_table("attempts_dispatchintent"),
        protect_table("attempts_receipt"),
        protect_table("attempts_reviewvote"),
        legal_moves_only("attempts_attempt", ATTEMPT_MOVES, frozen=FROZEN),
    ]
