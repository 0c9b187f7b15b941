"""Evidence bundles, and what the database refuses about them."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

import governance.evidence.states
import reasoncodes.base.ids
from governance.evidence.states import EVIDENCE_MOVES
from governance.sql.guards import legal_moves_only

# A finished bundle's row repeats what the ledger says about it; it cannot be made to say something else.
FINISHED = """
CREATE FUNCTION governance_evidencebundle_finished() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state = 'ready' AND (NEW.sha256, NEW.size, NEW.storage_name, NEW.checkpoint_size, NEW.anchor, NEW.entries)
        IS DISTINCT FROM (OLD.sha256, OLD.size, OLD.storage_name, OLD.checkpoint_size, OLD.anchor, OLD.entries) THEN
        RAISE EXCEPTION 'append-only: a bundle that is ready stays as it is' USING ERRCODE = 'HP001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER finished_stays BEFORE UPDATE ON governance_evidencebundle
    FOR EACH ROW EXECUTE FUNCTION governance_evidencebundle_finished();
ALTER TABLE governance_evidencebundle ENABLE ALWAYS TRIGGER finished_stays;
"""
UNFINISHED = """
DROP TRIGGER finished_stays ON governance_evidencebundle;
DROP FUNCTION governance_evidencebundle_finished();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0007_decision_frames"),
    ]

    operations = [
        migrations.CreateModel(
            name="EvidenceBundle",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("subject_kind", models.CharField(max_length=8)),
                ("subject_id", models.UUIDField()),
                ("state", models.CharField(default="requested", editable=False, max_length=12)),
                ("progress", models.CharField(blank=True, help_text="In words, for whoever waits.", max_length=80)),
                (
                    "problem",
                    models.CharField(blank=True, help_text="The problem type that it failed with.", max_length=80),
                ),
                ("actor_kind", models.CharField(max_length=8)),
                ("requested_by_ref", models.CharField(blank=True, max_length=64)),
                ("requested_at", models.DateTimeField()),
                (
                    "entries",
                    models.PositiveIntegerField(help_text="Ledger entries about the subject at that time.", null=True),
                ),
                (
                    "covers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(),
                        default=list,
                        help_text="Whose rows are in it; people too.",
                        size=None,
                    ),
                ),
                ("draft", models.BinaryField(help_text="What was collected, until the bundle is written.", null=True)),
                ("anchor", models.UUIDField(help_text="The ledger entry that names what was collected.", null=True)),
                ("checkpoint_size", models.BigIntegerField(null=True)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                ("size", models.BigIntegerField(null=True)),
                ("storage_name", models.CharField(blank=True, max_length=200)),
                ("tries", models.PositiveSmallIntegerField(default=0, help_text="How often the storage was tried.")),
                (
                    "resume_at",
                    models.DateTimeField(help_text="When the tick takes it up, should whoever works on it have died."),
                ),
                ("built_at", models.DateTimeField(null=True)),
                (
                    "altered_at",
                    models.DateTimeField(help_text="When the stored file was found to be another one.", null=True),
                ),
                (
                    "erased_at",
                    models.DateTimeField(help_text="When something in it was erased by order.", null=True),
                ),
                (
                    "removed_at",
                    models.DateTimeField(help_text="When its file was removed after that.", null=True),
                ),
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
                "indexes": [
                    models.Index(fields=["subject_id", "id"], name="evidence_by_subject"),
                    models.Index(fields=["organization", "id"], name="evidence_by_organization"),
                    models.Index(
                        condition=models.Q(("state__in", ["requested", "building"])),
                        fields=["resume_at"],
                        name="evidence_unfinished",
                    ),
                    models.Index(
                        condition=models.Q(("removed_at", None), ("state", "erased")),
                        fields=["resume_at"],
                        name="evidence_to_remove",
                    ),
                    django.contrib.postgres.indexes.GinIndex(fields=["covers"], name="evidence_by_covered"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    governance.evidence.states.EvidenceState["REQUESTED"],
                                    governance.evidence.states.EvidenceState["BUILDING"],
                                    governance.evidence.states.EvidenceState["READY"],
                                    governance.evidence.states.EvidenceState["FAILED"],
                                    governance.evidence.states.EvidenceState["ERASED"],
                                ],
                            )
                        ),
                        name="evidence_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "subject_kind__in",
                                [
                                    governance.evidence.states.EvidenceKind["ATTEMPT"],
                                    governance.evidence.states.EvidenceKind["INSTANCE"],
                                ],
                            )
                        ),
                        name="evidence_known_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "ready"), _negated=True),
                            models.Q(
                                models.Q(("sha256", ""), _negated=True),
                                models.Q(("storage_name", ""), _negated=True),
                                ("checkpoint_size__isnull", False),
                                ("size__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="evidence_ready_is_whole",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "failed"), _negated=True),
                            models.Q(("problem", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="evidence_failure_has_problem",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "requested")),
                        fields=("subject_id",),
                        name="evidence_one_request_per_subject",
                    ),
                ],
            },
        ),
        legal_moves_only(
            "governance_evidencebundle",
            EVIDENCE_MOVES,
            frozen=["organization_id", "subject_kind", "subject_id", "actor_kind", "requested_by_ref", "requested_at"],
        ),
        migrations.RunSQL(sql=FINISHED, reverse_sql=UNFINISHED),
    ]
