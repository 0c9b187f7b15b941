"""The evidence bundle: its subject, the progress of its building, and where the finished file is stored."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from governance.evidence.states import EvidenceKind, EvidenceState
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class EvidenceBundle(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    subject_kind = models.CharField(max_length=8)
    subject_id = models.UUIDField()
    state = models.CharField(max_length=12, default=EvidenceState.REQUESTED.value, editable=False)
    progress = models.CharField(max_length=80, blank=True, help_text="In words, for whoever waits.")
    problem = models.CharField(max_length=80, blank=True, help_text="The problem type that it failed with.")
    differences = models.JSONField(
        default=list, help_text="Why it was refused: table, id and field, what the ledger says and what the row says."
    )
    actor_kind = models.CharField(max_length=8)
    requested_by_ref = models.CharField(max_length=64, blank=True)
    requested_at = models.DateTimeField()
    entries = models.PositiveIntegerField(null=True, help_text="Ledger entries about the subject at that time.")
    covers = ArrayField(models.UUIDField(), default=list, help_text="Whose rows are in it; people too.")
    draft = models.BinaryField(null=True, help_text="What was collected, until the bundle is written.")
    anchor = models.UUIDField(null=True, help_text="The ledger entry that names what was collected.")
    checkpoint_size = models.BigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)
    size = models.BigIntegerField(null=True)
    storage_name = models.CharField(max_length=200, blank=True)
    tries = models.PositiveSmallIntegerField(default=0, help_text="How often the storage was tried.")
    resume_at = models.DateTimeField(help_text="When the tick takes it up, should whoever works on it have died.")
    built_at = models.DateTimeField(null=True)
    altered_at = models.DateTimeField(null=True, help_text="When the stored file was found to be another one.")
    erased_at = models.DateTimeField(null=True, help_text="When something in it was erased by order.")
    removed_at = models.DateTimeField(null=True, help_text="When its file was removed after that.")

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(EvidenceState)), name="evidence_known_state"),
            models.CheckConstraint(condition=Q(subject_kind__in=list(EvidenceKind)), name="evidence_known_kind"),
            models.CheckConstraint(
                condition=~Q(state="ready")
                | (~Q(sha256="") & ~Q(storage_name="") & Q(size__isnull=False, checkpoint_size__isnull=False)),
                name="evidence_ready_is_whole",
            ),
            models.CheckConstraint(condition=~Q(state="failed") | ~Q(problem=""), name="evidence_failure_has_problem"),
            models.CheckConstraint(
                condition=~Q(state="refused") | (~Q(problem="") & ~Q(differences=[])), name="evidence_refusal_says_why"
            ),
            models.UniqueConstraint(
                fields=["subject_id"], condition=Q(state="requested"), name="evidence_one_request_per_subject"
            ),
        ]
        indexes = [
            models.Index(fields=["subject_id", "id"], name="evidence_by_subject"),
            models.Index(fields=["organization", "id"], name="evidence_by_organization"),
            models.Index(
                fields=["resume_at"], condition=Q(state__in=["requested", "building"]), name="evidence_unfinished"
            ),
            models.Index(fields=["resume_at"], condition=Q(state="erased", removed_at=None), name="evidence_to_remove"),
            GinIndex(fields=["covers"], name="evidence_by_covered"),
        ]

    def __str__(self) -> str:
        return f"{self.subject_kind} {self.subject_id}"
