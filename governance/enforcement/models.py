"""Tables of decisions and of the snapshots that they were computed from."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.query_utils import DeferredAttribute

from governance.boundary.rules import Fact, facts_of
from governance.contracts.models import Contract
from governance.enforcement.rules.frames import AS_FRAMED, framed_environment, framed_request
from governance.enforcement.rules.names import ACTS
from governance.ledger.rules.entry import canonical_sha256
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class SnapshotBroken(RuntimeError):
    """A snapshot is missing, or its content does not have its hash. Nothing can be decided from it."""


class Snapshot(AppendOnlyModel):
    """A contract, policy, regional profile, workflow definition or frame, stored once under the hash of its content,
    for all decisions that use it."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    kind = models.CharField(max_length=12)
    document = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["sha256"]

    def __str__(self) -> str:
        return f"{self.kind} {self.sha256[:12]}"


@lru_cache(maxsize=1024)
def snapshot_load(sha256: str) -> Any:
    """The document with this hash."""
    # Cached per process without an end: content under a hash cannot change. The hash is checked when the row is read,
    # so a row that was altered in the database decides nothing.
    document = Snapshot.objects.filter(sha256=sha256).values_list("document", flat=True).first()
    if document is None or canonical_sha256(document) != sha256:
        raise SnapshotBroken(sha256)
    return document


@lru_cache(maxsize=256)
def facts_declared(contract_sha256: str | None) -> tuple[Fact, ...]:
    """The typed facts that the contract with this snapshot declares."""
    if contract_sha256 is None:
        return ()
    return facts_of(snapshot_load(contract_sha256)["documents"]["metadata_boundary"])


def moment_text(at: datetime) -> str:
    """A moment as the environment has it."""
    # Always UTC and microseconds: the text is hashed, and a shorter form of the same moment would change the hash.
    return at.astimezone(UTC).isoformat(timespec="microseconds")


class FramedAttribute(DeferredAttribute):
    """Gives the whole value of a field that may be stored as a difference from a frame."""

    # The instance's dictionary keeps what is stored: what is saved must be the difference, not the whole value.

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        stored = super().__get__(instance, cls)
        return stored if instance is None else instance.whole(self.field.attname, stored)

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.field.attname] = value


class FramedField(models.JSONField):
    """A JSONField whose attribute gives the whole value. Migrations see an ordinary JSONField."""

    descriptor_class = FramedAttribute

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs


class EnforcementDecision(AppendOnlyModel):
    """One decision. With `frame_sha256`, the row has only what differs from a frame that many decisions share; the
    attributes `request`, `environment` and `results` still give the whole documents. Reading them may raise
    SnapshotBroken."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    contract = models.ForeignKey(Contract, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    verdict = models.CharField(max_length=16)
    reason_code = models.CharField(max_length=64, blank=True)
    rule_id = models.CharField(max_length=64, blank=True)
    policy_version = models.PositiveIntegerField(null=True)
    results = FramedField()
    approval = models.JSONField(null=True)
    request = FramedField()
    environment = FramedField()
    request_sha256 = models.CharField(max_length=64)
    environment_sha256 = models.CharField(max_length=64)
    frame_sha256 = models.BinaryField(max_length=32, null=True)
    at = models.DateTimeField()
    act = models.CharField(max_length=8, default="", blank=True, help_text="Empty: the request came in.")
    subject_id = models.UUIDField(null=True, help_text="The attempt that is decided again before the act.")

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organization", "id"], name="decision_by_organization"),
            models.Index(fields=["contract", "id"], name="decision_by_contract"),
            models.Index(
                fields=["subject_id", "id"], condition=Q(subject_id__isnull=False), name="decision_by_subject"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict__in=["allow", "needs_approval", "deny"]), name="decision_known_verdict"
            ),
            models.CheckConstraint(
                condition=Q(verdict="allow") | ~Q(reason_code=""), name="decision_refusal_has_reason"
            ),
            models.CheckConstraint(
                condition=Q(act="", subject_id=None) | Q(act__in=ACTS, subject_id__isnull=False),
                name="decision_act_has_subject",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} {self.reason_code}".strip()

    @property
    def facts_declared(self) -> tuple[Fact, ...]:
        """The typed facts of the contract, as it was when this was decided."""
        return facts_declared(self.environment.get("contract_sha256"))

    def whole(self, name: str, stored: Any) -> Any:
        """The stored value of this field, completed from the frame if the decision has one."""
        if self.frame_sha256 is None or (name != "request" and stored != AS_FRAMED):
            return stored
        frame = snapshot_load(bytes(self.frame_sha256).hex())
        if name == "request":
            return framed_request(frame, stored)
        return frame["results"] if name == "results" else framed_environment(frame, at=moment_text(self.at))
