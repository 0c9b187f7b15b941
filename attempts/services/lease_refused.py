"""A lease that the recheck refused: undone in the same transaction, so that nobody ever saw it."""

from datetime import datetime

from django.db import connection

from attempts.models import Attempt, Receipt
from attempts.services.quarantine_open import category_for, documents_of, quarantine_open
from attempts.services.recheck import Go, Recheck
from attempts.services.transition import transition_apply
from attempts.states import QuarantineCategory, ReceiptOutcome
from governance.insert import insert_together
from reasoncodes.actors import Actor

LOOK_AGAIN_SECONDS = 15


def refusal_apply(attempt: Attempt, checked: Recheck, *, actor: Actor, at: datetime, tell: bool) -> None:
    """`attempt` is locked and leased by this transaction. HOLD writes no record: nothing has changed. `tell` is
    `transition_apply`'s."""
    _undo(attempt)
    match checked.go:
        case Go.DONE if checked.receipt is not None:
            _complete_from(attempt, checked.receipt, actor=actor, at=at, tell=tell)
        case Go.DENY if attempt.tries == 0:
            transition_apply(attempt, "deny", actor=actor, at=at, tell=tell, reason_code=checked.reason_code)
        case Go.DENY:
            _set_apart(attempt, checked, actor=actor, at=at, tell=tell)
        case Go.UNRESOLVED:
            quarantine_open(
                attempt,
                actor=actor,
                at=at,
                category=QuarantineCategory.OUTCOME_UNKNOWN,
                reason_code="outcome_unknown",
                payload={"trigger": "intent_without_receipt"},
                tell=tell,
            )
        case _:
            pass


def _undo(attempt: Attempt) -> None:
    """As if it had not been: nobody has seen it. What is held back is looked at again a little later, so that it does
    not stand in the way of what is not."""
    attempt.tries -= 1
    attempt.lease_token -= 1
    attempt.lease_owner, attempt.lease_expires_at = "", None
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE attempts_attempt SET tries = tries - 1, lease_token = lease_token - 1, lease_owner = '',"
            " lease_expires_at = NULL, next_eligible_at = statement_timestamp() + make_interval(secs => %s)"
            " WHERE id = %s",
            [LOOK_AGAIN_SECONDS, attempt.id],
        )


def _complete_from(attempt: Attempt, earlier: Receipt, *, actor: Actor, at: datetime, tell: bool) -> None:
    """It has happened already: the earlier result is this attempt's result, and nothing is sent."""
    receipt = Receipt(
        attempt=attempt,
        outcome=ReceiptOutcome.SUCCESS,
        response_metadata=earlier.response_metadata,
        reversible=earlier.reversible,
        reversal_hint=earlier.reversal_hint,
        at=at,
    )
    insert_together([receipt])
    payload = {"receipt": str(receipt.id), "cached_from": str(earlier.id)}
    transition_apply(attempt, "complete", actor=actor, at=at, tell=tell, payload=payload)


def _set_apart(attempt: Attempt, checked: Recheck, *, actor: Actor, at: datetime, tell: bool) -> None:
    """It ran before and may not run again: denial is for what never ran."""
    quarantine_open(
        attempt,
        actor=actor,
        at=at,
        category=category_for(documents_of(attempt), "recheck_refused_after_lease"),
        reason_code="adapter_failed",
        payload={"trigger": "recheck_refused_after_lease", "refused": checked.reason_code},
        tell=tell,
    )
