"""Circuits of receivers. Whether anything is sent while one is open is decided in `services`, by `rules`."""

from django.db import models
from django.db.models import Q

from attempts.receivers.rules import Circuit
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class ReceiverCircuit(models.Model):
    """One receiver of one organization that has failed: only these have a row. What one organization's calls meet says
    nothing about another's."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    connector = models.CharField(max_length=64)
    receiver = models.CharField(max_length=200, help_text="Host and port, or the name of the adapter.")
    failures = models.PositiveIntegerField(default=0, help_text="Calls in a row that got no useful answer.")
    last_why = models.CharField(max_length=64, blank=True)
    opened_at = models.DateTimeField(null=True, help_text="Since when nothing is sent; empty: closed.")
    probes = models.PositiveIntegerField(default=0, help_text="Probes that failed since then.")
    probe_at = models.DateTimeField(null=True)
    probing_until = models.DateTimeField(null=True, help_text="A probe is under way until then at the latest.")
    changed_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "connector", "receiver"], name="circuit_of_one_receiver"),
            models.CheckConstraint(
                condition=Q(opened_at=None, probe_at=None, probing_until=None) | Q(opened_at__isnull=False),
                name="circuit_closed_has_no_probe",
            ),
        ]
        indexes = [models.Index(fields=["changed_at"], condition=Q(failures__gt=0), name="circuit_in_trouble")]

    def __str__(self) -> str:
        return f"{self.connector} {self.receiver}"

    @property
    def circuit(self) -> Circuit:
        return Circuit(self.failures, self.opened_at, self.probes, self.probe_at, self.probing_until)

    @circuit.setter
    def circuit(self, value: Circuit) -> None:
        self.failures, self.opened_at, self.probes = value.failures, value.opened_at, value.probes
        self.probe_at, self.probing_until = value.probe_at, value.probing_until
