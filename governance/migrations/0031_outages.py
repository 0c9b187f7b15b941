"""When Holdpoint could not act, and the heartbeat that shows it."""

from django.db import migrations, models

import reasoncodes.base.ids
from governance.sql.guards import protect_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0030_decided_at_the_act"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClockBeat",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="clock_beat_is_one")],
            },
        ),
        migrations.CreateModel(
            name="OutageInterval",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["ended_at"], name="outage_ended")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("ended_at__gt", models.F("began_at"))), name="outage_lasts"
                    )
                ],
            },
        ),
        protect_table("governance_outageinterval"),
    ]
