"""The field that says where a definition, a run or a step stands is called as its column is: `state`. Changes no table:
only what Django believes."""

import django_fsm
from django.db import migrations, models
from django.db.models import Q

DEFINITION = ["draft", "active", "archived"]
INSTANCE = ["queued", "running", "waiting_approval", "halted", "completed", "cancelled"]
STEP = [
    "pending",
    "in_progress",
    "waiting_approval",
    "completed",
    "failed",
    "timed_out",
    "skipped",
    "cancelled",
]
FIELDS = {
    "workflowdefinition": django_fsm.FSMField(
        choices=[(name, name) for name in DEFINITION], default="draft", editable=False, max_length=12, protected=True
    ),
    "workflowinstance": models.CharField(default="queued", max_length=16),
    "workflowstep": models.CharField(max_length=16),
}
# What names the field by the old word; the database knows the column only, so it keeps these as they are.
CONSTRAINTS = [
    (
        "workflowdefinition",
        models.UniqueConstraint(
            fields=("organization", "product"),
            condition=Q(state="active", is_template=False),
            nulls_distinct=False,
            name="definition_one_active",
        ),
    ),
    ("workflowdefinition", models.CheckConstraint(condition=Q(state__in=DEFINITION), name="definition_known_status")),
    (
        "workflowdefinition",
        models.CheckConstraint(
            condition=~Q(state="active") | ~Q(snapshot_sha256=""), name="definition_active_has_snapshot"
        ),
    ),
    ("workflowinstance", models.CheckConstraint(condition=Q(state__in=INSTANCE), name="instance_known_status")),
    (
        "workflowinstance",
        models.CheckConstraint(condition=~Q(state="halted") | ~Q(halt_reason=""), name="instance_halt_has_reason"),
    ),
    ("workflowstep", models.CheckConstraint(condition=Q(state__in=STEP), name="step_known_status")),
]
INDEXES = [
    ("workflowdefinition", models.Index(fields=["organization", "product", "state"], name="definition_by_product")),
    ("workflowinstance", models.Index(fields=["organization", "state", "id"], name="instance_by_status")),
    (
        "workflowinstance",
        models.Index(
            fields=["deadline_at"],
            condition=Q(state__in=["queued", "running", "waiting_approval"]),
            name="instance_deadline",
        ),
    ),
    (
        "workflowinstance",
        models.Index(fields=["organization", "id"], condition=Q(state="queued"), name="instance_queue"),
    ),
    (
        "workflowstep",
        models.Index(
            fields=["timeout_at"],
            condition=Q(state__in=["in_progress", "waiting_approval"], timeout_at__isnull=False),
            name="step_timeout",
        ),
    ),
    (
        "workflowstep",
        models.Index(
            fields=["next_eligible_at"],
            condition=Q(state="pending", next_eligible_at__isnull=False),
            name="step_retry_due",
        ),
    ),
]


class Migration(migrations.Migration):
    dependencies = [("workflows", "0008_webhooks")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                *(migrations.RemoveConstraint(model_name=model, name=one.name) for model, one in CONSTRAINTS),
                *(migrations.RemoveIndex(model_name=model, name=one.name) for model, one in INDEXES),
                *(migrations.RenameField(model_name=model, old_name="status", new_name="state") for model in FIELDS),
                *(
                    migrations.AlterField(model_name=model, name="state", field=field)
                    for model, field in FIELDS.items()
                ),
                *(migrations.AddIndex(model_name=model, index=one) for model, one in INDEXES),
                *(migrations.AddConstraint(model_name=model, constraint=one) for model, one in CONSTRAINTS),
            ]
        )
    ]
