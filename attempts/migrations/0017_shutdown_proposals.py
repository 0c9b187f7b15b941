import django.db.models.deletion
from django.db import migrations, models

import reasoncodes.base.ids
from governance.sql.guards import protect_table


class Migration(migrations.Migration):
    dependencies = [
        ("attempts", "0016_effect_identity"),
        ("governance", "0029_guard_manifest"),
    ]

    operations = [
        migrations.CreateModel(
            name="ShutdownProposal",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "after",
                    models.PositiveIntegerField(help_text="How many cases the contract allows within its window."),
                ),
                ("window_seconds", models.PositiveIntegerField()),
                ("evidence", models.JSONField(help_text="Number, categories, first and last, and the newest cases.")),
                ("at", models.DateTimeField(help_text="When the last of these cases was opened.")),
                (
                    "contract",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.contract",
                    ),
                ),
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
            },
        ),
        migrations.CreateModel(
            name="ProposalNotice",
            fields=[
                (
                    "proposal",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="notice",
                        serialize=False,
                        to="attempts.shutdownproposal",
                    ),
                ),
                ("sent_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="ProposalAnswer",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("verdict", models.CharField(max_length=12)),
                ("by_kind", models.CharField(max_length=8)),
                ("by_ref", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                (
                    "note",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.note",
                    ),
                ),
                (
                    "shutdown",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.shutdown",
                    ),
                ),
                (
                    "proposal",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answer",
                        to="attempts.shutdownproposal",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.AddIndex(
            model_name="shutdownproposal",
            index=models.Index(fields=["organization", "-id"], name="shutdown_proposal_newest"),
        ),
        migrations.AddIndex(
            model_name="shutdownproposal",
            index=models.Index(fields=["contract", "-id"], name="shutdown_proposal_of"),
        ),
        migrations.AddConstraint(
            model_name="proposalanswer",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("shutdown__isnull", False), ("verdict", "engaged")),
                    models.Q(("shutdown", None), ("verdict", "dismissed")),
                    _connector="OR",
                ),
                name="proposal_answer_fits_shutdown",
            ),
        ),
        protect_table("attempts_shutdownproposal"),
        protect_table("attempts_proposalanswer"),
    ]
