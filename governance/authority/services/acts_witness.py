"""The authority act about witnesses. They are named in the environment; two people confirm which ones the installation
relies on, and every process compares."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.authority.errors import ProposalOutdated
from governance.authority.hooks import Applied, Prepared
from governance.authority.models import AuthorityChange
from governance.authority.selectors import authority_in_force
from governance.authority.services.shapes import only
from governance.sealing.configured import witness_digests
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor

SUBJECT = "witnesses"


@dataclass(frozen=True, slots=True)
class WitnessChange:
    """No details: what is confirmed is what the environment of this process names now."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details)
        now = witness_digests()
        before = authority_in_force(organization_id=organization.id, kind="witness.change") or {"witnesses": {}}
        gone = set(before["witnesses"]) - set(now)
        return Prepared(
            SUBJECT,
            {"witnesses": now},
            before={"witnesses": sorted(before["witnesses"])},
            after={"witnesses": sorted(now), "removed": sorted(gone)},
            loosens=bool(gone) or not now,
        )

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        if change.details["witnesses"] != witness_digests():
            raise ProposalOutdated("The environment names other witnesses now.")
        return Applied({"witnesses": sorted(change.details["witnesses"])})
