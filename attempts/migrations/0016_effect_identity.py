"""Who asked for which effect, where a contract asks for the identity of effects. An erasure empties it."""

from importlib import import_module

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

import reasoncodes.base.ids
from governance.sql.erasable import door_replaced, erasable
from governance.sql.guards import protect_table

BEFORE = import_module("attempts.migrations.0015_decided_at_the_act").NOW
AFTER = "WHERE attempt_id = attempt.id;\n    UPDATE attempts_dispatchintent"
EMPTY = "WHERE attempt_id = attempt.id;\n    UPDATE attempts_effectask SET effect_sha256 = '' "
NOW = BEFORE.replace(AFTER, EMPTY + AFTER)


class Migration(migrations.Migration):
    dependencies = [("attempts", "0015_decided_at_the_act")]
    operations = [
        migrations.CreateModel(
            "EffectAsk",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "effect_sha256",
                    models.CharField(help_text="Of connector, operation, target and payload hash.", max_length=64),
                ),
                ("number", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="effect_ask", to="attempts.attempt"
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
            options={"ordering": ["id"]},
        ),
        migrations.AddConstraint(
            "effectask",
            models.UniqueConstraint(
                condition=~Q(effect_sha256=""),
                fields=["organization", "effect_sha256", "number"],
                name="effect_asked_once_per_number",
            ),
        ),
        protect_table("attempts_effectask"),
        erasable("attempts_effectask", belongs="($1).attempt_id = ($2).subject_id", erased={"effect_sha256": ""}),
        migrations.RunSQL(
            sql=door_replaced("attempts_erase", NOW), reverse_sql=door_replaced("attempts_erase", BEFORE)
        ),
    ]
