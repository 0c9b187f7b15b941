"""An index for the scheduled task that looks for recent ends without evidence."""

import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workflows", "0010_authorship")]

    operations = [
        migrations.AddIndex(
            model_name="workflowinstance",
            index=django.contrib.postgres.indexes.BrinIndex(fields=["completed_at"], name="instance_ended"),
        ),
    ]
