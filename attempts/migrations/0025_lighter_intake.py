"""An intake writes less: references to rows that stay take no lock on them, and three indexes leave out what nobody looks
for."""

import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

from governance.sql.references import ids_stay, names_kept_row


def without_constraint(to: str, related_name: str = "+") -> "models.ForeignKey[models.Model, models.Model]":
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.PROTECT,
        related_name=related_name,
        to=to,
    )


class Migration(migrations.Migration):
    dependencies = [("attempts", "0024_notification_line"), ("governance", "0034_services_stay")]
    operations = [
        # Decisions are append-only and attempts are never deleted: both have their guards.
        ids_stay("attempts_attempt"),
        migrations.AlterField("attempt", "decision", without_constraint("governance.enforcementdecision")),
        migrations.AlterField("attempt", "caller", without_constraint("governance.serviceaccount")),
        migrations.AlterField("attempttransition", "attempt", without_constraint("attempts.attempt", "transitions")),
        migrations.AlterField("idempotencyrecord", "attempt", without_constraint("attempts.attempt")),
        names_kept_row("attempts_attempt", "decision_id", "governance_enforcementdecision"),
        names_kept_row("attempts_attempt", "caller_id", "governance_serviceaccount"),
        names_kept_row("attempts_attempttransition", "attempt_id", "attempts_attempt"),
        names_kept_row("attempts_idempotencyrecord", "attempt_id", "attempts_attempt"),
        migrations.RemoveIndex("attempttransition", "transition_by_attempt"),
        migrations.AddIndex("attempttransition", models.Index(fields=["attempt"], name="transition_by_attempt")),
        migrations.RemoveIndex("attempt", "attempt_retention"),
        migrations.RemoveIndex("attempt", "attempt_ended"),
        migrations.AddIndex(
            "attempt",
            django.contrib.postgres.indexes.BrinIndex(
                fields=["retention_until"], name="attempt_retention", pages_per_range=16
            ),
        ),
        migrations.AddIndex(
            "attempt",
            django.contrib.postgres.indexes.BrinIndex(
                condition=models.Q(("ended_at__isnull", False)), fields=["ended_at"], name="attempt_ended"
            ),
        ),
    ]
