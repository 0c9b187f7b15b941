"""An index for the scheduled task that looks for recent ends without evidence."""

import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("attempts", "0011_step_reviews_signed")]

    operations = [
        migrations.AddIndex(
            model_name="attempt",
            index=django.contrib.postgres.indexes.BrinIndex(fields=["ended_at"], name="attempt_ended"),
        ),
    ]
