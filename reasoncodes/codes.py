"""The system's reason codes with their wording: those that the program emits, which cannot be deactivated, and starters
for people to choose from."""

from dataclasses import dataclass, replace
from enum import StrEnum


class Scope(StrEnum):
    HALT = "halt"
    STEP_FAILURE = "step_failure"
    HUMAN_DECLINE = "human_decline"
    DENIAL = "denial"
    QUARANTINE = "quarantine"
    INTERVENTION = "intervention"
    DELEGATION = "delegation"


@dataclass(frozen=True, slots=True)
class SystemCode:
    scope: Scope
    code: str
    label: str
    description: str
    requires_note: bool = False
    step_kinds: tuple[str, ...] = ()
    emitted: bool = True
    """Emitted by the program itself. The others are starters for people to choose from, and may be deactivated."""


_DENIAL = [
    ("invalid_input", "Invalid input", "The request did not have the expected shape."),
    (
        "enforcement_exception",
        "Enforcement failed",
        "An evaluator failed or took too long, so the request is denied.",
    ),
    ("attempt_creation_disabled", "Attempt creation disabled", "The contract is not open for attempts."),
    (
        "shutdown_engaged",
        "Shutdown engaged",
        "A kill switch covers this organization, contract, connector or region.",
    ),
    (
        "ledger_inconsistent",
        "Ledger inconsistent",
        "The record is shorter than what a witness holds, or differs from it. Nothing runs until a person confirms "
        "the loss.",
    ),
    (
        "record_differs",
        "Record differs",
        "A row of the record is not what the ledger says. Nothing runs there until two people have looked at it.",
    ),
    ("contract_suspended", "Contract suspended", "An operator suspended the contract."),
    ("contract_retired", "Contract retired", "This version of the contract is retired."),
    (
        "readiness_revoked",
        "Readiness revoked",
        "An owner revoked a readiness approval, so the contract is closed.",
    ),
    ("policy_denied", "Denied by policy", "A rule of the active policy denies this action."),
    ("no_rule_matched", "No rule matched", "No rule of the active policy allows this action."),
    ("no_active_policy", "No active policy", "The contract has no active policy, so nothing is allowed."),
    ("review_required", "Review required", "A person has to decide before this can happen."),
    ("effect_repeated", "Asked for twice", "The same effect was asked for before, under another idempotency key."),
    ("review_rejected", "Rejected in review", "A reviewer rejected the action."),
    ("review_expired", "Review expired", "Nobody decided in time, so the action is denied. Expiry never approves."),
    (
        "approver_standing_lost",
        "Approval no longer stands",
        "Somebody who approved the action lost their role or account before it was sent.",
    ),
    (
        "cancelled_by_caller",
        "Cancelled by the caller",
        "The caller withdrew the request before anything ran.",
    ),
    ("rate_limited", "Rate limited", "More requests than the contract's throttles allow."),
    (
        "throttle_unavailable",
        "Throttles unavailable",
        "The throttle counters could not be read, so the request is denied.",
    ),
    (
        "concurrency_limit",
        "Concurrency limit",
        "Too many attempts run at the same time for this key, context, workflow or tenant.",
    ),
    (
        "misuse_suspended",
        "Suspended for misuse",
        "The service account was suspended after repeated refusals.",
    ),
    ("metadata_boundary", "Metadata boundary", "The metadata contained something that must not enter the record."),
    (
        "envelope_incomplete",
        "Envelope incomplete",
        "A required part of the attempt's identity is missing or malformed.",
    ),
    ("region_unset", "Region unset", "The organization has no region, or one of its regions has no profile."),
    ("residency_violation", "Residency violation", "The regional profile forbids this deployment's region."),
    ("not_authorized", "Not authorized", "The caller may not use this contract."),
    (
        "runtime_mode_not_allowed",
        "Runtime mode not allowed",
        "The contract does not allow this runtime mode.",
    ),
    (
        "effect_mismatch",
        "Action does not fit the contract",
        "The connector or the risk tier differs from what the contract declares.",
    ),
    ("record_unavailable", "Record unavailable", "The record could not be written, so nothing was done."),
]
_QUARANTINE = [
    ("adapter_failed", "Adapter failed", "The connector reported a failure."),
    (
        "outcome_unknown",
        "Outcome unknown",
        "The call was sent and no answer was recorded. A person has to find out what happened.",
    ),
    ("lease_lost", "Lease lost", "The executor's lease ended before it reported."),
    (
        "retry_window_passed",
        "Retry window passed",
        "The contract's time for further tries was over when the next one came.",
    ),
]
_STEP_FAILURE = [
    ("step_timed_out", "Step timed out", "The step was not completed in time."),
    (
        "output_contract_drift",
        "Output contract drift",
        "The module's output does not match its schema, so it was not stored.",
    ),
    ("ai_review_failed", "AI review failed", "The AI module could not run."),
    ("image_quality", "Image quality", "The images are not good enough to assess."),
]
_HALT = [
    ("step_timed_out", "Step timed out", "A step was not completed in time, so the workflow halted."),
    ("workflow_deadline_passed", "Workflow deadline passed", "The workflow did not end before its deadline."),
    ("output_contract_drift", "Output contract drift", "A module's output does not match its schema."),
    ("consent_missing", "Consent missing", "The required consents are not on record."),
    ("insufficient_images", "Insufficient images", "There are fewer images than the workflow requires."),
    ("ai_review_failed", "AI review failed", "The AI module could not run."),
    ("image_quality", "Image quality", "The images are not good enough to assess."),
    ("review_rejected", "Rejected in review", "A reviewer rejected a step's action."),
    ("review_expired", "Review expired", "Nobody decided on a step's action in time."),
    ("policy_denied", "Denied by policy", "A rule denied a step's action."),
    ("adapter_failed", "Adapter failed", "A step's connector reported a failure."),
    ("outcome_unknown", "Outcome unknown", "A step's action was sent and no answer was recorded."),
    ("branch_cancelled", "Branch cancelled", "Enough other branches had ended, so this one was not needed any more."),
    ("condition_failed", "Condition failed", "A condition could not be evaluated on the results of the steps."),
    (
        "write_cap_reached",
        "Write cap reached",
        "The run has sent as many governed requests as its organization allows.",
    ),
]
# A step's request that the hold point refuses halts its workflow with the refusal's own code.
_HALT += [row for row in _DENIAL if row[0] not in {code for code, *_ in _HALT}]
_CLOCK = [
    SystemCode(Scope.INTERVENTION, "export_expired", "Export expired", "An export archive passed its expiry date.")
]
_ACCOUNTS = [
    SystemCode(
        Scope.INTERVENTION,
        "responsible_missing",
        "No responsible person",
        "The service account has no responsible person. Name one, which a second person confirms, then reinstate it.",
    )
]
_WEBHOOKS = [
    SystemCode(Scope.INTERVENTION, "webhook_gone", "Webhook endpoint gone", "The endpoint answered 410 Gone."),
    SystemCode(
        Scope.INTERVENTION,
        "webhook_failing",
        "Webhook endpoint failing",
        "The endpoint gave no successful answer for three days.",
    ),
]
# Why a deletion or a purge is refused; the last two are a person's judgement.
_ERASURE_REFUSALS = [
    SystemCode(
        Scope.DENIAL,
        "legal_hold",
        "Legal hold",
        "A legal hold covers this record. It cannot be purged or deleted while the hold lasts.",
    ),
    SystemCode(
        Scope.DENIAL,
        "retention_not_over",
        "Retention is not over",
        "The regional profile still requires this record to be kept.",
    ),
    SystemCode(
        Scope.DENIAL,
        "quarantine_unresolved",
        "Quarantine unresolved",
        "Its quarantine case is open. It has no time limit: somebody has to resolve it.",
    ),
    SystemCode(Scope.DENIAL, "not_finished", "Not finished", "It has not ended yet, or the person is still active."),
    SystemCode(Scope.DENIAL, "nothing_to_erase", "Nothing to erase", "Nothing is left that could be erased."),
    SystemCode(
        Scope.DENIAL,
        "statutory_duty",
        "Statutory duty",
        "Another law requires this record to be kept. The note names it.",
        True,
    ),
    SystemCode(
        Scope.DENIAL,
        "request_not_verified",
        "Request not verified",
        "It is not proven who asks, or that they have the right to ask.",
        True,
    ),
]
_INTERVENTION = [
    ("operator_shutdown", "Operator shutdown", "An operator engaged a shutdown.", True),
    ("operator_release", "Operator release", "An operator released a shutdown.", True),
    (
        "ledger_inconsistent",
        "Ledger inconsistent",
        "The record is shorter than, or differs from, what a witness holds.",
        False,
    ),
    ("record_differs", "Record differs", "A row of the record is not what the ledger says.", False),
    (
        "restored_backup",
        "Restored from a backup",
        "The database was restored from a backup. Everything after the backup is lost.",
        False,
    ),
    ("superseded", "Superseded", "A newer instance or version replaced it.", False),
    (
        "provider_deactivated",
        "Deactivated by the identity provider",
        "The organization's identity provider deactivated the person or removed them from their groups.",
        False,
    ),
    (
        "responsible_left",
        "Responsible person left",
        "The person responsible for the service account has no access any more. Name another one, then reinstate it.",
        False,
    ),
]
_STARTERS = [
    SystemCode(
        Scope.HUMAN_DECLINE,
        "not_my_speciality",
        "Not my speciality",
        "Another reviewer should decide.",
        emitted=False,
    ),
    SystemCode(Scope.HUMAN_DECLINE, "conflict_of_interest", "Conflict of interest", "I know the case.", emitted=False),
    SystemCode(
        Scope.HUMAN_DECLINE,
        "insufficient_information",
        "Not enough information",
        "What is shown is not enough to decide.",
        True,
        emitted=False,
    ),
    SystemCode(
        Scope.DENIAL,
        "reviewer_wrong_target",
        "Wrong target",
        "The action names the wrong target.",
        emitted=False,
    ),
    SystemCode(
        Scope.DENIAL,
        "reviewer_too_risky",
        "Too risky",
        "The risk is not worth the effect.",
        True,
        emitted=False,
    ),
    SystemCode(
        Scope.DENIAL,
        "reviewer_not_enough_information",
        "Not enough information",
        "What is shown is not enough to decide. The note says what is missing.",
        True,
        emitted=False,
    ),
    SystemCode(
        Scope.DENIAL,
        "reviewer_already_done",
        "Already done",
        "The same action was already done or requested elsewhere.",
        emitted=False,
    ),
    SystemCode(
        Scope.DENIAL, "reviewer_not_now", "Not now", "It may be right, but not at this moment.", True, emitted=False
    ),
    SystemCode(
        Scope.INTERVENTION,
        "incident_response",
        "Incident response",
        "This is part of handling an incident.",
        True,
        emitted=False,
    ),
    SystemCode(
        Scope.INTERVENTION,
        "planned_maintenance",
        "Planned maintenance",
        "This is part of announced maintenance.",
        emitted=False,
    ),
    SystemCode(
        Scope.INTERVENTION,
        "data_correction",
        "Correction elsewhere",
        "The source system was corrected.",
        emitted=False,
    ),
    SystemCode(
        Scope.INTERVENTION,
        "litigation",
        "Litigation",
        "A pending or expected dispute needs the record.",
        emitted=False,
    ),
    SystemCode(
        Scope.INTERVENTION, "regulator_request", "Regulator's request", "An authority requests it.", emitted=False
    ),
    SystemCode(
        Scope.INTERVENTION,
        "hold_ended",
        "Hold no longer needed",
        "The reason for the hold is over.",
        emitted=False,
    ),
    SystemCode(
        Scope.INTERVENTION, "retention_over", "Retention is over", "The record is no longer needed.", emitted=False
    ),
    SystemCode(
        Scope.INTERVENTION,
        "data_subject_request",
        "Data subject's request",
        "The person whom the data is about requests it.",
        emitted=False,
    ),
    SystemCode(Scope.INTERVENTION, "person_left", "Person left", "The person no longer works here.", emitted=False),
    SystemCode(Scope.INTERVENTION, "rehearsal", "Rehearsal", "This is a drill, not an emergency.", emitted=False),
    SystemCode(Scope.DELEGATION, "reviewer_away", "Away", "The reviewer is away for some time.", emitted=False),
    SystemCode(Scope.DELEGATION, "workload_shared", "Too much work", "Somebody else takes part of it.", emitted=False),
    SystemCode(Scope.DELEGATION, "handover", "Handover", "The work passes to somebody else.", emitted=False),
]

# What a person may say who halts a run: the same words, because a halt takes a code of its own scope.
_HALTED_BY_PEOPLE = [replace(code, scope=Scope.HALT) for code in _STARTERS if code.scope is Scope.INTERVENTION]

SYSTEM_CODES: tuple[SystemCode, ...] = (
    *(SystemCode(Scope.DENIAL, *row) for row in _DENIAL),
    *_ERASURE_REFUSALS,
    *_CLOCK,
    *_ACCOUNTS,
    *_WEBHOOKS,
    *(SystemCode(Scope.QUARANTINE, *row) for row in _QUARANTINE),
    *(SystemCode(Scope.STEP_FAILURE, *row) for row in _STEP_FAILURE),
    *(SystemCode(Scope.HALT, *row) for row in _HALT),
    *(SystemCode(Scope.INTERVENTION, *row) for row in _INTERVENTION),
    *_STARTERS,
    *_HALTED_BY_PEOPLE,
)
EMITTED: frozenset[tuple[str, str]] = frozenset((code.scope.value, code.code) for code in SYSTEM_CODES if code.emitted)
