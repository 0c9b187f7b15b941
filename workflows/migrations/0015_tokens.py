"""Runs with several open steps: what the blocks under way look like, the way to each step, when a step is overdue; what
a run was started with and what it gives; one live run per business key."""

from importlib import import_module

from django.db import migrations, models

from governance.sql.erasable import door_replaced, erasable_machine
from governance.sql.explained import entry_about, explained
from governance.sql.guards import guard_function
from workflows.runs.states import INSTANCE_MOVES, STEP_MOVES

RETENTION = import_module("workflows.migrations.0005_retention")
# New: what a run was started with and gives, and its business key, go with the rest of what it contains.
DOOR = RETENTION.DOOR.replace(
    "context = '{}', early = '{}',",
    "context = '{}', early = '{}', tokens = '{}', input = NULL, output = NULL, business_key = '',",
)
STEP = ["instance_id", "number", "step_id", "step_kind", "attempt"]
INSTANCE = [*RETENTION.BEFORE, "retention_until", "erased_at"]
NEW = ["input", "business_key", "definition_slug", "secret"]
ERASED = {"case_id": "(holdpoint_erasure_item()).id", "context": "'{}'::jsonb", "early": "'{}'::jsonb"}
MORE = {"tokens": "'{}'::jsonb", "input": "null", "output": "null", "business_key": "''"}


def erased_form(frozen: list[str], erased: dict[str, str]) -> str:
    """The guard's SQL; `erasable_machine` also knows the way back to no erasure at all, which is not wanted here."""
    sql = erasable_machine("workflows_workflowinstance", INSTANCE_MOVES, frozen=frozen, before=[], erased=erased).sql
    return str(sql)


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0032_open_holds"),
        ("workflows", "0014_request_event"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="workflowinstance",
            name="instance_one_per_case",
        ),
        migrations.AddField(
            model_name="workflowinstance",
            name="business_key",
            field=models.CharField(blank=True, help_text="The caller's name for the case.", max_length=128),
        ),
        migrations.AddField(
            model_name="workflowinstance",
            name="definition_slug",
            field=models.CharField(blank=True, help_text="With a business key.", max_length=63),
        ),
        migrations.AddField(
            model_name="workflowinstance",
            name="input",
            field=models.JSONField(help_text="Format 2: what the run was started with.", null=True),
        ),
        migrations.AddField(
            model_name="workflowinstance",
            name="output",
            field=models.JSONField(help_text="Format 2: what the definition says it gives at its end.", null=True),
        ),
        migrations.AddField(
            model_name="workflowinstance",
            name="secret",
            field=models.CharField(
                blank=True, help_text="Part of every correlation id of the run, and never shown.", max_length=64
            ),
        ),
        migrations.AddField(
            model_name="workflowinstance",
            name="tokens",
            field=models.JSONField(
                default=dict, help_text="Format 2: blocks under way, tries and outputs inside them. Empty: format 1."
            ),
        ),
        migrations.AddField(
            model_name="workflowstep",
            name="due_at",
            field=models.DateTimeField(help_text="From then on it is overdue; nothing ends by that.", null=True),
        ),
        migrations.AddField(
            model_name="workflowstep",
            name="overdue",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="workflowstep",
            name="scope",
            field=models.TextField(
                blank=True,
                help_text="The way to it through blocks: after.1:mail, each.1:3/again.1:2; empty at the root.",
            ),
        ),
        migrations.AddIndex(
            model_name="workflowinstance",
            index=models.Index(
                condition=models.Q(("business_key", ""), _negated=True),
                fields=["organization", "business_key"],
                name="instance_by_business_key",
            ),
        ),
        migrations.AddIndex(
            model_name="workflowstep",
            index=models.Index(
                condition=models.Q(
                    ("due_at__isnull", False),
                    ("overdue", False),
                    ("state__in", ["in_progress", "pending", "waiting_approval"]),
                ),
                fields=["due_at"],
                name="step_due",
            ),
        ),
        migrations.AddIndex(
            model_name="workflowstep",
            index=models.Index(
                condition=models.Q(("state__in", ["in_progress", "pending", "waiting_approval"])),
                fields=["instance"],
                name="step_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="workflowinstance",
            constraint=models.UniqueConstraint(
                models.F("organization"),
                models.F("case_id"),
                models.Case(models.When(business_key="", then=models.Value(None)), default=models.F("id")),
                condition=models.Q(("superseded_by", None)),
                name="instance_one_per_case",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="workflowinstance",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    models.Q(("business_key", ""), _negated=True),
                    ("state__in", ["queued", "running", "waiting_approval", "halted"]),
                ),
                fields=("organization", "definition_slug", "business_key"),
                name="instance_one_per_key",
            ),
        ),
        migrations.AddConstraint(
            model_name="workflowinstance",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("business_key", ""), models.Q(("definition_slug", ""), _negated=True), _connector="OR"
                ),
                name="instance_key_has_slug",
            ),
        ),
        migrations.RunSQL(
            sql=door_replaced("workflows_erase", DOOR), reverse_sql=door_replaced("workflows_erase", RETENTION.DOOR)
        ),
        migrations.RunSQL(sql=erased_form([*INSTANCE, *NEW], ERASED | MORE), reverse_sql=erased_form(INSTANCE, ERASED)),
        migrations.RunSQL(
            sql=guard_function("workflows_workflowstep", STEP_MOVES, frozen=[*STEP, "scope"]),
            reverse_sql=guard_function("workflows_workflowstep", STEP_MOVES, frozen=STEP),
        ),
        explained("workflows_workflowinstance", moved=["tokens", "output"], by=entry_about("NEW.id"), name="tokens"),
        explained(
            "workflows_workflowstep", moved=["overdue", "due_at"], by=entry_about("NEW.instance_id"), name="overdue"
        ),
    ]
