"""Notices that an API key ends: each is written once and then sent."""

import django.db.models.deletion
from django.db import migrations, models

import reasoncodes.base.ids


class Migration(migrations.Migration):
    dependencies = [
        ("attempts", "0008_delegation"),
        ("governance", "0020_api_key_ends"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeyEndNotice",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("days", models.PositiveSmallIntegerField()),
                ("created_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
                (
                    "api_key",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.apikey",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="governance.organization"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(condition=models.Q(("sent_at", None)), fields=["id"], name="key_end_unsent")],
                "constraints": [models.UniqueConstraint(fields=("api_key", "days"), name="key_end_told_once")],
            },
        ),
    ]
