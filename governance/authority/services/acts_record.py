"""The authority act that ends deny mode after a fault of the record: two people have looked at it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.authority.errors import ProposalOutdated
from governance.authority.hooks import Applied, Prepared
from governance.authority.models import AuthorityChange
from governance.authority.services.shapes import only
from governance.integrity.selectors.standing import faults_open
from governance.integrity.services.faults import faults_accept
from governance.ledger.services import actor_reference
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import WrongState
from reasoncodes.base.tenancy import every_tenant

SUBJECT = "record"
# Faults that one proposal names. More are accepted by the next one.
MOST = 200


@dataclass(frozen=True, slots=True)
class RecordAccept:
    """No details: what is accepted are the faults that are open when it is proposed. One that is found later stays."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details)
        with every_tenant():
            faults = list(faults_open()[:MOST])
        if not faults:
            raise WrongState("No fault of the record is open.")
        return Prepared(
            SUBJECT,
            {"faults": [str(fault.id) for fault in faults]},
            before={"faults": [f"{fault.table} {fault.row}: {fault.what}" for fault in faults]},
            after={"accepted": len(faults)},
            loosens=True,
        )

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        accepted = faults_accept(
            actor=actor,
            actor_ref=actor_reference(actor),
            at=at,
            fault_ids=[UUID(one) for one in change.details["faults"]],
            authority_change_id=change.id,
        )
        if not accepted:
            raise ProposalOutdated("These faults were accepted already.")
        return Applied({"faults": [str(one) for one in accepted]})
