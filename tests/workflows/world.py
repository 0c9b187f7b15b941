"""A clinic whose runs can be begun in the past, answered at any moment, judged by people and looked at afterwards."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db.models import F
from django.utils import timezone

from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.dispatch import attempt_dispatch
from attempts.lifecycle.models import Attempt
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from attempts.reviews.services.decide import review_vote
from attempts.reviews.services.human_review import human_review_decide
from attempts.reviews.states import VoteVerdict
from governance.ledger.models import LedgerEntry
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.tenancy import every_tenant
from tests.workflows.running import ANSWERS, REGION, Running
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.events.models import OutboxEvent, WorkflowEvent
from workflows.events.services.receive import Received
from workflows.runs.models import Nudge, WorkflowInstance, WorkflowStep
from workflows.runs.services import clock as timing
from workflows.runs.services.dispatch import instances_dispatch
from workflows.runs.services.intervene import InterventionOrder, instance_intervene
from workflows.runs.services.replay import instance_replay
from workflows.runs.services.signal_follow import signal_follow
from workflows.runs.states import InterventionAction

FAILED = {"reason_code": "image_quality", "retryable": True}
BRIEF = {"name": "Brief", "start_step": "ai_review"}
DONE = {"done": {"kind": "emit_final", "transitions": {"on_complete": "TERMINAL"}}}
STOP = {"stop": {"kind": "halt", "params": {"reason_code": "ai_review_failed"}}}


def brief(**fields: Any) -> dict[str, Any]:
    """Only an AI review, which is governed, and the end."""
    work = {"kind": "run_ai_review", "transitions": {"on_complete": "done", "on_failure": "stop"}} | fields
    return BRIEF | {"steps": {"ai_review": work} | DONE | STOP}


def people(**fields: Any) -> dict[str, Any]:
    """Only a person's judgement, and the end."""
    work = {"kind": "request_human_review", "params": {"tier": "customer_clinician"}}
    work |= {"transitions": {"on_complete": "done"}} | fields
    return {"name": "People", "start_step": "judge", "steps": {"judge": work} | DONE}


def changed(name: str, **steps: dict[str, Any]) -> dict[str, Any]:
    """A starter with fields of its steps changed."""
    document = definition_starter(name)
    for step_id, fields in steps.items():
        document["steps"][step_id] |= fields
    return document


def ago(seconds: float) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)


class World(Running):
    """Everything through the services; `at` is when it happens, and may lie in the past."""

    def current(self, instance: WorkflowInstance) -> Any:
        """The open step; None when there is none, which is an error of the test that asks for more."""
        return super().current(instance)

    def tell(self, instance: WorkflowInstance, name: str, payload: Any, **changes: Any) -> Received:
        at = changes.pop("at", None)
        step = self.current(instance)
        given = {"correlation_id": step.id if step else uuid4()} | changes
        return self.send(self.envelope(name, payload, case_id=instance.case_id, **given), at=at)

    def complete(
        self, instance: WorkflowInstance, *, at: datetime | None = None, of: UUID | None = None, **changes: Any
    ) -> Received:
        """The module of the step that is under way answers, or says so of the try `of`."""
        sent = [row for row in self.requests(instance) if row.event_type in ANSWERS]
        name, payload = ANSWERS[sent[-1].event_type]
        return self.tell(instance, name, payload | changes, at=at, **({"correlation_id": of} if of else {}))

    def fail(self, instance: WorkflowInstance, *, at: datetime | None = None, **changes: Any) -> Received:
        return self.tell(instance, "ai_review.failed", FAILED | changes, at=at)

    def ready(self) -> "World":
        """Whoever threads share is made now, and once."""
        for one in (self.module, self.operator, self.person()):
            assert one.id
        return self

    # People

    @property
    def operator(self) -> Actor:
        return self.cast.actor(self.cast.operator, [self.organization])

    def person(self, tier: str = "customer_clinician", name: str = "rita") -> Actor:
        return self.cast.actor(self.cast.person(name, f"reviewer:{tier}"), [self.organization])

    def review(self, instance: WorkflowInstance) -> Review:
        """The open one: of the step itself, or of the attempt behind it."""
        with every_tenant():
            step = self.current(instance)
            assert step is not None
            own = Review.objects.filter(origin_step=step.id, status="requested").first()
            return own or Review.objects.get(attempt_id=step.governed_attempt, status="requested")

    def judge(self, instance: WorkflowInstance, verdict: str = "confirm", **changes: Any) -> None:
        """On a human-review step; what follows comes by `follow`."""
        review = self.review(instance)
        actor = changes.pop("actor", None) or self.person(review.tier, changes.pop("name", "rita"))
        with every_tenant():
            human_review_decide(
                actor=actor,
                at=timezone.now(),
                review_id=review.id,
                verdict=VoteVerdict(verdict),
                action_digest=review.action_digest,
                **changes,
            )

    def vote(self, instance: WorkflowInstance, verdict: str = "approve", **changes: Any) -> UUID:
        """On a held step; its attempt."""
        review = self.review(instance)
        with every_tenant():
            review_vote(
                actor=changes.pop("actor", None) or self.person(),
                at=timezone.now(),
                review_id=review.id,
                verdict=VoteVerdict(verdict),
                action_digest=review.action_digest,
                **changes,
            )
        assert review.attempt_id is not None
        return review.attempt_id

    def intervene(self, instance: WorkflowInstance, action: str, reason_code: str = "planned_maintenance") -> None:
        order = InterventionOrder(InterventionAction(action), reason_code)
        with every_tenant():
            instance_intervene(
                instance_id=instance.id, order=order, actor=self.operator, at=timezone.now(), region=REGION
            )

    # Worker and clock

    @staticmethod
    def follow() -> int:
        """The doorbells of all nudges are heard."""
        with every_tenant():
            ids = list(Nudge.objects.order_by("id").values_list("id", flat=True))
            return sum(signal_follow(signal_id=one, at=timezone.now(), region=REGION) for one in ids)

    @staticmethod
    def dispatch(attempt_id: UUID | None) -> None:
        """The worker hears the attempt's doorbell."""
        assert attempt_id is not None
        attempt_dispatch(attempt_id=attempt_id, now=timezone.now)

    @staticmethod
    def published(*, at: datetime | None = None) -> None:
        """What is not published yet was so then; else when it was written, as if the relay had been as fast."""
        with every_tenant():
            OutboxEvent.objects.filter(sent_at=None).update(sent_at=at or F("created_at"))

    @classmethod
    def tick(cls, name: str, *, at: datetime | None = None, published: bool = True) -> int:
        if published:
            cls.published()
        work: Callable[..., int] = instances_dispatch if name == "instances_dispatch" else getattr(timing, name)
        with every_tenant():
            return work(at=at or timezone.now(), region=REGION)

    def caps(self, **fields: int) -> None:
        with every_tenant():
            Organization.objects.filter(id=self.organization.id).update(**fields)

    # What is on record

    def sent(self, instance: WorkflowInstance) -> list[str]:
        """The names of what went out, without the lifecycle."""
        rows = [row.event_type for row in self.requests(instance)]
        return [name for name in rows if name not in LIFECYCLE]

    def steps(self, instance: WorkflowInstance) -> list[tuple[str, str]]:
        with every_tenant():
            rows = WorkflowStep.objects.filter(instance=instance).order_by("number")
            return list(rows.values_list("step_id", "state"))

    def log(self, instance: WorkflowInstance) -> list[tuple[str, str]]:
        with every_tenant():
            rows = WorkflowEvent.objects.filter(instance=instance).order_by("number")
            return list(rows.values_list("event_type", "outcome"))

    def halted(self, instance: WorkflowInstance) -> str:
        """With what reason, if it is."""
        found = self.fresh(instance)
        return found.halt_reason if found.state == "halted" else f"it is {found.state}"

    def ledger(self, instance: WorkflowInstance) -> list[LedgerEntry]:
        with every_tenant():
            rows = LedgerEntry.objects.filter(subject_type="workflow_instance", subject_id=instance.id)
            return list(rows.order_by("id"))


LIFECYCLE = {f"workflow.{word}" for word in ("started", "halted", "completed", "cancelled", "intervened")}


def check_record(world: World, instance: WorkflowInstance) -> None:
    """Replay agrees; the ledger has every input that advanced; nothing that was sent hangs in the air."""
    with every_tenant():
        assert instance_replay(instance=world.fresh(instance)).differences == []
        rows = WorkflowEvent.objects.filter(instance=instance, outcome="advanced").order_by("number")
        entries = [one for one in world.ledger(instance) if "number" in one.payload]
        assert [one.payload["number"] for one in entries] == list(rows.values_list("number", flat=True))
        halts = [one for one in entries if one.payload["status"] == "halted"]
        assert all(one.reason_code for one in halts)
        sent = world.requests(instance)
        assert [row.number for row in sent] == list(range(1, world.fresh(instance).emitted + 1))
        attempts = WorkflowStep.objects.filter(instance=instance, governed_attempt__isnull=False)
        for attempt in Attempt.objects.filter(id__in=attempts.values("governed_attempt")):
            check_attempt(attempt, ended=world.fresh(instance).state in {"completed", "cancelled", "halted"})


def check_attempt(attempt: Attempt, *, ended: bool) -> None:
    """Law 4: an intent has its receipt, or a person is asked what became of it."""
    if ended:
        assert attempt.state in {"completed", "failed-quarantined", "preflight-denied"}, attempt.state
    answered = set(Receipt.objects.filter(attempt=attempt).values_list("intent_id", flat=True))
    open_intents = DispatchIntent.objects.filter(attempt=attempt).exclude(id__in=answered).count()
    if attempt.state == "failed-quarantined":
        assert QuarantineCase.objects.filter(attempt=attempt).count() == 1
    elif ended:
        assert open_intents == 0
