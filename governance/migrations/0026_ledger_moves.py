"""Format 2 of ledger entries: one entry per transaction and subject, with the moves before the deciding one in
`earlier`. Rows that exist are of format 1 and are not touched: a constant default rewrites nothing."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("governance", "0025_evidence_refused")]
    operations = [
        migrations.AddField(
            model_name="ledgerentry",
            name="format",
            field=models.PositiveSmallIntegerField(db_default=1, default=2),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="earlier",
            field=models.JSONField(
                null=True, help_text="The moves before the action, in order. Their facts are in the payload."
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=Q(("earlier__isnull", True), ("format__gt", 1), _connector="OR"),
                name="ledger_moves_are_hashed",
            ),
        ),
    ]
