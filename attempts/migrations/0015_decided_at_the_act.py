"""Decisions before an act: each intent names the one that it was sent under, and an attempt that was released can be
held again, by a review of its own. An erasure covers those decisions too."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from governance.sql.erasable import door_replaced
from governance.sql.explained import fixed_columns

ERASE = """
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
            {decided}|| ARRAY(SELECT id FROM attempts_review WHERE attempt_id = attempt.id)
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
    UPDATE governance_enforcementdecision SET request = 'null', request_sha256 = '' WHERE {decisions};
    UPDATE attempts_idempotencyrecord SET body = '', parts = '{{}}', fingerprint = '' WHERE attempt_id = attempt.id;
    UPDATE attempts_dispatchintent SET effect_key = '', action_digest = '' WHERE attempt_id = attempt.id;
    UPDATE attempts_receipt SET response_metadata = '{{}}', reversal_hint = '' WHERE attempt_id = attempt.id;
    PERFORM attempts_erase_reviews(item);
    UPDATE attempts_quarantinecase SET evidence_ref = '', incident_ref = '' WHERE attempt_id = attempt.id;
    UPDATE attempts_attempt SET patient_context_ref = '', target_ref = '', payload_ref = '', payload_sha256 = '',
        operation = '', idempotency_key = '', action_digest = '', fields = '[]', metadata = '{{}}',
        erased_at = statement_timestamp() WHERE id = attempt.id;
    PERFORM set_config('holdpoint.erasure', '', true);
    RETURN '';
END
"""
BEFORE = ERASE.format(decided="", decisions="id = attempt.decision_id")
NOW = ERASE.format(
    decided="|| ARRAY(SELECT id FROM governance_enforcementdecision WHERE subject_id = attempt.id)\n            ",
    decisions="id = attempt.decision_id OR subject_id = attempt.id",
)
FIXED = ["organization_id", "kind", "attempt_id", "origin_step", "tier", "approvals_required", "buckets"]
DROP = "DROP TRIGGER fixed_columns ON attempts_review;"
FIX_BEFORE, FIX_NOW = fixed_columns("attempts_review", FIXED), fixed_columns("attempts_review", [*FIXED, "decision_id"])


class Migration(migrations.Migration):
    dependencies = [("attempts", "0014_lines"), ("governance", "0030_decided_at_the_act")]
    operations = [
        migrations.AddField(
            "dispatchintent",
            "decision",
            models.ForeignKey(
                db_index=False,
                help_text="The decision it was sent under.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="governance.enforcementdecision",
            ),
        ),
        # The trigger names the column, whose type a change of the field may touch.
        migrations.RunSQL(sql=DROP, reverse_sql=FIX_BEFORE.sql),
        migrations.AlterField(
            "review",
            "attempt",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="reviews",
                related_query_name="review",
                to="attempts.attempt",
            ),
        ),
        migrations.AddField(
            "review",
            "decision",
            models.ForeignKey(
                db_index=False,
                help_text="The decision that asked for it; empty for a human review, and for holds from before.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="governance.enforcementdecision",
            ),
        ),
        migrations.AddConstraint(
            "review",
            models.UniqueConstraint(
                condition=Q(attempt__isnull=False, status="requested"),
                fields=["attempt"],
                name="review_one_open_per_attempt",
            ),
        ),
        migrations.RunSQL(sql=FIX_NOW.sql, reverse_sql=DROP),
        migrations.RunSQL(
            sql=door_replaced("attempts_erase", NOW), reverse_sql=door_replaced("attempts_erase", BEFORE)
        ),
    ]
