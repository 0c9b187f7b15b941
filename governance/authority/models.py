"""Authority changes: proposals that a second person puts in force. Also the end of each organization's founding."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from governance.authority.rules import ACTS
from governance.authority.states import AuthorityState
from governance.boundary.models import Note
from governance.people.models import ServiceAccount
from governance.sql.guards import StateMachineModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager

PERSON = settings.AUTH_USER_MODEL


class AuthorityChange(StateMachineModel):
    """One proposal. `details` are checked and complete when it is written; they never change afterwards, and never
    hold a secret."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="authority_changes")
    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    details = models.JSONField(default=dict)
    before = models.JSONField(default=dict, help_text="What was in force when it was proposed.")
    after = models.JSONField(default=dict, help_text="What it would become.")
    loosens = models.BooleanField(default=False, help_text="It allows more than before.")
    state = FSMField(
        max_length=12,
        choices=[(state.value, state.value) for state in AuthorityState],
        default=AuthorityState.PROPOSED.value,
        protected=True,
        editable=False,
    )
    founding = models.BooleanField(default=False, help_text="Done by one person, while the organization was founded.")
    proposed_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    proposed_through = models.ForeignKey(ServiceAccount, null=True, on_delete=models.PROTECT, related_name="+")
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    decided_by = models.ForeignKey(PERSON, null=True, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField(null=True)
    result = models.JSONField(default=dict, help_text="Ids of what it made.")

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "authority change"
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(AuthorityState)), name="authority_change_known_state"),
            models.CheckConstraint(
                condition=~Q(state="in_force")
                | Q(founding=True, decided_by=None)
                | (Q(founding=False, decided_by__isnull=False) & ~Q(decided_by=F("proposed_by"))),
                name="authority_change_by_second_person",
            ),
            models.CheckConstraint(
                condition=Q(state="proposed", decided_at=None) | (~Q(state="proposed") & Q(decided_at__isnull=False)),
                name="authority_change_decided_has_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["organization", "kind", "decided_at"],
                condition=Q(state="in_force"),
                name="authority_in_force",
            ),
            models.Index(fields=["expires_at"], condition=Q(state="proposed"), name="authority_waiting"),
            models.Index(fields=["organization", "-id"], name="authority_newest"),
        ]

    def __str__(self) -> str:
        return f"{ACTS[self.kind].title}: {self.about}"

    @property
    def about(self) -> str:
        """Whom or what it is about, for people: a name if there is one. An id says nothing to whoever confirms it."""
        named = (self.after.get(key) or self.before.get(key) for key in ("person", "slug", "service_account"))
        return str(next((name for name in named if name), self.subject) or self.organization)

    @transition(field=state, source=AuthorityState.PROPOSED.value, target=AuthorityState.IN_FORCE.value)
    def put_in_force(self) -> None:
        """Called by `authority_confirm` and, for the founder, by `authority_act`."""

    @transition(field=state, source=AuthorityState.PROPOSED.value, target=AuthorityState.DECLINED.value)
    def decline(self) -> None:
        """Called by `authority_decline`."""

    @transition(field=state, source=AuthorityState.PROPOSED.value, target=AuthorityState.WITHDRAWN.value)
    def withdraw(self) -> None:
        """Called by `authority_withdraw`."""

    @transition(field=state, source=AuthorityState.PROPOSED.value, target=AuthorityState.LAPSED.value)
    def lapse(self) -> None:
        """Called by the clock, and by whoever confirms too late."""
