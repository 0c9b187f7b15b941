"""Whether a request may come in at all: decided from address, headers and credential, before any byte of its body."""

from governance.selectors import Credential, IntakeFacts, intake_facts
from governance.states import ContractState
from reasoncodes.errors import AttemptCreationDisabled, ScopeMissing
from reasoncodes.tenancy import tenant_scope

SCOPE = "attempts:create"


def intake_door(*, credential: Credential, workflow_slug: str, contract_version: str) -> IntakeFacts:
    """What is known about the open contract; raises the refusal otherwise. Writes nothing."""
    if SCOPE not in credential.actor.scopes:
        raise ScopeMissing(extensions={"required_scope": SCOPE})
    with tenant_scope(credential.actor.organization_ids):
        facts = intake_facts(organization=credential.organization, slug=workflow_slug, version=contract_version)
    if facts is None or facts.contract.state != ContractState.OPEN:
        raise AttemptCreationDisabled
    if any(not shutdown["drill"] for shutdown in facts.shutdowns):
        raise AttemptCreationDisabled("A shutdown covers this contract.", reason_code="shutdown_engaged")
    return facts
