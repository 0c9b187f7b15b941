"""Until when a run is kept, and what is left of it once it was erased by order."""

import django.contrib.postgres.indexes
from django.db import migrations, models

from governance.sql.erasable import door, erasable, erasable_machine
from workflows.runs.states import INSTANCE_MOVES

BEFORE = ["organization_id", "product_id", "case_id", "definition_id", "definition_sha256", "mode"]
DOOR = """
DECLARE
    item governance_erasureitem;
    run workflows_workflowinstance;
    opened uuid[];
    last timestamptz;
BEGIN
    item := holdpoint_erasure_take(wanted, 'run');
    SELECT * INTO run FROM workflows_workflowinstance
        WHERE id = item.subject_id AND organization_id = item.organization_id FOR NO KEY UPDATE;
    IF run.id IS NULL OR run.erased_at IS NOT NULL THEN
        RETURN 'nothing_to_erase';
    END IF;
    opened := ARRAY(SELECT governed_attempt FROM workflows_workflowstep
        WHERE instance_id = run.id AND governed_attempt IS NOT NULL);
    UPDATE governance_erasureitem SET
        contract = coalesce((SELECT slug FROM governance_contract WHERE id = run.contract_id), ''),
        refs = array_remove(ARRAY[run.case_id::text, 'case/' || run.case_id::text, run.context ->> 'patient_id'], NULL)
            || ARRAY(SELECT 'attempt/' || one::text FROM unnest(opened) one),
        related = ARRAY[run.id] || ARRAY(SELECT review.id FROM attempts_review review
            JOIN workflows_workflowstep step ON step.id = review.origin_step WHERE step.instance_id = run.id)
    WHERE id = item.id RETURNING * INTO item;
    IF holdpoint_held(item) THEN
        RETURN 'legal_hold';
    END IF;
    IF EXISTS (SELECT FROM attempts_attempt attempt LEFT JOIN attempts_quarantinecase c ON c.attempt_id = attempt.id
        WHERE attempt.id = ANY(opened) AND attempt.state = 'failed-quarantined' AND coalesce(c.resolution, '') = '')
    THEN
        RETURN 'quarantine_unresolved';
    END IF;
    IF run.state NOT IN ('completed', 'cancelled') OR EXISTS (SELECT FROM attempts_attempt
        WHERE id = ANY(opened) AND state NOT IN ('completed', 'preflight-denied', 'failed-quarantined'))
    THEN
        RETURN 'not_finished';
    END IF;
    IF EXISTS (SELECT FROM workflows_workflowinstance
        WHERE id = run.superseded_by_id AND organization_id = run.organization_id AND erased_at IS NULL)
    THEN
        RETURN 'retention_not_over';
    END IF;
    last := greatest(run.created_at, run.completed_at,
        (SELECT max(received_at) FROM workflows_workflowevent WHERE instance_id = run.id));
    IF run.retention_until IS NULL OR run.retention_until + (last - run.created_at)
        + make_interval(days => (last > run.created_at)::integer) > statement_timestamp()
    THEN
        RETURN 'retention_not_over';
    END IF;
    PERFORM set_config('holdpoint.erasure', item.id::text, true);
    UPDATE governance_erasureitem SET entries = holdpoint_erase_payloads(item) WHERE id = item.id;
    UPDATE governance_note SET text = '', salt = '' WHERE id IN (
        SELECT note_id FROM workflows_workflowintervention WHERE instance_id = run.id);
    UPDATE workflows_workflowintervention SET before_state = '{}', after_state = '{}' WHERE instance_id = run.id;
    UPDATE workflows_workflowevent SET envelope = '{}', facts = '{}', case_id = NULL, correlation_id = NULL
        WHERE instance_id = run.id OR (organization_id = run.organization_id AND case_id = run.case_id);
    UPDATE workflows_outboxevent SET envelope = '{}' WHERE instance_id = run.id;
    UPDATE workflows_workflowstep SET input = NULL, output = NULL, error = NULL WHERE instance_id = run.id;
    PERFORM attempts_erase_reviews(item);
    UPDATE workflows_workflowinstance SET case_id = item.id, context = '{}', early = '{}',
        erased_at = statement_timestamp() WHERE id = run.id;
    PERFORM set_config('holdpoint.erasure', '', true);
    RETURN '';
END
"""
# An event that found no run. Its retention is not stamped: the application says until when, by the region's profile.
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
    IF item.not_before IS NULL OR greatest(item.not_before, event.received_at) > statement_timestamp() THEN
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
        ("attempts", "0004_retention"),
        ("governance", "0009_retention"),
        ("workflows", "0004_names"),
    ]
    operations = [
        migrations.AddField("workflowinstance", "erased_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "workflowinstance",
            "retention_until",
            models.DateTimeField(
                help_text="Stamped at the start by the regional profile; empty: unknown, so kept.", null=True
            ),
        ),
        migrations.AddIndex(
            "workflowinstance",
            django.contrib.postgres.indexes.BrinIndex(fields=["retention_until"], name="instance_retention"),
        ),
        erasable(
            "workflows_workflowevent",
            belongs="($1).instance_id = ($2).subject_id OR ($1).id = ($2).subject_id OR (($1).organization_id = ($2).organization_id "
            "AND ($1).case_id::text = ANY(($2).refs))",
            erased={"envelope": {}, "facts": {}, "case_id": None, "correlation_id": None},
        ),
        erasable(
            "workflows_workflowintervention",
            belongs="($1).instance_id = ($2).subject_id",
            erased={"before_state": {}, "after_state": {}},
        ),
        erasable_machine(
            "workflows_workflowinstance",
            INSTANCE_MOVES,
            frozen=[*BEFORE, "retention_until", "erased_at"],
            before=BEFORE,
            erased={
                "case_id": "(holdpoint_erasure_item()).id",
                "context": "'{}'::jsonb",
                "early": "'{}'::jsonb",
            },
        ),
        door("workflows_erase", DOOR),
        door("workflows_erase_event", EVENT),
    ]
