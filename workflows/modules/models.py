"""Registered modules, their versions and secrets, and the requests that go to them over HTTP."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager
from workflows.modules.states import CallState, ModuleTransport


class Module(models.Model):
    """A service outside that does the work of steps. What it offers stands in its versions; `version` is the newest."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    slug = models.CharField(max_length=30)
    active = models.BooleanField(default=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="module_once_per_organization"),
            models.CheckConstraint(
                condition=Q(active=True, disabled_at=None) | Q(active=False, disabled_at__isnull=False),
                name="module_disabled_has_time",
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class ModuleVersion(AppendOnlyModel):
    """What two people confirmed: the address, the operations and the event types. A change is another version, so that
    a published workflow keeps what it was published with."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    module = models.ForeignKey(Module, on_delete=models.PROTECT, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    transport = models.CharField(max_length=6)
    url = models.CharField(max_length=500, blank=True)
    operations = models.JSONField(help_text="By name: effect, send, returns, method, path.")
    publishes = ArrayField(models.CharField(max_length=100))
    created_at = models.DateTimeField()

    objects = TenantManager(path="module__organization_id")

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["module", "number"], name="module_version_once"),
            models.CheckConstraint(
                condition=Q(transport=ModuleTransport.STREAM, url="")
                | (Q(transport=ModuleTransport.HTTP) & ~Q(url="")),
                name="module_version_http_has_url",
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class ModuleSecret(models.Model):
    """As of webhook endpoints: the secret is derived from SECRET_KEY and this salt, and never stored. The newest one
    without an end signs; those before it sign too until they end."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    module = models.ForeignKey(Module, on_delete=models.PROTECT, related_name="secrets")
    salt = models.BinaryField(max_length=32)
    created_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)

    objects = TenantManager(path="module__organization_id")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["module"], condition=Q(ends_at=None), name="module_one_lasting_secret"),
        ]

    def __str__(self) -> str:
        return f"secret of {self.created_at:%Y-%m-%d}"


class ModuleCall(models.Model):
    """One request to a module over HTTP, made of one outgoing event, whose id it has. It is sent once: another try of a
    step is another event and another row. What is sent stands in the outgoing event, and is erased there."""

    id = models.UUIDField(primary_key=True, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    module = models.ForeignKey(Module, on_delete=models.PROTECT, related_name="+", db_index=False)
    step = models.UUIDField(help_text="The step's row; its id is the correlation id.")
    terms = models.JSONField(help_text="As published: operation, version, method, path, effect, and the key.")
    state = models.CharField(max_length=8, default=CallState.WAITING.value)
    tries = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, help_text="While it is being sent: until when an answer counts.")
    outcome = models.CharField(max_length=24, blank=True)
    status = models.PositiveSmallIntegerField(null=True, help_text="The HTTP status that was answered.")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(CallState)), name="module_call_known_state"),
            models.CheckConstraint(
                condition=Q(state="ended", ended_at__isnull=False) | (~Q(state="ended") & Q(ended_at=None)),
                name="module_call_end_has_time",
            ),
            models.CheckConstraint(
                condition=Q(state="sending", lease_until__isnull=False) | ~Q(state="sending"),
                name="module_call_sending_has_lease",
            ),
        ]
        indexes = [
            models.Index(fields=["module", "id"], condition=Q(state="waiting"), name="module_call_waiting"),
            models.Index(fields=["lease_until"], condition=Q(state="sending"), name="module_call_sending"),
            models.Index(fields=["step"], name="module_call_by_step"),
        ]

    def __str__(self) -> str:
        return str(self.id)
