"""Routes of this app under /api/v1/."""

from django.urls import path

from governance.authority import api as authority
from governance.contracts.api import contracts, readiness
from governance.enforcement.api import DecisionApi, DecisionListApi
from governance.evidence import api as evidence
from governance.identity.api import providers as identity_providers
from governance.integrity import api as integrity
from governance.ledger import api as ledger
from governance.policies import api as policies
from governance.regions.api import RegionListApi
from governance.retention import api as deletions
from governance.retention import api as exports
from governance.retention import api as legal_holds
from governance.sealing import api as ledger_tree
from governance.sealing import api as read_audit
from governance.sealing import api as witnesses
from governance.shutdown import api as shutdowns
from governance.tenancy import api as tenancy
from governance.violations.api import ViolationListApi

app_name = "governance"
urlpatterns = [
    *authority.urlpatterns,
    *identity_providers.urlpatterns,
    *tenancy.urlpatterns,
    path("contracts", contracts.ContractListApi.as_view(), name="contract_list"),
    path("contracts/<uuid:contract_id>", contracts.ContractApi.as_view(), name="contract"),
    path("contracts/<uuid:contract_id>/open", contracts.ContractOpenApi.as_view(), name="contract_open"),
    path("contracts/<uuid:contract_id>/suspend", contracts.ContractSuspendApi.as_view(), name="contract_suspend"),
    path("contracts/<uuid:contract_id>/retire", contracts.ContractRetireApi.as_view(), name="contract_retire"),
    path(
        "contracts/<uuid:contract_id>/new-version",
        contracts.ContractNewVersionApi.as_view(),
        name="contract_new_version",
    ),
    path("contracts/<uuid:contract_id>/readiness", readiness.ReadinessApi.as_view(), name="readiness"),
    path(
        "contracts/<uuid:contract_id>/readiness/<str:area>/<str:verdict>",
        readiness.ReadinessDecideApi.as_view(),
        name="readiness_decide",
    ),
    path("policies", policies.PolicyListApi.as_view(), name="policy_list"),
    path("policies/<uuid:policy_id>", policies.PolicyApi.as_view(), name="policy"),
    path("policies/<uuid:policy_id>/validate", policies.PolicyValidateApi.as_view(), name="policy_validate"),
    path("policies/<uuid:policy_id>/publish", policies.PolicyPublishApi.as_view(), name="policy_publish"),
    path("policies/<uuid:policy_id>/archive", policies.PolicyArchiveApi.as_view(), name="policy_archive"),
    path("policies/<uuid:policy_id>/simulate", policies.PolicySimulateApi.as_view(), name="policy_simulate"),
    path("shutdowns", shutdowns.ShutdownListApi.as_view(), name="shutdown_list"),
    path("shutdowns/preview", shutdowns.ShutdownPreviewApi.as_view(), name="shutdown_preview"),
    path("shutdowns/<uuid:shutdown_id>", shutdowns.ShutdownApi.as_view(), name="shutdown"),
    path(
        "shutdowns/<uuid:shutdown_id>/break-glass",
        shutdowns.ShutdownBreakGlassApi.as_view(),
        name="shutdown_break_glass",
    ),
    path("shutdowns/<uuid:shutdown_id>/release", shutdowns.ShutdownReleaseApi.as_view(), name="shutdown_release"),
    path("decisions", DecisionListApi.as_view(), name="decision_list"),
    path("decisions/<uuid:decision_id>", DecisionApi.as_view(), name="decision"),
    path("violations", ViolationListApi.as_view(), name="violation_list"),
    path("regions", RegionListApi.as_view(), name="region_list"),
    path("legal-holds", legal_holds.LegalHoldListApi.as_view(), name="legal_hold_list"),
    path("legal-holds/<uuid:hold_id>", legal_holds.LegalHoldApi.as_view(), name="legal_hold"),
    path("legal-holds/<uuid:hold_id>/release", legal_holds.LegalHoldReleaseApi.as_view(), name="legal_hold_release"),
    path("exports", exports.ExportListApi.as_view(), name="export_list"),
    path("exports/<uuid:export_id>", exports.ExportApi.as_view(), name="export"),
    path("exports/<uuid:export_id>/download", exports.ExportDownloadApi.as_view(), name="export_download"),
    path("deletions", deletions.DeletionListApi.as_view(), name="deletion_list"),
    path("deletions/<uuid:deletion_id>", deletions.DeletionApi.as_view(), name="deletion"),
    path("deletions/<uuid:deletion_id>/accept", deletions.DeletionAcceptApi.as_view(), name="deletion_accept"),
    path("deletions/<uuid:deletion_id>/refuse", deletions.DeletionRefuseApi.as_view(), name="deletion_refuse"),
    path("ledger/entries", ledger.LedgerEntryListApi.as_view(), name="ledger_entry_list"),
    path("ledger/entries/<uuid:entry_id>", ledger.LedgerEntryApi.as_view(), name="ledger_entry"),
    path("ledger/entries/<uuid:entry_id>/proof", ledger_tree.EntryProofApi.as_view(), name="ledger_entry_proof"),
    path("ledger/checkpoints", ledger_tree.CheckpointListApi.as_view(), name="ledger_checkpoint_list"),
    path("ledger/checkpoints/<int:size>", ledger_tree.CheckpointApi.as_view(), name="ledger_checkpoint"),
    path("ledger/consistency", ledger_tree.ConsistencyApi.as_view(), name="ledger_consistency"),
    path("evidence", evidence.EvidenceListApi.as_view(), name="evidence_list"),
    path("evidence/<uuid:bundle_id>", evidence.EvidenceApi.as_view(), name="evidence"),
    path("evidence/<uuid:bundle_id>/download", evidence.EvidenceDownloadApi.as_view(), name="evidence_download"),
    path("ledger/public-key", ledger_tree.PublicKeyApi.as_view(), name="ledger_public_key"),
    path("record/status", integrity.RecordStatusApi.as_view(), name="record_status"),
    path("ledger/witnesses", witnesses.WitnessListApi.as_view(), name="ledger_witness_list"),
    path("read-audit", read_audit.ReadAuditApi.as_view(), name="read_audit_list"),
]
