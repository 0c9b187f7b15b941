"""Until when an attempt is kept, and what is left of it once it was erased by order."""

import django.contrib.postgres.indexes
from django.db import migrations, models

from attempts.lifecycle.states import ATTEMPT_MOVES
from governance.sql.erasable import door, erasable, erasable_machine

BEFORE = [
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
ERASED = {
    "patient_context_ref": "''",
    "target_ref": "''",
    "payload_ref": "''",
    "payload_sha256": "''",
    "operation": "''",
    "idempotency_key": "''",
    "action_digest": "''",
    "fields": "'[]'::jsonb",
    "metadata": "'{}'::jsonb",
}
OF_THE_ATTEMPT = "($1).attempt_id = ($2).subject_id"
DOOR = """
DECLARE
    item governance_erasureitem;
    attempt attempts_attempt;
    last timestamptz;
BEGIN
    item := holdpoint_erasure_take(wanted, 'attempt');
    SELECT * INTO attempt FROM attempts_attempt
        WHERE id = item.subject_id AND organization_id = item.organization_id FOR NO KEY UPDATE;
    IF attempt.id IS NULL OR attempt.erased_at IS NOT NULL THEN
        RETURN 'nothing_to_erase';
    END IF;
    UPDATE governance_erasureitem SET
        contract = attempt.workflow_slug,
        refs = array_remove(ARRAY[attempt.patient_context_ref, attempt.target_ref, attempt.payload_ref], ''),
        related = ARRAY[attempt.id, attempt.decision_id]
            || ARRAY(SELECT id FROM attempts_review WHERE attempt_id = attempt.id)
            || ARRAY(SELECT id FROM attempts_quarantinecase WHERE attempt_id = attempt.id)
    WHERE id = item.id RETURNING * INTO item;
    IF holdpoint_held(item) THEN
        RETURN 'legal_hold';
    END IF;
    IF attempt.state = 'failed-quarantined' AND NOT EXISTS (
        SELECT FROM attempts_quarantinecase WHERE attempt_id = attempt.id AND resolution <> '')
    THEN
        RETURN 'quarantine_unresolved';
    END IF;
    IF attempt.state NOT IN ('completed', 'preflight-denied', 'failed-quarantined') THEN
        RETURN 'not_finished';
    END IF;
    last := greatest(attempt.created_at, attempt.ended_at,
        (SELECT max(resolved_at) FROM attempts_quarantinecase WHERE attempt_id = attempt.id));
    IF attempt.retention_until IS NULL OR attempt.retention_until + (last - attempt.created_at)
        + make_interval(days => (last > attempt.created_at)::integer) > statement_timestamp()
    THEN
        RETURN 'retention_not_over';
    END IF;
    PERFORM set_config('holdpoint.erasure', item.id::text, true);
    UPDATE governance_erasureitem SET entries = holdpoint_erase_payloads(item) WHERE id = item.id;
    UPDATE governance_enforcementdecision SET request = 'null', request_sha256 = '' WHERE id = attempt.decision_id;
    UPDATE attempts_idempotencyrecord SET body = '', parts = '{}', fingerprint = '' WHERE attempt_id = attempt.id;
    UPDATE attempts_dispatchintent SET effect_key = '', action_digest = '' WHERE attempt_id = attempt.id;
    UPDATE attempts_receipt SET response_metadata = '{}', reversal_hint = '' WHERE attempt_id = attempt.id;
    PERFORM attempts_erase_reviews(item);
    UPDATE attempts_quarantinecase SET evidence_ref = '', incident_ref = '' WHERE attempt_id = attempt.id;
    UPDATE attempts_attempt SET patient_context_ref = '', target_ref = '', payload_ref = '', payload_sha256 = '',
        operation = '', idempotency_key = '', action_digest = '', fields = '[]', metadata = '{}',
        erased_at = statement_timestamp() WHERE id = attempt.id;
    PERFORM set_config('holdpoint.erasure', '', true);
    RETURN '';
END
"""
# Reviews of an attempt or of a run's human-review steps: those among the item's related subjects.
REVIEWS = """
CREATE FUNCTION attempts_erase_reviews(item governance_erasureitem) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE governance_note SET text = '', salt = '' WHERE id IN (
        SELECT note_id FROM attempts_reviewvote WHERE review_id = ANY((item).related));
    UPDATE attempts_reviewvote SET result_ref = '', result_sha256 = '', action_digest = ''
        WHERE review_id = ANY((item).related);
    UPDATE attempts_review SET subject_ref = '', label = '', action_digest = '' WHERE id = ANY((item).related);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("attempts", "0003_human_reviews"), ("governance", "0009_retention")]
    operations = [
        migrations.AddField("attempt", "erased_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "attempt",
            "retention_until",
            models.DateTimeField(
                help_text="Stamped at admission by the regional profile; empty: unknown, so kept.", null=True
            ),
        ),
        migrations.AddIndex(
            "attempt",
            django.contrib.postgres.indexes.BrinIndex(fields=["retention_until"], name="attempt_retention"),
        ),
        erasable(
            "attempts_idempotencyrecord", belongs=OF_THE_ATTEMPT, erased={"body": "", "parts": {}, "fingerprint": ""}
        ),
        erasable("attempts_dispatchintent", belongs=OF_THE_ATTEMPT, erased={"effect_key": "", "action_digest": ""}),
        erasable("attempts_receipt", belongs=OF_THE_ATTEMPT, erased={"response_metadata": {}, "reversal_hint": ""}),
        erasable(
            "attempts_reviewvote",
            belongs="($1).review_id = ANY(($2).related)",
            erased={"result_ref": "", "result_sha256": "", "action_digest": ""},
        ),
        erasable_machine(
            "attempts_attempt",
            ATTEMPT_MOVES,
            frozen=[*BEFORE, "retention_until", "erased_at"],
            before=BEFORE,
            erased=ERASED,
        ),
        migrations.RunSQL(sql=REVIEWS, reverse_sql="DROP FUNCTION attempts_erase_reviews(governance_erasureitem);"),
        door("attempts_erase", DOOR),
    ]
