"""A new attempt that follows an old one: a replay, an authorized retry, a compensation. Through the same gates."""

from dataclasses import replace
from typing import Any

from attempts.errors import NotEligible
from attempts.models import Attempt
from attempts.services.intake import attempt_create
from attempts.services.intake_door import Intake
from attempts.services.intake_rows import Answer
from governance.selectors import snapshot_load


def attempt_replay(*, attempt: Attempt, intake: Intake) -> Answer:
    """Where the contract's replay policy allows it, by the service that asked first. `intake` carries the new key."""
    rules = snapshot_load(intake.facts.contract.snapshot_sha256)["documents"]["retry_and_replay"]["replay"]
    if attempt.caller_id != intake.credential.actor.id:
        raise NotEligible("Only the service that asked first may ask again.")
    if attempt.state not in rules["eligible_states"]:
        raise NotEligible(f"The contract allows a replay from: {', '.join(rules['eligible_states']) or 'no state'}.")
    if attempt.erased_at is not None:
        raise NotEligible("The request was erased by order, so it cannot be repeated.")
    if attempt.operation == "":
        raise NotEligible("Parts of the request were withheld by the boundary, so it cannot be repeated.")
    return attempt_create(intake=replace(intake, body=body_of(attempt), retry_of=attempt.id))


def body_of(attempt: Attempt) -> dict[str, Any]:
    """The request again, from what was stored of it."""
    action: dict[str, Any] = {
        "connector": attempt.connector,
        "operation": attempt.operation,
        "target_ref": attempt.target_ref,
        "risk_tier": attempt.risk_tier,
        "fields": attempt.fields,
    }
    action |= {"payload_ref": attempt.payload_ref} if attempt.payload_ref else {}
    action |= {"payload_sha256": attempt.payload_sha256} if attempt.payload_sha256 else {}
    body = {"runtime_mode": attempt.runtime_mode, "action": action, "metadata": attempt.metadata}
    return body | ({"patient_context_ref": attempt.patient_context_ref} if attempt.patient_context_ref else {})
