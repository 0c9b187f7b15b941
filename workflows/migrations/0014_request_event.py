"""Which outgoing event asks for a step: its time counts from when that was published."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0013_explained"),
    ]

    operations = [
        migrations.AddField(
            model_name="workflowstep",
            name="request_event",
            field=models.UUIDField(help_text="The outgoing event that asks for it.", null=True),
        ),
    ]
