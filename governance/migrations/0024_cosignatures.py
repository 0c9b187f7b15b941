"""Cosignatures of witnesses, beside their receipts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0023_record_checks"),
    ]

    operations = [
        migrations.AddField(
            model_name="witnessreceipt",
            name="cosignature",
            field=models.TextField(blank=True, db_default="", help_text="The C2SP line, of a witness that cosigns."),
        ),
        migrations.AddConstraint(
            model_name="witnessreceipt",
            constraint=models.CheckConstraint(
                condition=models.Q(("result", "stored"), ("cosignature", ""), _connector="OR"),
                name="witness_receipt_cosigned_if_stored",
            ),
        ),
    ]
