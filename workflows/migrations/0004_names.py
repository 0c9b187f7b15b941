"""What the console calls them. Changes no table."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workflows", "0003_bulk_and_cases")]
    operations = [
        migrations.AlterModelOptions(name="workflowinstance", options={"ordering": ["-id"], "verbose_name": "run"}),
        migrations.AlterModelOptions(name="workflowevent", options={"ordering": ["-id"], "verbose_name": "event"}),
        migrations.AlterModelOptions(
            name="outboxevent", options={"ordering": ["id"], "verbose_name": "outgoing event"}
        ),
    ]
