import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import governance.authorship.states
import reasoncodes.base.ids
from governance.sql.guards import protect_table

# Who wrote last is all that was kept until now. A service counts as the person who is responsible for it.
ADOPT = """
INSERT INTO governance_authorship (id, organization_id, kind, subject_id, lineage, person_id, through_id, at)
SELECT gen_random_uuid(), contract.organization_id, 'document', document.id, 1, document.written_by_id, NULL::uuid, document.updated_at
FROM governance_contractdocument document JOIN governance_contract contract ON contract.id = document.contract_id
WHERE document.written_by_id IS NOT NULL
UNION ALL
SELECT gen_random_uuid(), organization_id, 'policy', id, 1, written_by_id, NULL::uuid, created_at
FROM governance_policy WHERE written_by_id IS NOT NULL
"""
STARTED = """
INSERT INTO governance_authorship (id, organization_id, kind, subject_id, lineage, person_id, through_id, at)
SELECT gen_random_uuid(), started.organization_id, '{kind}', started.id, 1,
       coalesce(known.user_id, account.responsible_id), account.id, started.{at}
FROM {table} started
LEFT JOIN governance_personreference known ON known.commitment = started.{ref}
LEFT JOIN governance_serviceaccount account ON account.id::text = started.{ref}
WHERE coalesce(known.user_id, account.responsible_id) IS NOT NULL
"""
STARTED_TABLES = (
    ("shutdown", "governance_shutdown", "engaged_by_ref", "engaged_at"),
    ("legal_hold", "governance_legalhold", "placed_by_ref", "placed_at"),
    ("deletion_request", "governance_deletionrequest", "requested_by_ref", "requested_at"),
)

# Everybody who is or was responsible for a service account. A trigger, so that no way of naming another person forgets
# the one before: with their key they may have asked for what they would then release.
RESPONSIBLE = """
CREATE FUNCTION governance_responsible_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.responsible_id IS NOT NULL THEN
        INSERT INTO governance_authorship
            (id, organization_id, kind, subject_id, lineage, person_id, through_id, at)
        VALUES
            (gen_random_uuid(), NEW.organization_id, 'service_account', NEW.id, 1, NEW.responsible_id, NULL, now())
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER responsible_kept AFTER INSERT OR UPDATE OF responsible_id ON governance_serviceaccount
    FOR EACH ROW EXECUTE FUNCTION governance_responsible_kept();
ALTER TABLE governance_serviceaccount ENABLE ALWAYS TRIGGER responsible_kept;
INSERT INTO governance_authorship (id, organization_id, kind, subject_id, lineage, person_id, through_id, at)
SELECT gen_random_uuid(), organization_id, 'service_account', id, 1, responsible_id, NULL::uuid, created_at
FROM governance_serviceaccount WHERE responsible_id IS NOT NULL
"""
NOT_KEPT = """
DROP TRIGGER responsible_kept ON governance_serviceaccount;
DROP FUNCTION governance_responsible_kept();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0014_people"),
    ]

    operations = [
        migrations.CreateModel(
            name="Authorship",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("document", "document"),
                            ("policy", "policy"),
                            ("definition", "definition"),
                            ("shutdown", "shutdown"),
                            ("legal_hold", "legal_hold"),
                            ("deletion_request", "deletion_request"),
                            ("service_account", "service_account"),
                        ],
                        max_length=20,
                    ),
                ),
                ("subject_id", models.UUIDField()),
                ("lineage", models.PositiveIntegerField(default=1)),
                ("at", models.DateTimeField()),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "through",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The service whose key was used. Its responsible person counts.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.serviceaccount",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "subject_id", "lineage", "person"), name="authorship_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    governance.authorship.states.WorkKind["DOCUMENT"],
                                    governance.authorship.states.WorkKind["POLICY"],
                                    governance.authorship.states.WorkKind["DEFINITION"],
                                    governance.authorship.states.WorkKind["SHUTDOWN"],
                                    governance.authorship.states.WorkKind["LEGAL_HOLD"],
                                    governance.authorship.states.WorkKind["DELETION"],
                                    governance.authorship.states.WorkKind["SERVICE"],
                                ],
                            )
                        ),
                        name="authorship_known_kind",
                    ),
                ],
            },
        ),
        protect_table("governance_authorship"),
        migrations.RunSQL(RESPONSIBLE, reverse_sql=NOT_KEPT),
        migrations.RunSQL(ADOPT, reverse_sql=""),
        *(
            migrations.RunSQL(STARTED.format(kind=kind, table=table, ref=ref, at=at), reverse_sql="")
            for kind, table, ref, at in STARTED_TABLES
        ),
    ]
