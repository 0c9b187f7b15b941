"""Tasks of sealing, witnesses and verification; and `ledger_guard`, the check of the record against its witnesses that
every process makes before it works."""

from uuid import UUID

import structlog
from celery import shared_task
from django.utils import timezone

from governance.integrity.services.check import record_check
from governance.sealing.adapters.trouble import sealing_trouble_end, sealing_trouble_note
from governance.sealing.configured import known_keys, sealing_key, witnesses_configured
from governance.sealing.rules.signing import SealingStopped
from governance.sealing.selectors.witnesses import heads_due, ledger_denial
from governance.sealing.services import seal, verification
from governance.sealing.services.witnesses import divergence_guard, witness_push
from reasoncodes.base.tenancy import every_tenant

log = structlog.get_logger("holdpoint.ledger")


def ledger_guard() -> bool:
    """Whether work may go on: no witness keeps a signed head that the record does not continue."""
    with every_tenant():
        denied = divergence_guard(at=timezone.now(), witnesses=witnesses_configured(), keys=known_keys())
    return denied is None


@shared_task(name="governance.tasks.ledger_check")
def ledger_check_task() -> None:
    ledger_guard()


@shared_task(name="governance.tasks.ledger_seal")
def ledger_seal_task() -> None:
    """Seals what is due. Not in deny mode: that would sign a second history."""
    with every_tenant():
        if ledger_denial() is None:
            try:
                seal.ledger_seal_all(at=timezone.now(), key=sealing_key())
            # Nothing is lost: the entries wait, readiness says for how long and why, and the next tick tries again.
            except SealingStopped as stopped:
                log.error("sealing_stopped", code=stopped.code)
                sealing_trouble_note(code=stopped.code, at=timezone.now())
            else:
                sealing_trouble_end()


@shared_task(name="governance.tasks.witnesses_push")
def witnesses_push_task() -> None:
    """Sends new heads to every witness, after a comparison with what the witnesses keep."""
    # The comparison first: after a restore, a head of the new history must not become the newest one that a witness
    # keeps, because then the loss would no longer be noticed.
    due = [witness for witness in witnesses_configured() if heads_due(witness=witness.name, limit=1)]
    if due and ledger_guard():
        with every_tenant():
            for witness in due:
                witness_push(at=timezone.now(), witness=witness)


@shared_task(name="governance.tasks.ledger_verify")
def ledger_verify_task(verification_id: str) -> None:
    with every_tenant():
        verification.verification_work(
            verification_id=UUID(verification_id),
            now=timezone.now,
            check=lambda progress: record_check(
                full=True, at=timezone.now(), progress=progress, witnesses=witnesses_configured(), keys=known_keys()
            ).as_page(),
        )
