"""Proposals to shut a contract down, and what operators answered. Both are append-only; at most one is open per
contract."""

from django.db import models
from django.db.models import Q

from attempts.proposals.states import ProposalVerdict
from governance.boundary.models import Note
from governance.contracts.models import Contract
from governance.shutdown.models import Shutdown
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class ShutdownProposal(AppendOnlyModel):
    """`shutdown_rules` of the contract, and the evidence: which quarantine cases, when, of which categories."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    contract = models.ForeignKey(Contract, on_delete=models.PROTECT, related_name="+", db_index=False)
    after = models.PositiveIntegerField(help_text="How many cases the contract allows within its window.")
    window_seconds = models.PositiveIntegerField()
    evidence = models.JSONField(help_text="Number, categories, first and last, and the newest cases.")
    at = models.DateTimeField(help_text="When the last of these cases was opened.")

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organization", "-id"], name="shutdown_proposal_newest"),
            models.Index(fields=["contract", "-id"], name="shutdown_proposal_of"),
        ]

    def __str__(self) -> str:
        return f"Shut down {self.contract}?"


class ProposalAnswer(AppendOnlyModel):
    """What an operator said, once."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    proposal = models.OneToOneField(ShutdownProposal, on_delete=models.PROTECT, related_name="answer")
    verdict = models.CharField(max_length=12)
    shutdown = models.ForeignKey(Shutdown, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    by_kind = models.CharField(max_length=8)
    by_ref = models.CharField(max_length=64)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField()

    objects = TenantManager(path="proposal__organization_id")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict=ProposalVerdict.ENGAGED.value, shutdown__isnull=False)
                | Q(verdict=ProposalVerdict.DISMISSED.value, shutdown=None),
                name="proposal_answer_fits_shutdown",
            )
        ]

    def __str__(self) -> str:
        return self.verdict


class ProposalNotice(models.Model):
    """That the operators were told of a proposal: written when all messages are out."""

    proposal = models.OneToOneField(ShutdownProposal, on_delete=models.CASCADE, primary_key=True, related_name="notice")
    sent_at = models.DateTimeField()

    objects = TenantManager(path="proposal__organization_id")

    def __str__(self) -> str:
        return str(self.proposal_id)
