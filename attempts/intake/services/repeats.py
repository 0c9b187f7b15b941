"""The same request refused again by a full cap or throttle: counted on its first refusal, instead of stored again.

A caller that asks every few seconds would otherwise fill the record with decisions that say the same.
"""

from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from attempts.intake.models import RepeatedRefusal
from attempts.intake.rules import refusal_backoff
from attempts.intake.services.door import CheckedIntake
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.transition import entry_build
from governance.enforcement.services import Computed
from governance.ledger.models import LedgerEntry
from governance.sql.statements import fetch, new_row

# Refusals that end without a person: nothing was done, and asking again repeats no effect.
PASSING = frozenset({"rate_limited", "concurrency_limit", "throttle_unavailable"})
# One row per request and refusal; the row lock puts simultaneous repetitions in an order.
COUNT = """
UPDATE attempts_repeatedrefusal SET count = count + 1, last_at = greatest(last_at, $3)
WHERE organization_id = $1 AND subject = $2 RETURNING attempt_id, decision_id, count
"""


@dataclass(frozen=True, slots=True)
class Repeated:
    """The first refusal of this request, and how often it was asked again and refused, this time included."""

    attempt_id: UUID
    decision_id: UUID
    count: int

    def retry_after(self, base: int) -> int:
        return refusal_backoff(base, self.count, self.attempt_id)

    @property
    def is_told(self) -> bool:
        """Whether this repetition gets a ledger entry: the 2nd, 4th, 8th, … one. So the record knows how many there
        were, to a factor of two, with a few entries."""
        return self.count & (self.count - 1) == 0


def _counts(asked: CheckedIntake, computed: Computed) -> bool:
    # Without a key nobody can tell a repetition from another request that says the same.
    return bool(asked.key) and computed.decision.reason_code in PASSING


def subject_of(asked: CheckedIntake, computed: Computed) -> str:
    """The same request of the same caller, refused for the same reason by the same cap under the same rules."""
    intake, facts = asked.intake, computed.facts
    cap = facts["throttle"].get("exceeded") or facts["concurrency"].get("busy") or ""
    parts = (
        *(intake.facts.contract.id, intake.credential.actor.id, asked.scope, asked.key, asked.fingerprint.value),
        *(computed.decision.reason_code, cap, facts["policy_sha256"]),
    )
    return sha256("\n".join(map(str, parts)).encode()).hexdigest()


def refusal_repeated(asked: CheckedIntake, computed: Computed) -> Repeated | None:
    """Counts this refusal on an earlier one of the same request; None if it is the first."""
    if not _counts(asked, computed):
        return None
    organization_id = asked.intake.facts.contract.organization_id
    rows = fetch(COUNT, (organization_id, subject_of(asked, computed), asked.intake.at))
    return Repeated(*rows[0]) if rows else None


def refusal_first(asked: CheckedIntake, attempt: Attempt, computed: Computed) -> RepeatedRefusal | None:
    """The row on which repetitions of this refusal will be counted; None for a refusal that is final."""
    if not _counts(asked, computed):
        return None
    return new_row(
        RepeatedRefusal,
        attempt_id=attempt.id,
        decision_id=attempt.decision_id,
        organization_id=attempt.organization_id,
        subject=subject_of(asked, computed),
        first_at=asked.intake.at,
        last_at=asked.intake.at,
    )


def repeated_entry(asked: CheckedIntake, repeated: Repeated, *, reason_code: str) -> LedgerEntry:
    first = new_row(Attempt, id=repeated.attempt_id, organization_id=asked.intake.facts.contract.organization_id)
    return entry_build(
        first,
        "attempt.refused_again",
        actor=asked.intake.credential.actor,
        at=asked.intake.at,
        payload={"count": repeated.count},
        reason_code=reason_code,
    )
