"""Decisions may stand in a frame that many of them share; those that are stored whole stay as they are."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("governance", "0006_ledger_order")]
    operations = [
        migrations.AddField("enforcementdecision", "frame_sha256", models.BinaryField(max_length=32, null=True)),
    ]
