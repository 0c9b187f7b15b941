"""Whether a request may come in at all: decided from address, headers and credential, before any byte of its body."""

from datetime import datetime

from governance.selectors import Arrival, Credential, IntakeFacts, intake_arrival, intake_facts
from governance.states import ContractState
from reasoncodes.errors import AttemptCreationDisabled, CredentialMissing, ScopeMissing

SCOPE = "attempts:create"


def intake_knock(*, secret: str | None, workflow_slug: str, contract_version: str, at: datetime) -> Arrival:
    """Who it is and what they ask for, in one query; refuses whom it does not know."""
    arrival = secret and intake_arrival(secret=secret, slug=workflow_slug, version=contract_version, at=at)
    if not arrival:
        raise CredentialMissing
    return arrival


def intake_pass(*, credential: Credential, facts: IntakeFacts | None) -> IntakeFacts:
    """The open contract's facts; raises the refusal otherwise. Writes nothing."""
    if SCOPE not in credential.actor.scopes:
        raise ScopeMissing(extensions={"required_scope": SCOPE})
    if facts is None or facts.contract.state != ContractState.OPEN:
        raise AttemptCreationDisabled
    if any(not shutdown["drill"] for shutdown in facts.shutdowns):
        raise AttemptCreationDisabled("A shutdown covers this contract.", reason_code="shutdown_engaged")
    return facts


def intake_door(*, credential: Credential, workflow_slug: str, contract_version: str) -> IntakeFacts:
    """The same door for a credential that is known already."""
    facts = intake_facts(organization=credential.organization, slug=workflow_slug, version=contract_version)
    return intake_pass(credential=credential, facts=facts)
