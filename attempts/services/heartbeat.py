"""Extends a lease that is alive. It is no change of the record: nothing is written beside the new end."""

from datetime import datetime, timedelta

from django.db import transaction

from attempts.models import Attempt
from attempts.services.held import Report, held_lock, lease_lost
from attempts.services.lease import LEASE_SECONDS
from governance.services.violation import violations_recorded
from reasoncodes.actors import Actor


@violations_recorded
def attempt_heartbeat(*, actor: Actor, at: datetime, report: Report) -> Attempt:
    with transaction.atomic():
        held = held_lock(report=report)
        if held.holds:
            held.attempt.lease_expires_at = held.now + timedelta(seconds=LEASE_SECONDS)
            held.attempt.save(update_fields=["lease_expires_at"])
            return held.attempt
    raise lease_lost(held)
