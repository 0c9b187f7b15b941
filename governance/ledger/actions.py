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
        "reason_code.created": "created a reason code",
        "reason_code.changed": "changed a reason code",
        "reason_code.deactivated": "deactivated a reason code",
    }
)
