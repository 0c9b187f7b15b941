"""`/workflow-instances`: the state of runs, their history, what comes next, and interventions (S4 5.4, 5.8, 5.9)."""

from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.http.response import HttpResponseBase
from django.urls import path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from governance.evidence.api import ZIP, EvidenceOut, SubjectEvidenceView
from governance.evidence.states import EvidenceKind
from governance.people.rules.roles import ApiScope
from reasoncodes.base.api import ApiView, ReasonedIn
from workflows.events.api import events as event_shapes
from workflows.runs.api import shapes
from workflows.runs.selectors.run import (
    instance_events,
    instance_get,
    instance_interventions,
    instance_list,
    intervention_get,
)
from workflows.runs.services.advisory import instance_next_step, steps_shown
from workflows.runs.services.intervene import InterventionOrder, instance_act
from workflows.runs.states import InterventionAction


class InstanceReadView(ApiView):
    required_scopes = {"GET": ApiScope.ORCHESTRATOR_READ_INSTANCES}
    other_scopes = {"GET": ApiScope.ORCHESTRATOR_READ}


class InstanceListApi(InstanceReadView):
    @extend_schema(
        operation_id="workflow_instances_list",
        parameters=[shapes.InstanceFilter],
        responses=shapes.InstanceOut(many=True),
    )
    def get(self, request: Request) -> Response:
        return self.page(request, instance_list(**self.query(request, shapes.InstanceFilter)), shapes.InstanceOut)


class InstanceApi(InstanceReadView):
    @extend_schema(operation_id="workflow_instances_read", responses=shapes.InstanceDetailOut)
    def get(self, request: Request, instance_id: UUID) -> Response:
        self.query(request)
        return Response(shapes.InstanceDetailOut(instance_get(instance_id=instance_id)).data)


class InstanceStepsApi(InstanceReadView):
    """All on one page, oldest first; of a run with more than a thousand tries the newest thousand."""

    one_page = True

    @extend_schema(operation_id="workflow_instances_steps", responses=shapes.StepOut(many=True))
    def get(self, request: Request, instance_id: UUID) -> Response:
        self.query(request)
        found = steps_shown(instance=instance_get(instance_id=instance_id))
        return Response({"next": None, "previous": None, "results": shapes.StepOut(found, many=True).data})


class InstanceEventsApi(InstanceReadView):
    @extend_schema(operation_id="workflow_instances_events", responses=event_shapes.EventOut(many=True))
    def get(self, request: Request, instance_id: UUID) -> Response:
        self.query(request)
        instance = instance_get(instance_id=instance_id)
        return self.page(request, instance_events(instance_id=instance.id), event_shapes.EventOut)


class InstanceInterventionsApi(InstanceReadView):
    @extend_schema(operation_id="workflow_instances_interventions", responses=shapes.InterventionOut(many=True))
    def get(self, request: Request, instance_id: UUID) -> Response:
        self.query(request)
        instance = instance_get(instance_id=instance_id)
        return self.page(request, instance_interventions(instance_id=instance.id), shapes.InterventionOut)


class InstanceNextStepApi(InstanceReadView):
    @extend_schema(operation_id="workflow_instances_next_step", responses=shapes.NextStepOut)
    def get(self, request: Request, instance_id: UUID) -> Response:
        self.query(request)
        return Response(instance_next_step(instance_id=instance_id))


class InterveneView(ApiView):
    """A reason code is required; the answer is what was done, with the state before and after, and the run now."""

    required_scopes = {"POST": ApiScope.ORCHESTRATOR_INTERVENE}
    action: ClassVar[InterventionAction]
    shape: ClassVar[type[ReasonedIn]] = ReasonedIn

    def intervene(self, request: Request, instance_id: UUID) -> Response:
        self.query(request)
        order = InterventionOrder(self.action, **self.body(request, self.shape))
        acted = instance_act(
            instance_id=instance_id,
            order=order,
            actor=self.actor(request),
            at=timezone.now(),
            region=settings.DEPLOYMENT_REGION,
        )
        return Response(shapes.IntervenedOut(intervention_get(intervention=acted.intervention)).data)


DOCUMENTED: dict[str, Any] = {
    "request": ReasonedIn,
    "responses": shapes.IntervenedOut,
    "examples": [shapes.REASON_EXAMPLE],
}


class InstanceRetryStepApi(InterveneView):
    action = InterventionAction.RETRY_STEP
    shape = shapes.RetryIn

    @extend_schema(operation_id="workflow_instances_retry_step", **DOCUMENTED | {"request": shapes.RetryIn})
    def post(self, request: Request, instance_id: UUID) -> Response:
        """The step that failed, timed out or that the run halted at is started anew, with a new correlation id."""
        return self.intervene(request, instance_id)


class InstanceCancelApi(InterveneView):
    action = InterventionAction.CANCEL

    @extend_schema(operation_id="workflow_instances_cancel", **DOCUMENTED)
    def post(self, request: Request, instance_id: UUID) -> Response:
        """Ends it for good."""
        return self.intervene(request, instance_id)


class InstanceSupersedeApi(InterveneView):
    action = InterventionAction.SUPERSEDE

    @extend_schema(operation_id="workflow_instances_supersede", **DOCUMENTED)
    def post(self, request: Request, instance_id: UUID) -> Response:
        """Ends it, and runs the case anew under the latest active definition: `instance.superseded_by`."""
        return self.intervene(request, instance_id)


class InstanceHaltApi(InterveneView):
    action = InterventionAction.HALT

    @extend_schema(operation_id="workflow_instances_halt", **DOCUMENTED)
    def post(self, request: Request, instance_id: UUID) -> Response:
        """A pause that stops: what modules still report is kept as late and changes nothing."""
        return self.intervene(request, instance_id)


class InstanceResumeApi(InterveneView):
    action = InterventionAction.RESUME

    @extend_schema(operation_id="workflow_instances_resume", **DOCUMENTED)
    def post(self, request: Request, instance_id: UUID) -> Response:
        """A halted run goes on with the step that it stopped at."""
        return self.intervene(request, instance_id)


INSTANCE = "workflow-instances/<uuid:instance_id>"
urlpatterns = [
    path("workflow-instances", InstanceListApi.as_view(), name="instance_list"),
    path(INSTANCE, InstanceApi.as_view(), name="instance"),
    path(f"{INSTANCE}/steps", InstanceStepsApi.as_view(), name="instance_steps"),
    path(f"{INSTANCE}/events", InstanceEventsApi.as_view(), name="instance_events"),
    path(f"{INSTANCE}/interventions", InstanceInterventionsApi.as_view(), name="instance_interventions"),
    path(f"{INSTANCE}/next-step", InstanceNextStepApi.as_view(), name="instance_next_step"),
    path(f"{INSTANCE}/retry-step", InstanceRetryStepApi.as_view(), name="instance_retry_step"),
    path(f"{INSTANCE}/cancel", InstanceCancelApi.as_view(), name="instance_cancel"),
    path(f"{INSTANCE}/supersede", InstanceSupersedeApi.as_view(), name="instance_supersede"),
    path(f"{INSTANCE}/halt", InstanceHaltApi.as_view(), name="instance_halt"),
    path(f"{INSTANCE}/resume", InstanceResumeApi.as_view(), name="instance_resume"),
]

SCOPE = ApiScope.ORCHESTRATOR_READ_INSTANCES
ALSO = (ApiScope.ORCHESTRATOR_READ, ApiScope.LEDGER_READ)


class InstanceEvidenceApi(SubjectEvidenceView):
    kind = EvidenceKind.INSTANCE
    required_scopes = {"GET": SCOPE, "POST": SCOPE}
    other_scopes = {"GET": ALSO, "POST": ALSO}

    @extend_schema(
        operation_id="workflow_instances_evidence_read",
        responses={(200, "application/json"): EvidenceOut, (200, ZIP): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, instance_id: UUID) -> HttpResponseBase:
        """The newest bundle: how far it is, or with `Accept: application/zip` its file."""
        return self.show(request, instance_get(instance_id=instance_id).id)

    @extend_schema(
        operation_id="workflow_instances_evidence_request", request=None, responses={202: EvidenceOut, 200: EvidenceOut}
    )
    def post(self, request: Request, instance_id: UUID) -> Response:
        """202 and a new bundle; 200 and the newest one while nothing was added to the record since."""
        return self.ask(request, instance_id)


evidence_urlpatterns = [
    path("workflow-instances/<uuid:instance_id>/evidence", InstanceEvidenceApi.as_view(), name="instance_evidence")
]
