"""Whether a request may come in at all: decided from address, headers and credential, before any byte of its body."""

from datetime import datetime
from uuid import UUID

from attempts.services.idempotency import KEY_RECORDS
from attempts.states import ENGINE
from governance.models import Organization
from governance.selectors import (
    Arrival,
    Credential,
    IntakeFacts,
    OwnArrival,
    intake_arrival,
    intake_facts,
    intake_own_arrival,
)
from governance.states import LEDGER_INCONSISTENT, ContractState
from reasoncodes.errors import AttemptCreationDisabled, CredentialMissing, ScopeMissing

SCOPE = "attempts:create"
STOPPED = {
    "shutdown_engaged": "A shutdown covers this contract.",
    LEDGER_INCONSISTENT: "The record does not fit what its witnesses hold; an administrator must confirm what is lost.",
}


def intake_knock(
    *, secret: str | None, workflow_slug: str, contract_version: str, key: str | None, at: datetime
) -> Arrival:
    """Who it is, what they ask for and what their key was used for, in one query; refuses whom it does not know."""
    asked = (key,) if key and key.isascii() and key.isprintable() else ()
    arrival = secret and intake_arrival(
        secret=secret,
        slug=workflow_slug,
        version=contract_version,
        at=at,
        also=KEY_RECORDS if asked else None,
        parameters=asked,
    )
    if not arrival:
        raise CredentialMissing
    return arrival


def intake_pass(*, credential: Credential, facts: IntakeFacts | None) -> IntakeFacts:
    """The open contract's facts; raises the refusal otherwise. Writes nothing."""
    if SCOPE not in credential.actor.scopes:
        raise ScopeMissing(extensions={"required_scope": SCOPE})
    return _open_only(facts)


def intake_pass_ours(*, contract_id: UUID, arrival: OwnArrival | None = None) -> None:
    """The same door for what the engine asks without an attempt: reads and checks. The caller has passed the gate, and
    hands over what it read behind it."""
    arrival = arrival or intake_own_arrival(contract_id=contract_id, account_slug=ENGINE)
    if arrival is None or arrival.organization.status != Organization.Status.ACTIVE:
        raise AttemptCreationDisabled
    _open_only(arrival.facts)


def _open_only(facts: IntakeFacts | None) -> IntakeFacts:
    if facts is None or facts.contract.state != ContractState.OPEN:
        raise AttemptCreationDisabled
    if facts.shutdowns and (reason := facts.stopped_by):
        raise AttemptCreationDisabled(STOPPED[reason], reason_code=reason)
    return facts


def intake_door(*, credential: Credential, workflow_slug: str, contract_version: str) -> IntakeFacts:
    """The same door for a credential that is known already."""
    facts = intake_facts(organization=credential.organization, slug=workflow_slug, version=contract_version)
    return intake_pass(credential=credential, facts=facts)
