"""An archived definition becomes active again when the version that replaced it is unpublished."""

from django.db import migrations

from governance.sql.guards import guard_function
from workflows.definitions.states import DEFINITION_MOVES

TABLE = "workflows_workflowdefinition"
FROZEN = ("organization_id", "product_id", "slug", "version", "definition", "snapshot_sha256", "contract_id")
BEFORE = frozenset(DEFINITION_MOVES - {("archived", "active")})


class Migration(migrations.Migration):
    dependencies = [("workflows", "0017_migrations")]

    operations = [
        migrations.RunSQL(
            sql=guard_function(TABLE, DEFINITION_MOVES, frozen=FROZEN),
            reverse_sql=guard_function(TABLE, BEFORE, frozen=FROZEN),
        ),
    ]
