"""Definitions, runs and their steps move only together with their ledger entry; and how long an event is kept."""

from importlib import import_module

from django.db import migrations

from governance.sql.erasable import door_replaced
from governance.sql.explained import entry_about, explained

# For the way back: the body that it had before.
RETENTION = import_module("workflows.migrations.0005_retention")
# New: a lower bound of the retention that does not come from the item. See governance 0026.
EVENT = """
DECLARE
    item governance_erasureitem;
    event workflows_workflowevent;
BEGIN
    item := holdpoint_erasure_take(wanted, 'event');
    SELECT * INTO event FROM workflows_workflowevent WHERE id = item.subject_id
        AND organization_id = item.organization_id AND instance_id IS NULL;
    IF event.id IS NULL OR event.envelope = '{}' THEN
        RETURN 'nothing_to_erase';
    END IF;
    UPDATE governance_erasureitem SET
        refs = array_remove(ARRAY[event.case_id::text, 'case/' || event.case_id::text], NULL),
        related = ARRAY[event.id]
    WHERE id = item.id RETURNING * INTO item;
    IF holdpoint_held(item) THEN
        RETURN 'legal_hold';
    END IF;
    IF item.not_before IS NULL OR greatest(item.not_before, event.received_at
        + make_interval(years => holdpoint_retention_years(item.organization_id))) > statement_timestamp()
    THEN
        RETURN 'retention_not_over';
    END IF;
    PERFORM set_config('holdpoint.erasure', item.id::text, true);
    UPDATE governance_erasureitem SET entries = holdpoint_erase_payloads(item) WHERE id = item.id;
    UPDATE workflows_workflowevent SET envelope = '{}', facts = '{}', case_id = NULL, correlation_id = NULL
        WHERE id = event.id;
    PERFORM set_config('holdpoint.erasure', '', true);
    RETURN '';
END
"""


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0012_redriven_once"),
        ("attempts", "0013_explained"),
        ("governance", "0028_explained"),
    ]
    operations = [
        migrations.RunSQL(
            sql=door_replaced("workflows_erase_event", EVENT),
            reverse_sql=door_replaced("workflows_erase_event", RETENTION.EVENT),
        ),
        explained(
            "workflows_workflowdefinition",
            moved=["state", "snapshot_sha256", "contract_id"],
            by=entry_about("NEW.id"),
        ),
        explained(
            "workflows_workflowinstance",
            moved=[
                *("state", "context", "halt_reason", "cancelled_reason", "superseded_by_id", "completed_at"),
                "deadline_at",
            ],
            by=entry_about("NEW.id"),
        ),
        explained(
            "workflows_workflowstep",
            moved=["state", "outcome", "completed_at", "governed_attempt", "output", "error"],
            by=entry_about("NEW.instance_id"),
        ),
    ]
