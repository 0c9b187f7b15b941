"""The registry of dotted ledger actions, with their wording for people. An unregistered action cannot be written."""

ACTIONS: dict[str, str] = {}


def register_actions(wording: dict[str, str]) -> None:
    """Apps above register theirs in `apps.py`. A name has one meaning for ever."""
    for action, text in wording.items():
        if ACTIONS.setdefault(action, text) != text:
            raise ValueError(f"ledger action {action} is already registered with another meaning")


def wording(action: str) -> str:
    return ACTIONS.get(action, action)


register_actions(
    {
        "organization.created": "created the organization",
        "organization.changed": "changed the organization's settings",
        "product.created": "created a product",
        "person.created": "created a person",
        "person.role_given": "gave a person a role",
        "person.role_taken": "took a role from a person",
        "person.sign_in_reset": "reset a person's sign-in",
        "service_account.created": "created a service account",
        "service_account.suspended": "suspended a service account",
        "service_account.reinstated": "reinstated a service account",
        "api_key.issued": "issued an API key",
        "api_key.rotated": "issued a successor of an API key",
        "api_key.revoked": "revoked an API key",
        "contract.created": "drafted a contract",
        "contract.changed": "changed a contract's draft",
        "contract.opened": "opened a contract for attempts",
        "contract.suspended": "suspended a contract",
        "contract.retired": "retired a contract",
        "contract.version_created": "drafted a new version of a contract",
        "contract.discarded": "discarded a contract's draft",
        "readiness.approved": "approved a readiness area",
        "readiness.rejected": "rejected a readiness area",
        "readiness.revoked": "revoked the approval of a readiness area",
        "readiness.carried_over": "carried an approval over, because the document is unchanged",
        "policy.created": "drafted a policy",
        "policy.changed": "changed a policy's draft",
        "policy.published": "published a policy",
        "policy.archived": "archived a policy",
        "decision.allowed": "allowed an action",
        "decision.held": "held an action for review",
        "decision.denied": "denied an action",
        "attempt.received": "asked for an action",
        "attempt.replayed": "repeated a request and got the first answer again",
        "attempt.conflicted": "used an idempotency key again for something else",
        "attempt.key_expired": "used an idempotency key after its end",
        "attempt.refused": "sent a request that could not be read",
        "attempt.held": "held the attempt for review",
        "attempt.approved": "released the attempt for execution",
        "attempt.denied": "denied the attempt",
        "attempt.cancelled": "withdrew the attempt",
        "attempt.queued": "queued the attempt until a place is free",
        "attempt.placed": "found a place for the queued attempt",
        "attempt.leased": "leased the attempt",
        "attempt.dispatched": "is about to call the adapter",
        "attempt.retried": "scheduled another try",
        "attempt.completed": "completed the attempt",
        "attempt.quarantined": "set the failed attempt apart",
        "attempt.late_evidence": "reported after the lease was lost",
        "review.opened": "asked for a person's judgement",
        "review.claimed": "claimed a review",
        "review.released": "gave a review back",
        "review.delegated": "delegated reviews",
        "review.voted": "voted on a review",
        "review.approved": "reached the quorum of a review",
        "review.rejected": "rejected a review",
        "review.confirmed": "confirmed what a workflow found",
        "review.overridden": "overrode what a workflow found",
        "review.requeued": "declined a review, which went back to the queue",
        "review.expired": "let a review expire",
        "review.canceled": "ended a review with its attempt or workflow step",
        "review.reminded": "reminded the reviewers",
        "quarantine.found": "said what happened",
        "quarantine.escalated": "escalated a quarantine case",
        "quarantine.incident_linked": "linked an incident",
        "quarantine.retry_authorized": "authorized a new attempt",
        "quarantine.compensated": "opened a compensating attempt",
        "quarantine.accepted": "accepted the outcome",
        "attempt.deduplicated": "found the attempt to be new",
        "ledger.key_adopted": "began to seal the ledger with a new key",
        "shutdown.engaged": "engaged a shutdown",
        "shutdown.rehearsed": "rehearsed a shutdown",
        "shutdown.released": "released a shutdown",
        "violation.recorded": "tried something that the rules of the record forbid",
        "region_profile.adopted": "adopted a regional profile",
        "reason_code.created": "created a reason code",
        "reason_code.changed": "changed a reason code",
        "reason_code.deactivated": "deactivated a reason code",
    }
)
