"""Set-up for runs: a published definition with an open contract, cases, and modules that answer."""

from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from governance.contracts.models import Contract
from governance.contracts.services.contracts import contract_open
from governance.contracts.states import ContractState
from governance.policies.models import Policy
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ProductFactory, ServiceAccountFactory
from tests.governed import approve, make_policy
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.definitions.services.contract import PublishTerms
from workflows.definitions.services.create import definition_create
from workflows.definitions.services.publish import definition_publish
from workflows.events.models import OutboxEvent
from workflows.events.services.receive import Received, event_receive
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.run import current_step

REGION = "US"
ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "consent.check.requested": ("consent.check.completed", {"granted": True, "missing_types": []}),
    "case.images_check.requested": (
        "case.images_check.completed",
        {"count": 3, "passed": True, "image_ids": [str(UUID(int=number)) for number in range(1, 4)]},
    ),
    "ai_review.requested": (
        "ai_review.completed",
        {"confidence": 0.62, "diagnoses": [{"code": "L57.0"}], "raw_response_id": "resp-1"},
    ),
    "case.set_status.requested": ("case.set_status.completed", {"previous_status": "open", "new_status": "closed"}),
    "human_review.requested": ("human_review.completed", {"decision": "confirm", "reviewer_id": "rev-1"}),
}


class Running:
    """A clinic with one published definition: `start` begins a case, `answer` lets the current step's module reply."""

    def __init__(
        self,
        cast: Cast,
        document: dict[str, Any] | str = "ai_with_confidence_escalation",
        *,
        rules: list[dict[str, Any]] | None = None,
        opened: bool = True,
    ) -> None:
        self.cast = cast
        self.organization = cast.organization
        self.product = ProductFactory(organization=self.organization)
        self.rules = rules
        self.definition = self.publish(document, opened=opened)

    def publish(
        self, document: dict[str, Any] | str, *, opened: bool = True, slug: str = "derm", at: datetime | None = None
    ) -> WorkflowDefinition:
        operator = self.cast.actor(self.cast.operator, [self.organization])
        with every_tenant():
            if not Policy.objects.filter(organization=self.organization, slug="standard").exists():
                make_policy(self.cast, rules=self.rules)
            draft = definition_create(
                actor=operator,
                at=at or timezone.now(),
                organization=self.organization,
                document=definition_starter(document) if isinstance(document, str) else document,
                slug=slug,
                product_id=self.product.id,
            )
            published = definition_publish(
                actor=operator,
                at=at or timezone.now(),
                definition_id=draft.id,
                terms=PublishTerms(policy_slug="standard"),
            )
            if opened and Contract.objects.get(id=published.contract.id).state == ContractState.DRAFT:
                approve(self.cast, published.contract)
                contract_open(actor=operator, at=timezone.now(), contract_id=published.contract.id)
            return WorkflowDefinition.objects.get(id=draft.id)

    @cached_property
    def module(self) -> Actor:
        account = ServiceAccountFactory(organization=self.organization)
        return Actor(
            ActorKind.SERVICE, account.id, frozenset({self.organization.id}), frozenset({"orchestrator:write"})
        )

    def envelope(
        self, name: str, payload: dict[str, Any], *, case_id: UUID | str, correlation_id: Any = None, **changes: Any
    ) -> dict[str, Any]:
        return {
            "event_id": str(uuid4()),
            "event_type": name,
            "schema_version": "v1",
            "occurred_at": timezone.now().isoformat(),
            "correlation_id": str(correlation_id or uuid4()),
            "case_id": str(case_id),
            "org_id": str(self.organization.id),
            "product_id": str(self.product.id),
            "payload": payload,
        } | changes

    def send(self, envelope: dict[str, Any], *, at: datetime | None = None) -> Received:
        with every_tenant():
            return event_receive(envelope=envelope, actor=self.module, at=at or timezone.now(), region=REGION)

    def start(self, *, case_id: UUID | None = None, at: datetime | None = None, **payload: Any) -> WorkflowInstance:
        case = case_id or uuid4()
        self.send(self.envelope("case.created", {"patient_id": "pat-1"} | payload, case_id=case), at=at)
        return self.instance(case)

    def instance(self, case_id: UUID) -> WorkflowInstance:
        with every_tenant():
            return WorkflowInstance.objects.get(case_id=case_id, superseded_by=None)

    def fresh(self, instance: WorkflowInstance) -> WorkflowInstance:
        with every_tenant():
            return WorkflowInstance.objects.get(id=instance.id)

    def current(self, instance: WorkflowInstance) -> WorkflowStep | None:
        with every_tenant():
            return current_step(instance_id=instance.id)

    def requests(self, instance: WorkflowInstance) -> list[OutboxEvent]:
        with every_tenant():
            return list(OutboxEvent.objects.filter(instance=instance).order_by("number"))

    def report(
        self, instance: WorkflowInstance, name: str, payload: dict[str, Any], *, correlation_id: Any = None
    ) -> Received:
        step = self.current(instance)
        return self.send(
            self.envelope(
                name,
                payload,
                case_id=instance.case_id,
                correlation_id=correlation_id or (step.id if step else None),
            )
        )

    def answer(self, instance: WorkflowInstance, **changes: Any) -> Received:
        """The module of the last request completes it."""
        request = [row for row in self.requests(instance) if row.event_type in ANSWERS][-1]
        name, payload = ANSWERS[request.event_type]
        return self.report(instance, name, payload | changes)
