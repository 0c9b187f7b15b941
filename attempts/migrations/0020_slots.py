"""One row per attempt under way, instead of a numbered row in each of its caps: what waits has none."""

import django.db.models.deletion
from django.db import migrations, models

from attempts.lifecycle.sql import DROP_SLOT_FUNCTIONS, SLOT_FUNCTIONS

# Without the key: whether it is deduplicated stands in a snapshot. Its record refuses a repetition in any case.
UNDER_WAY = """
INSERT INTO attempts_slot (attempt_id, organization_id, workflow_slug, context, key)
SELECT id, organization_id, workflow_slug,
    CASE patient_context_ref WHEN '' THEN '' ELSE encode(sha256(convert_to(patient_context_ref, 'UTF8')), 'hex') END, ''
FROM attempts_attempt
WHERE state = 'approved-for-execution' AND runtime_mode <> 'shadow' AND queued_until IS NULL
  AND (tries = 0 OR next_eligible_at IS NULL)
"""


class Migration(migrations.Migration):
    dependencies = [("attempts", "0019_receiver_circuit"), ("governance", "0030_decided_at_the_act")]
    operations = [
        migrations.DeleteModel("Slot"),
        migrations.CreateModel(
            "Slot",
            [
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="slot",
                        serialize=False,
                        to="attempts.attempt",
                    ),
                ),
                ("workflow_slug", models.CharField(max_length=63)),
                (
                    "context",
                    models.CharField(blank=True, help_text="SHA-256 of the patient context.", max_length=64),
                ),
                ("key", models.CharField(blank=True, help_text="SHA-256 of the idempotency key.", max_length=64)),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["organization", "workflow_slug"], name="slot_by_workflow"),
                    models.Index(
                        fields=["organization", "context"],
                        condition=models.Q(("context", ""), _negated=True),
                        name="slot_by_context",
                    ),
                    models.Index(
                        fields=["organization", "key"],
                        condition=models.Q(("key", ""), _negated=True),
                        name="slot_by_key",
                    ),
                ]
            },
        ),
        *[migrations.RunSQL(sql, "") for sql in SLOT_FUNCTIONS[:-1]],
        migrations.RunSQL(SLOT_FUNCTIONS[-1], DROP_SLOT_FUNCTIONS),
        migrations.RunSQL(UNDER_WAY, ""),
    ]
