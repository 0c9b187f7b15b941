"""Registered modules, their versions and secrets, and requests to them over http."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import reasoncodes.base.ids
from governance.sql.explained import entry_about, explained, fixed_columns, rows_stay
from governance.sql.guards import protect_table


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0035_account_module"),
        ("workflows", "0018_unpublish"),
    ]

    operations = [
        migrations.AddField(
            model_name="outboxevent",
            name="call",
            field=models.JSONField(help_text="Of a request over http: how it is called. Empty: a stream.", null=True),
        ),
        migrations.CreateModel(
            name="Module",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("slug", models.CharField(max_length=30)),
                ("active", models.BooleanField(default=True)),
                ("version", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                ("disabled_at", models.DateTimeField(null=True)),
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
            name="ModuleCall",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("step", models.UUIDField(help_text="The step's row; its id is the correlation id.")),
                (
                    "terms",
                    models.JSONField(help_text="As published: operation, version, method, path, effect, and the key."),
                ),
                ("state", models.CharField(default="waiting", max_length=8)),
                ("tries", models.PositiveIntegerField(default=0)),
                (
                    "lease_until",
                    models.DateTimeField(help_text="While it is being sent: until when an answer counts.", null=True),
                ),
                ("outcome", models.CharField(blank=True, max_length=24)),
                ("status", models.PositiveSmallIntegerField(help_text="The HTTP status that was answered.", null=True)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "module",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="workflows.module",
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
            name="ModuleSecret",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("salt", models.BinaryField(max_length=32)),
                ("created_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField(null=True)),
                (
                    "module",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="secrets", to="workflows.module"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="ModuleVersion",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("transport", models.CharField(max_length=6)),
                ("url", models.CharField(blank=True, max_length=500)),
                ("operations", models.JSONField(help_text="By name: effect, send, returns, method, path.")),
                (
                    "publishes",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), size=None),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "module",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="versions",
                        to="workflows.module",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
            },
        ),
        migrations.AddConstraint(
            model_name="module",
            constraint=models.UniqueConstraint(fields=("organization", "slug"), name="module_once_per_organization"),
        ),
        migrations.AddConstraint(
            model_name="module",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("active", True), ("disabled_at", None)),
                    models.Q(("active", False), ("disabled_at__isnull", False)),
                    _connector="OR",
                ),
                name="module_disabled_has_time",
            ),
        ),
        migrations.AddIndex(
            model_name="modulecall",
            index=models.Index(
                condition=models.Q(("state", "waiting")), fields=["module", "id"], name="module_call_waiting"
            ),
        ),
        migrations.AddIndex(
            model_name="modulecall",
            index=models.Index(
                condition=models.Q(("state", "sending")), fields=["lease_until"], name="module_call_sending"
            ),
        ),
        migrations.AddIndex(
            model_name="modulecall",
            index=models.Index(fields=["step"], name="module_call_by_step"),
        ),
        migrations.AddConstraint(
            model_name="modulecall",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["waiting", "sending", "ended"])), name="module_call_known_state"
            ),
        ),
        migrations.AddConstraint(
            model_name="modulecall",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", False), ("state", "ended")),
                    models.Q(models.Q(("state", "ended"), _negated=True), ("ended_at", None)),
                    _connector="OR",
                ),
                name="module_call_end_has_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="modulecall",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("lease_until__isnull", False), ("state", "sending")),
                    models.Q(("state", "sending"), _negated=True),
                    _connector="OR",
                ),
                name="module_call_sending_has_lease",
            ),
        ),
        migrations.AddConstraint(
            model_name="modulesecret",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ends_at", None)), fields=("module",), name="module_one_lasting_secret"
            ),
        ),
        migrations.AddConstraint(
            model_name="moduleversion",
            constraint=models.UniqueConstraint(fields=("module", "number"), name="module_version_once"),
        ),
        migrations.AddConstraint(
            model_name="moduleversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("transport", "stream"), ("url", "")),
                    models.Q(("transport", "http"), models.Q(("url", ""), _negated=True)),
                    _connector="OR",
                ),
                name="module_version_http_has_url",
            ),
        ),
        protect_table("workflows_moduleversion"),
        rows_stay("workflows_module"),
        fixed_columns("workflows_module", ["organization_id", "slug"]),
        explained("workflows_module", moved=["active", "version"], by=entry_about("NEW.id")),
    ]
