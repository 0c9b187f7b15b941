"""What the database itself refuses: illegal moves, changes of what a definition or a run is, changes of the record."""

from django.db import migrations

from governance.sql.guards import legal_moves_only, protect_table
from workflows.definitions.states import DEFINITION_MOVES
from workflows.runs.states import INSTANCE_MOVES, STEP_MOVES, STEP_OPEN

OPEN = ", ".join(f"'{status}'" for status in sorted(STEP_OPEN))


class Migration(migrations.Migration):
    dependencies = [("workflows", "0001_initial"), ("governance", "0004_decision_guards")]
    operations = [
        protect_table("workflows_workflowdefinitionrevision"),
        protect_table("workflows_workflowevent"),
        protect_table("workflows_workflowintervention"),
        legal_moves_only(
            "workflows_workflowdefinition",
            DEFINITION_MOVES,
            frozen=["organization_id", "product_id", "slug", "version", "definition", "snapshot_sha256", "contract_id"],
        ),
        legal_moves_only(
            "workflows_workflowinstance",
            INSTANCE_MOVES,
            frozen=["organization_id", "product_id", "case_id", "definition_id", "definition_sha256", "mode"],
        ),
        legal_moves_only(
            "workflows_workflowstep", STEP_MOVES, frozen=["instance_id", "number", "step_id", "step_kind", "attempt"]
        ),
        migrations.RunSQL(
            sql=f"""
            CREATE VIEW workflows_currentstep AS
                SELECT id AS step_row_id, instance_id, step_id FROM workflows_workflowstep WHERE state IN ({OPEN});
            """,  # noqa: S608
            reverse_sql="DROP VIEW workflows_currentstep",
        ),
    ]
