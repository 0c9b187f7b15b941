"""The table of shutdowns. Who may engage or release one is in `services.py`, what it covers in
`governance/enforcement/sql.py`."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from governance.boundary.models import Note
from governance.shutdown.states import ShutdownScope, ShutdownState
from governance.sql.guards import AppendOnlyModel, StateMachineModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class Shutdown(StateMachineModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    scope = models.CharField(max_length=12, choices=[(scope.value, scope.value) for scope in ShutdownScope])
    organization = models.ForeignKey(
        Organization, null=True, blank=True, on_delete=models.PROTECT, related_name="shutdowns"
    )
    target = models.CharField(max_length=140, blank=True)
    drill = models.BooleanField(default=False, help_text="A rehearsal: shows and records everything, stops nothing.")
    state = FSMField(
        max_length=12,
        choices=[(state.value, state.value) for state in ShutdownState],
        default=ShutdownState.ENGAGED.value,
        protected=True,
        editable=False,
    )
    reason_code = models.CharField(max_length=64)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+")
    preview = models.JSONField(default=dict, help_text="What it stopped, counted when it was engaged.")
    engaged_by_kind = models.CharField(max_length=8)
    engaged_by_ref = models.CharField(max_length=64)
    engaged_at = models.DateTimeField()
    released_by_ref = models.CharField(max_length=64, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    release_note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+")

    objects = TenantManager(shared=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=list(ShutdownScope)), name="shutdown_known_scope"),
            models.CheckConstraint(condition=Q(state__in=list(ShutdownState)), name="shutdown_known_state"),
            models.CheckConstraint(
                condition=Q(state="engaged", released_at=None) | Q(state="released", released_at__isnull=False),
                name="shutdown_released_has_time",
            ),
            models.CheckConstraint(
                condition=Q(released_by_ref="") | ~Q(released_by_ref=F("engaged_by_ref")),
                name="shutdown_release_by_second_person",
            ),
            models.CheckConstraint(
                condition=Q(scope__in=["global", "region"], organization=None)
                | (Q(scope__in=["organization", "contract", "connector"]) & Q(organization__isnull=False)),
                name="shutdown_scope_fits_organization",
            ),
        ]
        indexes = [
            models.Index(fields=["scope", "organization"], condition=Q(state="engaged"), name="shutdown_engaged")
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.target}".strip()

    @transition(field=state, source=ShutdownState.ENGAGED.value, target=ShutdownState.RELEASED.value)
    def release(self) -> None:
        """Called by `shutdown_release`, which checks that it is a second person."""


class BreakGlass(AppendOnlyModel):
    """An owner's word that a shutdown may end, although nobody who could release it is left. It takes two."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    shutdown = models.ForeignKey(Shutdown, on_delete=models.PROTECT, related_name="broken", db_index=False)
    person_ref = models.CharField(max_length=64)
    groups = ArrayField(models.CharField(max_length=64), help_text="The owning groups of this person at that moment.")
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["shutdown", "-id"], name="break_glass_newest")]

    def __str__(self) -> str:
        return ", ".join(self.groups)
