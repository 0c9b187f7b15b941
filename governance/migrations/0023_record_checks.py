"""Checks of the record: how far they are, what they found, what two people accepted."""

import django.db.models.deletion
from django.db import migrations, models

import governance.integrity.states
import reasoncodes.base.ids
from governance.sql.guards import protect_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0022_bound_rows"),
    ]
    operations = [
        migrations.CreateModel(
            name="RecordFault",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("table", models.CharField(max_length=63)),
                ("row", models.CharField(help_text="The id of the row in its table.", max_length=64)),
                ("what", models.CharField(max_length=200)),
                (
                    "found_by",
                    models.CharField(
                        choices=[("clock", "clock"), ("command", "command"), ("console", "console")], max_length=8
                    ),
                ),
                ("found_at", models.DateTimeField()),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="RecordAcceptance",
            fields=[
                (
                    "fault",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="acceptance",
                        serialize=False,
                        to="governance.recordfault",
                    ),
                ),
                ("authority_change", models.UUIDField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="RecordProgress",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                (
                    "checked_to",
                    models.BigIntegerField(default=0, help_text="Leaves up to here were compared when they were new."),
                ),
                (
                    "counts",
                    models.JSONField(default=dict, help_text="Rows per table that the items up to there account for."),
                ),
                ("checked_at", models.DateTimeField(null=True)),
                (
                    "walked_to",
                    models.BigIntegerField(default=0, help_text="How far the present round through the record is."),
                ),
                ("round_began_at", models.DateTimeField(null=True)),
                ("round_ended_at", models.DateTimeField(help_text="When a round last reached the end.", null=True)),
                (
                    "full_at",
                    models.DateTimeField(help_text="When the whole record was last verified in one go.", null=True),
                ),
                ("full_result", models.JSONField(default=dict)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="record_progress_is_one_row")
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="recordfault",
            constraint=models.UniqueConstraint(fields=("table", "row", "what"), name="record_fault_once"),
        ),
        migrations.AddConstraint(
            model_name="recordfault",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "found_by__in",
                        [
                            governance.integrity.states.FoundBy["CLOCK"],
                            governance.integrity.states.FoundBy["COMMAND"],
                            governance.integrity.states.FoundBy["CONSOLE"],
                        ],
                    )
                ),
                name="record_fault_known_door",
            ),
        ),
        protect_table("governance_recordfault"),
        protect_table("governance_recordacceptance"),
    ]
