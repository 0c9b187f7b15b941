"""The index behind `event_redriven_once` has only the events that redrive another one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workflows", "0011_ended")]
    operations = [
        migrations.RemoveConstraint(model_name="workflowevent", name="event_redriven_once"),
        migrations.AddConstraint(
            model_name="workflowevent",
            constraint=models.UniqueConstraint(
                condition=models.Q(("redrives__isnull", False)), fields=("redrives",), name="event_redriven_once"
            ),
        ),
    ]
