"""What people ask about data: to get it (export) and to have it erased (deletion). Each has a due date."""

from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from governance.models.erasure import ErasureOrder
from governance.models.organization import Organization
from governance.models.shutdown import Note
from governance.models.state_machine import StateMachineModel
from governance.states import DeletionState, ExportState
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager

D, E = DeletionState, ExportState


class ExportRequest(StateMachineModel):
    """Everything about one context reference, or of the organization, as an archive in the storage `exports`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    commitment = models.CharField(
        max_length=64, blank=True, help_text="Of the context reference; empty: the whole organization."
    )
    state = FSMField(
        max_length=12,
        choices=[(state.value, state.value) for state in E],
        default=E.REQUESTED.value,
        protected=True,
        editable=False,
    )
    reason_code = models.CharField(max_length=64)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    requested_by_kind = models.CharField(max_length=8)
    requested_by_ref = models.CharField(max_length=64)
    requested_at = models.DateTimeField()
    due_at = models.DateTimeField()
    resume_at = models.DateTimeField(help_text="When the tick takes it up, should whoever works on it have died.")
    tries = models.PositiveSmallIntegerField(default=0)
    done = models.PositiveIntegerField(default=0, help_text="Rows written so far.")
    total = models.PositiveIntegerField(default=0, help_text="Rows to write, counted at the start.")
    file = models.CharField(max_length=200, blank=True)
    size = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    ready_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(E)), name="export_known_state"),
            models.CheckConstraint(
                condition=~Q(state="ready") | (~Q(sha256="") & ~Q(file="") & Q(expires_at__isnull=False)),
                name="export_ready_has_file",
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], name="export_by_organization"),
            models.Index(fields=["resume_at"], condition=Q(state="requested"), name="export_unfinished"),
            models.Index(fields=["expires_at"], condition=Q(state="ready"), name="export_expiring"),
        ]

    def __str__(self) -> str:
        return f"export {self.id}"

    @transition(field=state, source=E.REQUESTED.value, target=E.READY.value)
    def finish(self) -> None:
        """The archive is in the storage, and its SHA-256 on the ledger."""

    @transition(field=state, source=E.REQUESTED.value, target=E.FAILED.value)
    def fail(self) -> None:
        """Tried several times in vain."""

    @transition(field=state, source=E.READY.value, target=E.EXPIRED.value)
    def expire(self) -> None:
        """The clock ends it: the file is gone."""


class DeletionRequest(StateMachineModel):
    """About a context reference or a person. Whoever asks does not decide."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    about = models.CharField(max_length=8, help_text="context or person")
    commitment = models.CharField(max_length=64, help_text="Stands for the reference or the person.")
    state = FSMField(
        max_length=12,
        choices=[(state.value, state.value) for state in D],
        default=D.REQUESTED.value,
        protected=True,
        editable=False,
    )
    requested_by_kind = models.CharField(max_length=8)
    requested_by_ref = models.CharField(max_length=64)
    requested_at = models.DateTimeField()
    due_at = models.DateTimeField(help_text="Until when it must be answered, by the regional profile.")
    decided_by_ref = models.CharField(max_length=64, blank=True)
    decided_at = models.DateTimeField(null=True)
    reason_code = models.CharField(max_length=64, blank=True)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    order = models.OneToOneField(ErasureOrder, null=True, on_delete=models.PROTECT, related_name="deletion_request")
    finished_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(D)), name="deletion_known_state"),
            models.CheckConstraint(condition=Q(about__in=["context", "person"]), name="deletion_known_subject"),
            models.CheckConstraint(
                condition=Q(decided_by_ref="") | ~Q(decided_by_ref=F("requested_by_ref")),
                name="deletion_decided_by_second_person",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["accepted", "refused"]) | ~Q(reason_code=""),
                name="deletion_decision_has_reason",
            ),
            models.UniqueConstraint(
                fields=["organization", "commitment"],
                condition=Q(state__in=["requested", "accepted"]),
                name="deletion_one_open",
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], name="deletion_by_organization"),
            models.Index(fields=["due_at"], condition=Q(state="requested"), name="deletion_due"),
        ]

    def __str__(self) -> str:
        return f"{self.about} {self.commitment[:12]}"

    @transition(field=state, source=D.REQUESTED.value, target=D.ACCEPTED.value)
    def accept(self) -> None:
        """Its erasure is ordered."""

    @transition(field=state, source=[D.REQUESTED.value, D.ACCEPTED.value], target=D.REFUSED.value)
    def refuse(self) -> None:
        """With a lawful reason; of an accepted one because something was in the way at its turn."""

    @transition(field=state, source=D.ACCEPTED.value, target=D.DONE.value)
    def finish(self) -> None:
        """Everything is erased, the reference and its salt too."""
