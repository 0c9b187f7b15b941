from django.db import migrations

# Everybody who wrote to a draft until now, from its revisions. A service counts as the person who is responsible for it.
ADOPT = """
INSERT INTO governance_authorship (id, organization_id, kind, subject_id, lineage, person_id, through_id, at)
SELECT DISTINCT ON (definition.id, coalesce(known.user_id, account.responsible_id))
       gen_random_uuid(), definition.organization_id, 'definition', definition.id, 1,
       coalesce(known.user_id, account.responsible_id), account.id, revision.created_at
FROM workflows_workflowdefinitionrevision revision
JOIN workflows_workflowdefinition definition ON definition.id = revision.workflow_definition_id
LEFT JOIN governance_personreference known ON known.commitment = revision.changed_by_ref
LEFT JOIN governance_serviceaccount account ON account.id::text = revision.changed_by_ref
WHERE definition.state = 'draft' AND coalesce(known.user_id, account.responsible_id) IS NOT NULL
"""


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0009_state"),
        ("governance", "0015_authorship"),
    ]

    operations = [migrations.RunSQL(ADOPT, reverse_sql="")]
