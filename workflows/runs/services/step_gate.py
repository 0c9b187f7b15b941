"""The gate of a step's request. A governed step opens an attempt; any other request needs an open contract too."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from attempts.execution.services.recheck import Go
from attempts.intake.services.door import intake_pass_ours
from attempts.steps.services.open import attempt_open
from attempts.steps.services.settle import New, step_dispatch
from governance.enforcement.selectors.arrival import OwnArrival
from governance.ledger.rules.entry import canonical_sha256
from governance.sql.insert import Pending
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import AttemptCreationDisabled
from reasoncodes.base.trace import trace_or_new
from workflows.engine.effects import AskGate
from workflows.engine.inputs import GateAnswered
from workflows.engine.state import InstanceState
from workflows.kinds.registry import kind
from workflows.runs.models import WorkflowInstance

# Refusals that end without a person. Nothing was sent, so asking again repeats no effect.
PASSING = frozenset({"rate_limited", "concurrency_limit", "throttle_unavailable"})
VERDICTS = {"allow": "allow", "needs_approval": "hold", "deny": "deny"}


@dataclass(slots=True)
class StepGate:
    """The gate for one advance of one run. It keeps every answer, because the log stores them for replay."""

    instance: WorkflowInstance
    at: datetime
    region: str
    arrival: OwnArrival | None = None  # what intake would check about the contract, if it was read with the lock
    earlier: dict[str, UUID] = field(default_factory=dict)  # step id: the attempt of its last try
    attempts: dict[UUID, UUID] = field(default_factory=dict)  # step row: the attempt behind it
    answers: list[GateAnswered] = field(default_factory=list)
    pending: Pending = field(default_factory=Pending)  # what this advance writes, the attempts' rows among it
    opened: dict[UUID, New] = field(default_factory=dict)  # attempts that are still in there
    sent: int = 0

    @property
    def contract_id(self) -> UUID:
        if self.instance.contract_id is None:
            raise AttemptCreationDisabled
        return self.instance.contract_id

    def __call__(self, ask: AskGate, state: InstanceState) -> GateAnswered:
        if self.instance.contract_id is None:
            answer = self._answer(ask, "deny", "attempt_creation_disabled")
        elif not ask.governed:
            answer = self._plain(ask)
        elif ask.again and ask.step_id in self.earlier:
            answer = self._again(ask, self.earlier[ask.step_id])
        else:
            answer = self._open(ask, state)
        self.answers.append(answer)
        return answer

    def _plain(self, ask: AskGate) -> GateAnswered:
        """A read or a check: no attempt, but refused while the contract is closed or a shutdown covers it."""
        # The transaction took the send lock before it read the contract, so no shutdown can come between this and the
        # commit.
        try:
            intake_pass_ours(contract_id=self.contract_id, arrival=self.arrival)
        except AttemptCreationDisabled as refusal:
            return self._answer(ask, "deny", refusal.reason_code or "attempt_creation_disabled")
        return self._answer(ask, "allow")

    def _again(self, ask: AskGate, attempt_id: UUID) -> GateAnswered:
        """A retry of a request that was sent before: the same attempt, one more write."""
        self.attempts[ask.step] = attempt_id
        if self._has_written_enough():
            return self._answer(ask, "deny", "write_cap_reached")
        return self._dispatch(ask, attempt_id)

    def _has_written_enough(self) -> bool:
        return self.instance.writes + self.sent >= self.instance.organization.max_writes_per_run

    def _open(self, ask: AskGate, state: InstanceState) -> GateAnswered:
        if self._has_written_enough():
            return self._answer(ask, "deny", "write_cap_reached")
        opened = attempt_open(
            contract_id=self.contract_id,
            actor=SYSTEM,
            at=self.at,
            action={
                "operation": ask.event_type,
                "target_ref": f"case/{self.instance.case_id}",
                "payload_ref": f"workflow-instance/{self.instance.id}",
                "payload_sha256": canonical_sha256(ask.payload),
                "risk_tier": self.instance.contract.risk_tier if self.instance.contract else "high",
                "fields": [],
            },
            metadata={"step_id": ask.step_id, "step_kind": ask.kind},
            context_ref=f"case/{self.instance.case_id}",
            idempotency_key=str(ask.step),
            origin_step=ask.step,
            trace=trace_or_new(),
            deployment_region=self.region,
            pending=self.pending,
            keeps=not _ends_at_once(ask.kind),
            arrival=self.arrival,
        )
        if opened.attempt is not None:
            self.attempts[ask.step] = opened.attempt.id
        if opened.attempt is not None and opened.intent is not None:
            self.opened[opened.attempt.id] = (opened.attempt, opened.intent)
            self.sent += 1
            return self._answer(ask, "allow")
        if opened.verdict == "allow" and opened.attempt is not None:
            if opened.attempt.queued_until is not None:
                return self._answer(ask, "hold", "concurrency_limit")
            return self._dispatch(ask, opened.attempt.id)
        if opened.verdict == "deny" and opened.reason_code in PASSING:
            return self._answer(ask, "later", opened.reason_code, opened.retry_after or 0)
        return self._answer(ask, VERDICTS[opened.verdict], opened.reason_code)

    def _dispatch(self, ask: AskGate, attempt_id: UUID) -> GateAnswered:
        """Lease the attempt and write its intent, in the transaction that writes the outbox row."""
        self.attempts[ask.step] = attempt_id
        leases = step_dispatch(attempt_id=attempt_id, actor=SYSTEM, at=self.at)
        if not leases.granted and not leases.refused:
            # The attempt's due time may still be ahead: a person wants the retry now, or another machine's clock set
            # it.
            leases = step_dispatch(attempt_id=attempt_id, actor=SYSTEM, at=self.at, hasten=True)
        if leases.granted:
            self.sent += 1
            return self._answer(ask, "allow")
        if not leases.refused:  # the attempt has ended without the engine: nobody knows whether it had its effect
            return self._answer(ask, "deny", "outcome_unknown")
        _, checked = leases.refused[0]
        verdict = "later" if checked.go is Go.HOLD and checked.reason_code in PASSING else "deny"
        return self._answer(ask, verdict, checked.reason_code or "outcome_unknown")

    def _answer(self, ask: AskGate, verdict: str, reason_code: str = "", retry_after: int = 0) -> GateAnswered:
        return GateAnswered(self.at, ask.step, verdict, reason_code, retry_after)


def _ends_at_once(name: str) -> bool:
    """No answer is awaited: the attempt is opened and completed in one transaction."""
    known = kind(name)
    return known is not None and (known.completion is None or known.instant is not None)
