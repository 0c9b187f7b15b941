"""Answers of witnesses, epochs, verifications, and who opened what."""

import django.db.models.deletion
from django.db import migrations, models

import governance.sealing.states
import reasoncodes.base.ids
from governance.sql.guards import protect_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0009_retention"),
    ]

    operations = [
        migrations.CreateModel(
            name="LedgerVerification",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("asked_by_ref", models.CharField(max_length=64)),
                ("asked_at", models.DateTimeField()),
                ("touched_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("done", models.BigIntegerField(default=0)),
                ("total", models.BigIntegerField(default=0)),
                ("found", models.JSONField(default=dict)),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="LedgerEpoch",
            fields=[
                ("number", models.PositiveIntegerField(primary_key=True, serialize=False)),
                ("kept", models.BigIntegerField()),
                ("lost_to", models.BigIntegerField()),
                ("reason_code", models.CharField(max_length=64)),
                ("actor_ref", models.CharField(blank=True, max_length=64)),
                ("begun_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["number"],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("number__gte", 2)), name="ledger_epoch_after_the_first"),
                    models.CheckConstraint(
                        condition=models.Q(("kept__gte", 0), ("lost_to__gte", models.F("kept"))),
                        name="ledger_epoch_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WitnessReceipt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("witness", models.CharField(max_length=120)),
                ("size", models.BigIntegerField()),
                ("root", models.BinaryField(max_length=32)),
                (
                    "result",
                    models.CharField(
                        choices=[("stored", "stored"), ("failed", "failed"), ("refused", "refused")], max_length=8
                    ),
                ),
                ("detail", models.CharField(blank=True, max_length=64)),
                ("at", models.DateTimeField()),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["witness", "-id"], name="witness_receipt_newest")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "result__in",
                                [
                                    governance.sealing.states.WitnessResult["STORED"],
                                    governance.sealing.states.WitnessResult["FAILED"],
                                    governance.sealing.states.WitnessResult["REFUSED"],
                                ],
                            )
                        ),
                        name="witness_receipt_known_result",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("result", "stored")),
                        fields=("witness", "size", "root"),
                        name="witness_receipt_stored_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReadAccess",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("actor_kind", models.CharField(max_length=8)),
                ("actor_ref", models.CharField(blank=True, max_length=64)),
                ("subject_kind", models.CharField(max_length=32)),
                ("subject_id", models.UUIDField()),
                ("door", models.CharField(choices=[("api", "api"), ("console", "console")], max_length=8)),
                ("purpose", models.CharField(blank=True, max_length=64)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("at", models.DateTimeField()),
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
                "verbose_name_plural": "read accesses",
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["organization", "-id"], name="read_access_newest"),
                    models.Index(fields=["subject_id", "actor_ref", "-at"], name="read_access_subject"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "door__in",
                                [
                                    governance.sealing.states.ReadDoor["API"],
                                    governance.sealing.states.ReadDoor["CONSOLE"],
                                ],
                            )
                        ),
                        name="read_access_known_door",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="ledgercheckpoint",
            index=models.Index(fields=["key", "size"], name="checkpoint_key_sizes"),
        ),
        *[protect_table(f"governance_{name}") for name in ("witnessreceipt", "ledgerepoch", "readaccess")],
    ]
