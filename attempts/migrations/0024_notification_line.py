"""Messages in fair turns between organizations."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("attempts", "0023_wider_caps")]
    operations = [
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["organization", "next_try_at", "id"],
                name="notification_line",
            ),
        ),
    ]
