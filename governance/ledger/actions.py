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
        "attempt.deduplicated": "found the attempt to be new",
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
