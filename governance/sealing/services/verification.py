"""A check of the whole record that somebody starts in the console: a worker does it, a row shows its progress."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.ledger.services import actor_reference
from governance.outside.wake_up import wake_up
from governance.sealing.models import LedgerVerification
from governance.sealing.services.verify import Progress
from reasoncodes.base.actors import Actor

# A check that has not reported progress for this long counts as stopped, and a new one may start.
PATIENCE = timedelta(minutes=2)
TASK = "governance.tasks.ledger_verify"
# Checks everything, reports progress, and returns what is stored and shown.
Check = Callable[[Progress], dict[str, Any]]


def verification_ask(*, actor: Actor, at: datetime) -> LedgerVerification:
    """Start a check, or return the one that is running. One that stopped reporting does not count."""
    with transaction.atomic():
        waiting = LedgerVerification.objects.select_for_update().filter(finished_at=None, touched_at__gt=at - PATIENCE)
        found = waiting.first()
        if found is None:
            who = actor_reference(actor)
            found = LedgerVerification.objects.create(asked_by_ref=who, asked_at=at, touched_at=at)
            wake_up(TASK, found.id)
        return found


def verification_work(*, verification_id: UUID, now: Callable[[], datetime], check: Check) -> None:
    """Do the check. Safe to run twice, because it only reads the record."""
    # In one process, unlike `verify_ledger`: the machine's other cores stay free for other work.
    rows = LedgerVerification.objects.filter(id=verification_id, finished_at=None)
    if not rows.exists():
        return

    def progress(done: int, total: int) -> None:
        rows.update(done=done, total=total, touched_at=now())

    found = check(progress)
    rows.update(found=found, done=found["entries"], total=found["entries"], touched_at=now(), finished_at=now())
