"""The manifests of guards."""

from django.db import migrations, models

import reasoncodes.base.ids
from governance.sql.guards import protect_table


class Migration(migrations.Migration):
    dependencies = [("governance", "0028_explained")]
    operations = [
        migrations.CreateModel(
            name="GuardManifest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("sha256", models.CharField(max_length=64)),
                ("content", models.TextField(help_text="Canonical JSON, as it was hashed.")),
                ("adopted_at", models.DateTimeField()),
            ],
            options={"ordering": ["-id"]},
        ),
        protect_table("governance_guardmanifest"),
    ]
