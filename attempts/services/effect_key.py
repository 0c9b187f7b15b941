"""The key that the receiver deduplicates on, and what is already known to have happened under it."""

from dataclasses import dataclass
from uuid import UUID

from attempts.models import Attempt, Receipt
from attempts.states import AttemptState, ReceiptOutcome

LONGEST_CHAIN = 50


@dataclass(frozen=True, slots=True)
class EffectChain:
    """An attempt and those that it tries again. All of them are the same side effect, so they share one key."""

    attempt_ids: tuple[UUID, ...]

    @property
    def key(self) -> str:
        return f"hp-{self.attempt_ids[-1]}"


def effect_chain(attempt: Attempt) -> EffectChain:
    """Through `retry_of`, while the earlier one failed: a replay of what completed or was denied is a new effect."""
    ids, earlier_id = [attempt.id], attempt.retry_of_id
    while earlier_id is not None and len(ids) < LONGEST_CHAIN:
        earlier = Attempt.objects.filter(id=earlier_id).values_list("state", "retry_of_id").first()
        if earlier is None or earlier[0] != AttemptState.QUARANTINED:
            break
        ids.append(earlier_id)
        earlier_id = earlier[1]
    return EffectChain(tuple(ids))


def success_already(*, chain: EffectChain) -> Receipt | None:
    """Late evidence counts too: whoever sent it had a lease, and acting twice is worse than not acting."""
    rows = Receipt.objects.filter(attempt_id__in=chain.attempt_ids, outcome=ReceiptOutcome.SUCCESS)
    return rows.order_by("id").first()
