"""The authority act about the clock: how often a built-in scheduled task runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.authority.hooks import Applied, Prepared
from governance.authority.models import AuthorityChange
from governance.authority.services.shapes import only
from governance.schedule.selectors import intervals_in_force
from governance.schedule.services import schedule_change, schedule_check
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import WrongState


@dataclass(frozen=True, slots=True)
class ScheduleChangeAct:
    """`subject`: the name of the built-in task. `details`: `seconds`. Nothing else about a task can be changed."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, "seconds")
        seconds = details.get("seconds")
        one = schedule_check(name=subject, seconds=seconds, name_pointer="/subject", seconds_pointer="/details/seconds")
        before = intervals_in_force()[subject]
        if before == seconds:
            raise WrongState("The task runs at this interval already.")
        shown = {"task": subject, "does": one.words}
        return Prepared(
            subject,
            {"seconds": seconds},
            before={**shown, "seconds": before},
            after={**shown, "seconds": seconds},
            # What runs less often ends things later.
            loosens=int(seconds or 0) > before,
        )

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        # The core has checked that both people may do this for the installation.
        made = schedule_change(
            actor=actor, at=at, name=change.subject, seconds=change.details["seconds"], installation=True
        )
        return Applied({"schedule_change": str(made.id)}, made=made)
