"""The reason codes that the record may name: the system's, and each organization's own."""

from django.db import models
from django.db.models import Q

from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager
from reasoncodes.codes import Scope


class ReasonCode(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        "governance.Organization",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Empty for the system's own codes.",
    )
    scope = models.CharField(max_length=20, choices=[(scope.value, scope.value) for scope in Scope])
    code = models.CharField(max_length=64, help_text="What programs see: lower case, digits, underscores.")
    label = models.CharField(max_length=80, help_text="What people see.")
    description = models.CharField(max_length=280, blank=True)
    requires_note = models.BooleanField(default=False, help_text="Whoever chooses it must write a short note.")
    applicable_step_kinds = models.JSONField(
        null=True, blank=True, help_text="Step kinds that may name it, as a list; empty for all."
    )
    emitted = models.BooleanField(default=False, editable=False)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = TenantManager(shared=True)

    class Meta:
        ordering = ["scope", "code", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "scope", "code"],
                # Otherwise the system's rows, whose organization is NULL, would not be unique.
                nulls_distinct=False,
                name="reason_code_once_per_scope",
            ),
            models.CheckConstraint(condition=Q(code__regex=r"^[a-z][a-z0-9_]{1,63}$"), name="reason_code_format"),
            models.CheckConstraint(condition=Q(scope__in=[s.value for s in Scope]), name="reason_code_known_scope"),
            models.CheckConstraint(
                condition=Q(emitted=False) | Q(active=True), name="reason_code_emitted_stays_active"
            ),
        ]
        indexes = [models.Index(fields=["scope", "active"], name="reason_code_scope_active")]

    def __str__(self) -> str:
        return f"{self.scope}/{self.code}"
