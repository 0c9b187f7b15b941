"""What must not be erased, and the only links from references to the commitments that stand for them."""

from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from governance.models.organization import Organization
from governance.models.shutdown import Note
from governance.models.state_machine import StateMachineModel
from governance.states import HoldScope, HoldState
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager


class ContextReference(models.Model):
    """The only link from a context reference to the commitment by which holds, exports and deletions name it.

    Destroying this row (salt and all) takes the meaning away; ledger entries and their proofs stay as they are.
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
    """Beats purge and deletion from its commit until a second person releases it. It never ends by itself."""

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
