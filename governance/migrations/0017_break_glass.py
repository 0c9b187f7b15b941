import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import reasoncodes.base.ids
from governance.sql.guards import protect_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0016_schedule"),
    ]

    operations = [
        migrations.CreateModel(
            name="BreakGlass",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("person_ref", models.CharField(max_length=64)),
                (
                    "groups",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        help_text="The owning groups of this person at that moment.",
                        size=None,
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "note",
                    models.ForeignKey(
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="broken",
                        to="governance.shutdown",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["shutdown", "-id"], name="break_glass_newest")],
            },
        ),
        protect_table("governance_breakglass"),
    ]
