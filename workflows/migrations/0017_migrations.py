"""Runs that go on under another version: their definition and contract move with a ledger entry, in an order of their
own."""

from importlib import import_module

from django.db import migrations, models

from governance.sql.explained import entry_about, explained

TOKENS = import_module("workflows.migrations.0015_tokens")
MOVES = ("definition_id", "definition_sha256")
ACTIONS = ("retry_step", "cancel", "supersede", "halt", "resume", "migrate")


def erased_form(*, movable: bool) -> str:
    frozen = [name for name in [*TOKENS.INSTANCE, *TOKENS.NEW] if not (movable and name in MOVES)]
    return str(TOKENS.erased_form(frozen, TOKENS.ERASED | TOKENS.MORE))


class Migration(migrations.Migration):
    dependencies = [("workflows", "0016_starts")]

    operations = [
        migrations.AddField(
            model_name="bulkintervention",
            name="details",
            field=models.JSONField(
                default=dict, help_text="Of a migration: where the runs go, and the mapping of steps."
            ),
        ),
        migrations.RemoveConstraint(model_name="bulkintervention", name="bulk_known_action"),
        migrations.AddConstraint(
            model_name="bulkintervention",
            constraint=models.CheckConstraint(
                condition=models.Q(("action__in", list(ACTIONS))), name="bulk_known_action"
            ),
        ),
        migrations.RemoveConstraint(model_name="workflowintervention", name="intervention_known_action"),
        migrations.AddConstraint(
            model_name="workflowintervention",
            constraint=models.CheckConstraint(
                condition=models.Q(("action__in", list(ACTIONS))), name="intervention_known_action"
            ),
        ),
        migrations.RunSQL(sql=erased_form(movable=True), reverse_sql=erased_form(movable=False)),
        explained(
            "workflows_workflowinstance",
            moved=["definition_id", "definition_sha256", "contract_id"],
            by=entry_about("NEW.id"),
            name="migrated",
        ),
    ]
