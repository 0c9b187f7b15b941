"""Handovers between sealing keys: which key may seal after which."""

import django.db.models.deletion
from django.db import migrations, models

from governance.sql.guards import protect_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0018_identity"),
    ]

    operations = [
        migrations.CreateModel(
            name="LedgerKeyHandover",
            fields=[
                ("number", models.PositiveIntegerField(primary_key=True, serialize=False)),
                ("new_key", models.CharField(db_index=True, max_length=8)),
                ("new_verifier", models.TextField(help_text="name+id+base64, as C2SP writes it.")),
                ("size", models.BigIntegerField(help_text="Entries under the newest head when it was made.")),
                ("signature", models.BinaryField(max_length=64)),
                ("at", models.DateTimeField()),
                (
                    "old_key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.ledgerkey",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("new_key", models.F("old_key")), _negated=True),
                        name="ledger_key_hands_over_to_another",
                    )
                ],
            },
        ),
        protect_table("governance_ledgerkeyhandover"),
    ]
