"""Keys by their end: who is told before it, and the figures of it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0019_key_handovers"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="apikey",
            index=models.Index(condition=models.Q(("revoked_at", None)), fields=["expires_at"], name="api_key_by_end"),
        ),
    ]
