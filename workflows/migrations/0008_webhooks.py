"""Webhook endpoints, their deliveries and tries, and how far the ledger has been told."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import reasoncodes.base.ids
import workflows.webhooks.states
from workflows.webhooks.states import DELIVERY_MOVES

MOVES = ", ".join(f"('{source}', '{target}')" for source, target in sorted(DELIVERY_MOVES))
# What is sent stays what it was: only its end, and the erasing of its body, may change it. Old rows are deleted.
GUARD = f"""
CREATE FUNCTION workflows_webhookdelivery_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state IS DISTINCT FROM OLD.state AND (OLD.state, NEW.state) NOT IN ({MOVES}) THEN
        RAISE EXCEPTION 'illegal move of % from % to %', TG_TABLE_NAME, OLD.state, NEW.state USING ERRCODE = 'HP002';
    END IF;
    IF (NEW.endpoint_id, NEW.event_id, NEW.event_type, NEW.body_sha256, NEW.subject_id, NEW.number)
        IS DISTINCT FROM (OLD.endpoint_id, OLD.event_id, OLD.event_type, OLD.body_sha256, OLD.subject_id, OLD.number)
        OR (NEW.body IS DISTINCT FROM OLD.body AND NEW.body <> '')
    THEN
        RAISE EXCEPTION 'append-only: what a % sends is immutable', TG_TABLE_NAME USING ERRCODE = 'HP001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER legal_moves BEFORE UPDATE ON workflows_webhookdelivery
    FOR EACH ROW EXECUTE FUNCTION workflows_webhookdelivery_guard();
ALTER TABLE workflows_webhookdelivery ENABLE ALWAYS TRIGGER legal_moves;
"""
UNGUARD = """
DROP TRIGGER legal_moves ON workflows_webhookdelivery;
DROP FUNCTION workflows_webhookdelivery_guard();
"""
# An installation with a history does not tell it again.
BEGIN = """
INSERT INTO workflows_webhookcursor (id, position)
SELECT 1, coalesce(max(position) + 1, 0) FROM governance_ledgerleaf
"""


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0012_streams"),
        ("workflows", "0007_streams"),
    ]

    operations = [
        migrations.CreateModel(
            name="WebhookCursor",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("position", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="webhook_cursor_is_one")],
            },
        ),
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("url", models.CharField(max_length=500)),
                ("description", models.CharField(blank=True, max_length=120)),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100),
                        help_text="Names, `prefix.*`, or `*` for everything.",
                        size=None,
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("disabled_why", models.CharField(blank=True, max_length=12)),
                ("disabled_at", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "failures",
                    models.PositiveIntegerField(default=0, help_text="Failed tries since the last good answer."),
                ),
                ("failing_since", models.DateTimeField(null=True)),
                (
                    "held_until",
                    models.DateTimeField(help_text="After a failure nothing is sent before this.", null=True),
                ),
                (
                    "succeeded_at",
                    models.DateTimeField(help_text="Of the last good answer after a failure, or the first.", null=True),
                ),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
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
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "event_id",
                    models.UUIDField(help_text="The `webhook-id`, the same on every try and for every endpoint."),
                ),
                ("event_type", models.CharField(max_length=100)),
                ("subject_id", models.UUIDField(help_text="What it is about. Sent in order within it.")),
                ("number", models.BigIntegerField(help_text="Order within the subject.")),
                (
                    "body",
                    models.BinaryField(
                        help_text="The exact bytes that are signed and sent; empty once they were erased."
                    ),
                ),
                ("body_sha256", models.CharField(max_length=64)),
                ("state", models.CharField(default="pending", max_length=12)),
                (
                    "tries",
                    models.PositiveIntegerField(
                        default=0, help_text="Begun so far; only the newest one's failure counts."
                    ),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(default=0, help_text="Of the schedule; a redelivery begins it anew."),
                ),
                ("next_try_at", models.DateTimeField()),
                ("why", models.CharField(blank=True, help_text="What came of the last try.", max_length=24)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="workflows.webhookendpoint",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "webhook deliveries",
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="WebhookSecret",
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
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="secrets",
                        to="workflows.webhookendpoint",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="WebhookAttempt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("url", models.CharField(max_length=500)),
                (
                    "headers",
                    models.JSONField(
                        help_text="As sent: webhook-id, webhook-timestamp, webhook-signature and the rest."
                    ),
                ),
                ("started_at", models.DateTimeField()),
                ("outcome", models.CharField(blank=True, max_length=24)),
                ("status", models.PositiveSmallIntegerField(help_text="The HTTP status that was answered.", null=True)),
                ("duration_ms", models.PositiveIntegerField(null=True)),
                (
                    "response_bytes",
                    models.PositiveIntegerField(help_text="As much of the answer as was read.", null=True),
                ),
                ("response_sha256", models.CharField(blank=True, help_text="Of these bytes.", max_length=64)),
                ("truncated", models.BooleanField(default=False, help_text="The answer was longer than what is read.")),
                (
                    "delivery",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="workflows.webhookdelivery",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "constraints": [
                    models.UniqueConstraint(fields=("delivery", "number"), name="webhook_attempt_number_once")
                ],
            },
        ),
        migrations.AddIndex(
            model_name="webhookendpoint",
            index=models.Index(
                condition=models.Q(("removed_at", None)), fields=["organization", "id"], name="webhook_by_organization"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookendpoint",
            index=models.Index(condition=models.Q(("enabled", True)), fields=["organization"], name="webhook_enabled"),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("disabled_why", ""), ("enabled", True)),
                    models.Q(("disabled_why__in", ["person", "gone", "failing", "removed"]), ("enabled", False)),
                    _connector="OR",
                ),
                name="webhook_disabled_has_why",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("removed_at", None), ("enabled", False), _connector="OR"),
                name="webhook_removed_is_disabled",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "pending")), fields=["endpoint", "next_try_at", "id"], name="delivery_due"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["endpoint", "subject_id", "number"],
                name="delivery_order",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["endpoint", "id"], name="delivery_by_endpoint"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "failed")), fields=["endpoint", "id"], name="delivery_failed"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["organization", "id"], name="delivery_by_organization"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["subject_id"], name="delivery_by_subject"),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.UniqueConstraint(fields=("endpoint", "event_id"), name="delivery_once_per_event"),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            workflows.webhooks.states.WebhookDeliveryState["PENDING"],
                            workflows.webhooks.states.WebhookDeliveryState["DELIVERED"],
                            workflows.webhooks.states.WebhookDeliveryState["FAILED"],
                        ],
                    )
                ),
                name="delivery_known_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at", None), ("state", "pending")),
                    models.Q(models.Q(("state", "pending"), _negated=True), ("ended_at__isnull", False)),
                    _connector="OR",
                ),
                name="delivery_end_has_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhooksecret",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ends_at", None)), fields=("endpoint",), name="webhook_one_lasting_secret"
            ),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
        migrations.RunSQL(BEGIN, migrations.RunSQL.noop),
    ]
