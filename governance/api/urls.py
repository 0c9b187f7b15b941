"""Routes of this app under /api/v1/."""

from django.urls import path

from governance.api import (
    contracts,
    evidence,
    ledger,
    ledger_tree,
    policies,
    read_audit,
    readiness,
    records,
    shutdowns,
    witnesses,
)

app_name = "governance"
urlpatterns = [
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
    path("shutdowns/<uuid:shutdown_id>/release", shutdowns.ShutdownReleaseApi.as_view(), name="shutdown_release"),
    path("decisions", records.DecisionListApi.as_view(), name="decision_list"),
    path("decisions/<uuid:decision_id>", records.DecisionApi.as_view(), name="decision"),
    path("violations", records.ViolationListApi.as_view(), name="violation_list"),
    path("regions", records.RegionListApi.as_view(), name="region_list"),
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
    path("ledger/witnesses", witnesses.WitnessListApi.as_view(), name="ledger_witness_list"),
    path("read-audit", read_audit.ReadAuditApi.as_view(), name="read_audit_list"),
]
