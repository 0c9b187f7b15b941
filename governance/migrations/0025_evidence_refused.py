"""Bundles that are refused because a row differs from the ledger."""

from django.db import migrations, models

import governance.evidence.states
from governance.evidence.states import EVIDENCE_MOVES, REFUSAL_MOVES
from governance.sql.guards import guard_function

FROZEN = ["organization_id", "subject_kind", "subject_id", "actor_kind", "requested_by_ref", "requested_at"]


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0024_cosignatures"),
    ]

    operations = [
        migrations.AddField(
            model_name="evidencebundle",
            name="differences",
            field=models.JSONField(
                default=list,
                help_text="Why it was refused: table, id and field, what the ledger says and what the row says.",
            ),
        ),
        migrations.RemoveConstraint(model_name="evidencebundle", name="evidence_known_state"),
        migrations.AddConstraint(
            model_name="evidencebundle",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", list(governance.evidence.states.EvidenceState))),
                name="evidence_known_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="evidencebundle",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "refused"), _negated=True),
                    models.Q(models.Q(("problem", ""), _negated=True), models.Q(("differences", []), _negated=True)),
                    _connector="OR",
                ),
                name="evidence_refusal_says_why",
            ),
        ),
        migrations.RunSQL(
            sql=guard_function("governance_evidencebundle", EVIDENCE_MOVES | REFUSAL_MOVES, frozen=FROZEN),
            reverse_sql=guard_function("governance_evidencebundle", EVIDENCE_MOVES, frozen=FROZEN),
        ),
    ]
