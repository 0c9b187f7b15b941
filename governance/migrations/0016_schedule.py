from django.db import migrations, models

import reasoncodes.base.ids
from governance.sql.guards import protect_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0015_authorship"),
    ]

    operations = [
        migrations.CreateModel(
            name="ScheduleChange",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "name",
                    models.CharField(help_text="Of the scheduled task, as in `SCHEDULE`.", max_length=64),
                ),
                ("seconds", models.PositiveIntegerField()),
                ("actor_ref", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["name", "-id"], name="schedule_change_newest")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("seconds__gte", 1)), name="schedule_change_at_least_a_second"
                    )
                ],
            },
        ),
        protect_table("governance_schedulechange"),
    ]
