"""One clinic for all sentences of a source: contracts of every kind, and what became of a few requests. Made once for a
module; a test looks at it, or makes one more request in its own savepoint."""

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from django.utils import timezone

from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.lease_expire import leases_expire
from attempts.execution.services.outcome import retries_due
from attempts.execution.services.queue import queue_dispatch
from attempts.lifecycle.models import Attempt, AttemptTransition
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.services.resolve import quarantine_escalate_due
from attempts.reviews.models import Review
from attempts.reviews.services.clock import reviews_expire, reviews_remind
from governance.contracts.models import Contract
from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import documents
from tests.cast import Cast
from tests.governed import ALLOW, DENY, HOLD, open_contract

REFUND = {"tier": "customer_clinician", "expires_in_seconds": 3600, "approvals_required": 1}
BY_NAME = [
    {"id": "stop", "when": 'action.operation == "case.delete"', "verdict": "deny", "reason_code": "policy_denied"},
    {"id": "look", "when": 'action.operation == "case.refund"', "verdict": "needs_approval"} | REFUND,
    {"id": "rest", "when": 'action.operation == "case.close"', "verdict": "allow"},
]


@dataclass
class Story:
    """`ask` sends a request; everything else says what is on record of it."""

    cast: Cast
    contracts: dict[str, Contract] = field(default_factory=dict)
    number: int = 0

    def tell(self) -> "Story":
        with every_tenant():
            for name, rules in {"allow": ALLOW, "hold": HOLD, "deny": DENY, "named": BY_NAME}.items():
                self.contract(name, rules=rules)
        for made in (self.caller, self.executor, self.reviewer, self.operator):
            assert made is not None
        return self

    def contract(self, slug: str, *, rules: list[dict[str, Any]] | None = None, **kwargs: Any) -> Contract:
        """An open contract with a policy of its own. `changes`: of its documents."""
        changes = documents(**kwargs.pop("changes", {}))
        made = open_contract(
            self.cast, slug=slug, rules=rules or ALLOW, policy_slug=f"policy-{slug}", documents=changes, **kwargs
        )
        self.contracts[slug] = made
        return made

    # Who acts

    @cached_property
    def caller(self) -> Any:
        # Not the operator who resolves the cases: nobody authorizes what their own service does next.
        return self.cast.api("attempts:create", responsible=self.cast.auditor)

    @cached_property
    def executor(self) -> Any:
        return self.cast.api("attempts:execute")

    @cached_property
    def reviewer(self) -> Any:
        return self.cast.session(self.cast.reviewer)

    @cached_property
    def operator(self) -> Any:
        return self.cast.session(self.cast.operator)

    # What is asked

    def body(self, **changes: Any) -> dict[str, Any]:
        action = {
            "operation": "case.close",
            "target_ref": f"case-{self.number:04}",
            "risk_tier": "low",
            "payload_ref": f"payload-{self.number:04}",
            "payload_sha256": "ab" * 32,
            "fields": ["status"],
        } | changes.pop("action", {})
        about = {"patient_context_ref": f"ctx-{self.number:04}", "runtime_mode": "client_driven"}
        return about | {"action": action, "metadata": {}} | changes

    def ask(self, slug: str = "allow", *, key: str | None = "", client: Any = None, **changes: Any) -> Any:
        """A new key and a new body unless they are given; `key=None` sends none."""
        self.number += 1
        headers = changes.pop("headers", {})
        payload = changes.pop("payload", None)
        if payload is None:
            payload = self.body(**changes)
        if key is not None:
            headers = headers | {"HTTP_IDEMPOTENCY_KEY": key or f"key-{self.number:08}"}
        url = f"/api/v1/execution/{slug}/1/attempts"
        return (client or self.caller).post(url, payload, format="json", **headers)

    def asked(self, slug: str = "allow", **changes: Any) -> UUID:
        answer = self.ask(slug, **changes)
        assert answer.status_code in {201, 202}, answer.content
        return UUID(answer.json()["id"])

    def decide(self, attempt_id: UUID, verb: str = "approve", *, client: Any = None, **more: Any) -> Any:
        review = self.review(attempt_id)
        fields = {"action_digest": review.action_digest} | more
        return (client or self.reviewer).post(f"/api/v1/reviews/{review.id}/{verb}", fields, format="json")

    def act(self, attempt_id: UUID, verb: str, *, client: Any = None, **fields: Any) -> Any:
        return (client or self.executor).post(f"/api/v1/attempts/{attempt_id}/{verb}", fields, format="json")

    def lease(self, attempt_id: UUID) -> str:
        answer = self.act(attempt_id, "lease")
        assert answer.status_code == 200, answer.content
        return str(answer.json()["lease_token"])

    def complete(self, attempt_id: UUID, **fields: Any) -> Any:
        given = {"response_metadata": {"reference": "r-1"}} | fields
        return self.act(attempt_id, "complete", lease_token=self.lease(attempt_id), **given)

    def fail(self, attempt_id: UUID, **fields: Any) -> Any:
        given = {"category": "adapter_failure", "retryable": False, "reason_code": "adapter_failed"} | fields
        return self.act(attempt_id, "fail", lease_token=self.lease(attempt_id), **given)

    def failed(self, slug: str = "allow") -> QuarantineCase:
        attempt_id = self.asked(slug)
        assert self.fail(attempt_id).status_code == 200
        with every_tenant():
            return QuarantineCase.objects.get(attempt_id=attempt_id)

    def case(self, case: QuarantineCase, verb: str, **fields: Any) -> Any:
        return self.operator.post(f"/api/v1/quarantine-cases/{case.id}/{verb}", fields, format="json")

    def replay(self, attempt_id: Any) -> Any:
        """Asked by the service that asked first."""
        self.number += 1
        url = f"/api/v1/attempts/{attempt_id}/replay"
        return self.caller.post(url, HTTP_IDEMPOTENCY_KEY=f"key-again-{self.number:08}")

    def ticks(self, *, later: timedelta = timedelta(0)) -> None:
        """What the clock does by itself with attempts, reviews and cases."""
        at = timezone.now() + later
        with every_tenant():
            retries_due()
            queue_dispatch()
            leases_expire()
            reviews_expire(at=at)
            reviews_remind(at=at)
            quarantine_escalate_due(at=at)

    # What is on record

    def follow_ups(self, case: QuarantineCase, how: str) -> list[UUID]:
        """Attempts that retry (`retry_of`) or compensate (`compensates`) the failed one."""
        with every_tenant():
            return list(Attempt.objects.filter(**{how: case.attempt_id}).values_list("id", flat=True))

    def attempt(self, attempt_id: Any) -> Attempt:
        with every_tenant():
            return Attempt.objects.get(id=attempt_id)

    def read(self, attempt_id: Any, what: str = "") -> Any:
        answer = self.caller.get(f"/api/v1/attempts/{attempt_id}" + (f"/{what}" if what else ""))
        assert answer.status_code == 200, answer.content
        return answer.json()

    def review(self, attempt_id: Any) -> Review:
        with every_tenant():
            return Review.objects.get(attempt_id=attempt_id)

    def decision(self, attempt_id: Any) -> EnforcementDecision:
        with every_tenant():
            return EnforcementDecision.objects.get(id=Attempt.objects.get(id=attempt_id).decision_id)

    def states(self, attempt_id: Any) -> list[str]:
        with every_tenant():
            rows = AttemptTransition.objects.filter(attempt_id=attempt_id).order_by("id")
            return list(rows.values_list("to_state", flat=True))

    def actions(self, subject: Any) -> list[str]:
        with every_tenant():
            rows = LedgerEntry.objects.filter(subject_id=subject).order_by("id")
            return [move.action for row in rows for move in row.moves]

    def receipts(self, attempt_id: Any) -> list[Receipt]:
        with every_tenant():
            return list(Receipt.objects.filter(attempt_id=attempt_id).order_by("id"))

    def intents(self, attempt_id: Any) -> int:
        with every_tenant():
            return DispatchIntent.objects.filter(attempt_id=attempt_id).count()

    @staticmethod
    def counts() -> tuple[int, int, int]:
        """Attempts, decisions, ledger entries."""
        with every_tenant():
            return Attempt.objects.count(), EnforcementDecision.objects.count(), LedgerEntry.objects.count()

    @staticmethod
    def kind(answer: Any) -> str:
        return str(answer.json()["type"]).rpartition("/")[2]

    @staticmethod
    def now() -> Any:
        return timezone.now()
