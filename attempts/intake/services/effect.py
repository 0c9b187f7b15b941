"""The identity of a side effect: asked for twice under two keys, it is recognised (S3 4.1: a key names the effect)."""

from dataclasses import dataclass
from datetime import timedelta

from attempts.intake.models import EffectAsk
from attempts.intake.services.door import CheckedIntake
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.states import AttemptState, RuntimeMode
from governance.ledger.rules.entry import canonical_sha256
from governance.sql.statements import fetch, new_row
from reasoncodes.base.ids import uuid7

# Waits: of two requests for the same effect the second must know of the first. Nothing that is locked after it waits.
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
# A denied attempt had no effect, so it does not count. The number goes on, so that it stays unique.
LOOK_UP = f"""
SELECT count(*) FILTER (WHERE t.state <> '{AttemptState.PREFLIGHT_DENIED.value}' AND a.at > $3),
    coalesce(max(a.number), 0)
FROM attempts_effectask a JOIN attempts_attempt t ON t.id = a.attempt_id
WHERE a.organization_id = $1 AND a.effect_sha256 = $2
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Asked:
    """How often the effect was asked for under other keys while they are remembered, and the number of this time."""

    effect: str
    before: int
    number: int

    @property
    def fact(self) -> dict[str, int]:
        return {"asked_before": self.before}


def effect_of(asked: CheckedIntake) -> str:
    """The identity of what is asked for; empty if the contract does not ask for it."""
    intake = asked.intake
    if "effect_identity" not in asked.documents["idempotency_key_policy"]:
        return ""
    # A shadow has no effect. A person who authorized a retry or a compensation knows that it is the second time.
    if intake.body.get("runtime_mode") == RuntimeMode.SHADOW or intake.authorized_by:
        return ""
    action = intake.body["action"]
    parts = {name: action.get(name, "") for name in ("operation", "target_ref", "payload_sha256")}
    connector = action.get("connector", intake.facts.contract.adapter)
    organization = str(intake.credential.organization.id)
    return canonical_sha256({"organization": organization, "connector": connector, **parts})


def effect_look_up(asked: CheckedIntake, effect: str) -> Asked:
    """Locks the effect until the end of the transaction, then counts who asked for it."""
    # Two statements: one that locks and reads would see the rows of the moment before it had the lock.
    organization = asked.intake.credential.organization.id
    fetch(LOCK, (f"effect {organization} {effect}",))
    since = asked.intake.at - timedelta(seconds=asked.key_policy["ttl_seconds"])
    ((before, number),) = fetch(LOOK_UP, (organization, effect, since))
    return Asked(effect, before, number + 1)


def effect_ask_build(attempt: Attempt, found: Asked | None) -> EffectAsk | None:
    """The row, unless nothing is recognised or the attempt was denied for another reason."""
    denied = attempt.state == AttemptState.PREFLIGHT_DENIED and attempt.reason_code != "effect_repeated"
    if found is None or denied:
        return None
    return new_row(
        EffectAsk,
        id=uuid7(),
        organization_id=attempt.organization_id,
        effect_sha256=found.effect,
        number=found.number,
        attempt_id=attempt.id,
        at=attempt.created_at,
    )
