"""Whether a request may come in at all: decided from address, headers and credential, before any byte of its body."""

from governance.selectors import Credential
from reasoncodes.errors import AttemptCreationDisabled, ScopeMissing

SCOPE = "attempts:create"


def intake_door(*, credential: Credential, workflow_slug: str, contract_version: str) -> None:
    """Returns when the contract takes attempts; raises the refusal otherwise. Writes nothing."""
    if SCOPE not in credential.actor.scopes:
        raise ScopeMissing(extensions={"required_scope": SCOPE})
    raise AttemptCreationDisabled
