"""Tables of retention: erasure orders with their items and erased ledger payloads, exports, deletion requests, context
references and legal holds."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from governance.boundary.models import Note
from governance.ledger.models import LedgerEntry
from governance.retention.states import DeletionState, ErasureKind, ExportState, HoldScope, HoldState, ItemState
from governance.sql.guards import AppendOnlyModel, StateMachineModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class ErasureOrder(models.Model):
    """A person's order to erase. A worker does it in the background, item by item. The clock gives no orders."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=8)
    reason_code = models.CharField(max_length=64)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    ordered_by = models.UUIDField()
    ordered_by_ref = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    resume_at = models.DateTimeField(help_text="When the tick takes it up, should whoever works on it have died.")
    finished_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=list(ErasureKind)), name="erasure_known_kind"),
            models.CheckConstraint(condition=~Q(reason_code=""), name="erasure_has_reason"),
        ]
        indexes = [models.Index(fields=["resume_at"], condition=Q(finished_at=None), name="erasure_unfinished")]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class ErasureItem(models.Model):
    """One subject of an order. The database function that erases it fills `related` and `refs`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    order = models.ForeignKey(ErasureOrder, on_delete=models.PROTECT, related_name="items", db_index=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=20)
    subject_id = models.UUIDField()
    state = models.CharField(max_length=8, default=ItemState.WAITING.value)
    problem = models.CharField(max_length=64, blank=True, help_text="The reason code of a refusal.")
    not_before = models.DateTimeField(null=True, help_text="End of retention where only the application knows it.")
    contract = models.CharField(max_length=63, blank=True)
    refs = ArrayField(models.CharField(max_length=200), default=list, help_text="Emptied when it is done.")
    related = ArrayField(models.UUIDField(), default=list, help_text="Subjects of the ledger entries that it erases.")
    entries = models.PositiveIntegerField(default=0, help_text="Ledger payloads erased.")
    finished_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["order", "kind", "subject_id"], name="erasure_item_once"),
            models.CheckConstraint(condition=Q(state__in=list(ItemState)), name="erasure_item_known_state"),
            models.CheckConstraint(
                condition=~Q(state="refused") | ~Q(problem=""), name="erasure_item_refusal_has_reason"
            ),
        ]
        indexes = [
            models.Index(fields=["order", "id"], condition=Q(state="waiting"), name="erasure_item_waiting"),
            models.Index(fields=["subject_id"], name="erasure_item_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class ErasedPayload(AppendOnlyModel):
    """Says which item erased the payload of a ledger entry. The database function that erases writes it."""

    entry = models.OneToOneField(LedgerEntry, on_delete=models.PROTECT, related_name="erased", primary_key=True)
    item = models.ForeignKey(ErasureItem, on_delete=models.PROTECT, related_name="payloads")

    objects = TenantManager(path="item__organization_id")

    class Meta:
        ordering = ["entry_id"]

    def __str__(self) -> str:
        return str(self.entry_id)


D, E = DeletionState, ExportState


class ExportRequest(StateMachineModel):
    """A request for an archive of everything about one context reference, or of the organization. The file is in the
    storage `exports`."""

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
        """The archive is in the storage, and its SHA-256 is in the ledger."""

    @transition(field=state, source=E.REQUESTED.value, target=E.FAILED.value)
    def fail(self) -> None:
        """Several tries have failed."""

    @transition(field=state, source=E.READY.value, target=E.EXPIRED.value)
    def expire(self) -> None:
        """The clock ends it: the file is removed."""


class DeletionRequest(StateMachineModel):
    """A request to delete a context reference or a person. The one who asks does not decide."""

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
        """With a lawful reason. An accepted request is refused if something blocked its erasure."""

    @transition(field=state, source=D.ACCEPTED.value, target=D.DONE.value)
    def finish(self) -> None:
        """Everything is erased, the reference and its salt too."""


class ContextReference(models.Model):
    """The link from a context reference to the commitment by which legal holds, exports and deletions name it.

    After this row and its salt are destroyed, nothing links the commitment to the reference. Ledger entries and their
    proofs do not change.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    reference = models.CharField(max_length=200)
    salt = models.BinaryField(max_length=32)
    commitment = models.CharField(max_length=64, unique=True)

    objects = TenantManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "reference"], name="context_reference_once"),
        ]

    def __str__(self) -> str:
        return self.commitment


class LegalHold(StateMachineModel):
    """Takes precedence over purge and deletion from its commit until a second person releases it. It does not
    expire."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    scope = models.CharField(max_length=12, choices=[(scope.value, scope.value) for scope in HoldScope])
    target = models.CharField(
        max_length=140, blank=True, help_text="A slug, an id or a commitment; empty for the whole organization."
    )
    state = FSMField(
        max_length=12,
        choices=[(state.value, state.value) for state in HoldState],
        default=HoldState.ACTIVE.value,
        protected=True,
        editable=False,
    )
    reason_code = models.CharField(max_length=64)
    authority_ref = models.CharField(
        max_length=200, blank=True, help_text="Reference of the case or letter that asks for it."
    )
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    placed_by_kind = models.CharField(max_length=8)
    placed_by_ref = models.CharField(max_length=64)
    placed_at = models.DateTimeField()
    release_reason_code = models.CharField(max_length=64, blank=True)
    released_by_ref = models.CharField(max_length=64, blank=True)
    released_at = models.DateTimeField(null=True)
    release_note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=list(HoldScope)), name="hold_known_scope"),
            models.CheckConstraint(condition=Q(state__in=list(HoldState)), name="hold_known_state"),
            models.CheckConstraint(condition=~Q(reason_code=""), name="hold_has_reason"),
            models.CheckConstraint(
                condition=Q(scope="organization", target="") | (~Q(scope="organization") & ~Q(target="")),
                name="hold_target_fits_scope",
            ),
            models.CheckConstraint(
                condition=Q(state="active", released_at=None, release_reason_code="")
                | (Q(state="released", released_at__isnull=False) & ~Q(release_reason_code="")),
                name="hold_release_has_reason_and_time",
            ),
            models.CheckConstraint(
                condition=Q(released_by_ref="") | ~Q(released_by_ref=F("placed_by_ref")),
                name="hold_release_by_second_person",
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "scope", "target"], condition=Q(state="active"), name="hold_active"),
            models.Index(fields=["organization", "id"], name="hold_by_organization"),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.target[:12]}".strip()

    @transition(field=state, source=HoldState.ACTIVE.value, target=HoldState.RELEASED.value)
    def release(self) -> None:
        """By a second person, with a reason; see legal_hold_release."""
