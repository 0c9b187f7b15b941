"""Orders for many that a tick takes up again, and the runs of a case that were superseded."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workflows", "0002_guards")]
    operations = [
        migrations.AddField(
            model_name="bulkintervention",
            name="resume_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now,
                help_text="When the tick takes it up, should whoever works on it have died.",
            ),
            preserve_default=False,
        ),
        migrations.AddIndex(
            model_name="bulkintervention",
            index=models.Index(condition=models.Q(("finished_at", None)), fields=["resume_at"], name="bulk_unfinished"),
        ),
        migrations.AddIndex(
            model_name="workflowinstance",
            index=models.Index(
                condition=models.Q(("superseded_by__isnull", False)),
                fields=["organization", "case_id"],
                name="instance_superseded",
            ),
        ),
    ]
