"""Warnings that open holds have nearly reached their cap."""

import django.db.models.deletion
from django.db import migrations, models

import reasoncodes.base.ids


class Migration(migrations.Migration):
    dependencies = [("attempts", "0021_repeated_refusals"), ("governance", "0032_open_holds")]
    operations = [
        migrations.CreateModel(
            "HoldsNotice",
            [
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("day", models.DateField()),
                ("count", models.PositiveIntegerField()),
                ("cap", models.PositiveIntegerField()),
                ("oldest_at", models.DateTimeField(null=True)),
                ("sent_at", models.DateTimeField(null=True)),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [models.UniqueConstraint(fields=("organization", "day"), name="holds_told_once_a_day")],
                "indexes": [
                    models.Index(condition=models.Q(("sent_at", None)), fields=["id"], name="holds_notice_unsent")
                ],
            },
        ),
    ]
