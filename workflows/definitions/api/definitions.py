"""`/workflow-definitions` and `/workflow-templates`: drafts, dry runs, publication, history (S4 5.2, 5.3)."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.authority.api import WaitingOut, waiting
from governance.authority.services.changes import authority_act
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import organization_of
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.api import ApiView
from reasoncodes.base.json_body import DOCUMENT_DEPTH_LIMIT
from workflows.definitions.api import shapes
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.selectors import (
    definition_get,
    definition_home,
    definition_list,
    definition_organization,
    revision_list,
    template_get,
    template_list,
)
from workflows.definitions.services.change import definition_archive, definition_change, definition_unpublish
from workflows.definitions.services.create import definition_clone, definition_create
from workflows.definitions.services.document import definition_validate

READ, WRITE, PUBLISH = ApiScope.ORCHESTRATOR_READ, ApiScope.ORCHESTRATOR_WRITE, ApiScope.ORCHESTRATOR_PUBLISH


def _definition_response(definition: WorkflowDefinition, code: int = status.HTTP_200_OK) -> Response:
    return Response(shapes.DefinitionDetailOut(definition).data, status=code)


def _definition_clone_response(
    actor: Actor, source_id: UUID, organization: Organization, fields: dict[str, Any]
) -> Response:
    made = definition_clone(actor=actor, at=timezone.now(), source_id=source_id, organization=organization, **fields)
    return _definition_response(made, status.HTTP_201_CREATED)


class DefinitionListApi(ApiView):
    json_depth = DOCUMENT_DEPTH_LIMIT  # a form inside a step of a document is deeper than eight levels
    required_scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="workflow_definitions_list",
        parameters=[shapes.DefinitionFilter],
        responses=shapes.DefinitionOut(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = definition_list(**self.query(request, shapes.DefinitionFilter))
        return self.page(request, rows, shapes.DefinitionOut)

    @extend_schema(
        operation_id="workflow_definitions_create",
        request=shapes.DefinitionCreateIn,
        responses={201: shapes.DefinitionDetailOut},
        examples=[shapes.CREATE_EXAMPLE, shapes.TEMPLATE_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        fields, actor = self.body(request, shapes.DefinitionCreateIn), self.actor(request)
        organization = organization_of(actor=actor, org_id=fields.pop("org_id", None))
        if "template_id" in fields:
            return _definition_clone_response(actor, fields.pop("template_id"), organization, fields)
        made = definition_create(
            actor=actor, at=timezone.now(), organization=organization, document=fields.pop("definition"), **fields
        )
        return _definition_response(made, status.HTTP_201_CREATED)


class DefinitionApi(ApiView):
    json_depth = DOCUMENT_DEPTH_LIMIT  # a form inside a step of a document is deeper than eight levels
    required_scopes = {"GET": READ, "PATCH": WRITE}

    @extend_schema(operation_id="workflow_definitions_read", responses=shapes.DefinitionDetailOut)
    def get(self, request: Request, definition_id: UUID) -> Response:
        self.query(request)
        return _definition_response(definition_get(definition_id=definition_id))

    @extend_schema(
        operation_id="workflow_definitions_change",
        request=shapes.DefinitionPatchIn,
        responses=shapes.DefinitionDetailOut,
        examples=[shapes.PATCH_EXAMPLE],
    )
    def patch(self, request: Request, definition_id: UUID) -> Response:
        fields = self.body(request, shapes.DefinitionPatchIn)
        changed = definition_change(
            actor=self.actor(request),
            at=timezone.now(),
            definition_id=definition_id,
            document=fields.pop("definition", None),
            **fields,
        )
        return _definition_response(changed)


class DefinitionValidateApi(ApiView):
    json_depth = DOCUMENT_DEPTH_LIMIT  # a form inside a step of a document is deeper than eight levels
    required_scopes = {"POST": READ}

    @extend_schema(
        operation_id="workflow_definitions_validate",
        request=shapes.ValidateIn,
        responses=shapes.ValidationOut,
        examples=[shapes.VALIDATE_EXAMPLE],
    )
    def post(self, request: Request, definition_id: UUID) -> Response:
        given = self.body(request, shapes.ValidateIn)
        findings = definition_validate(definition_id=definition_id, document=given.get("definition"))
        return Response(shapes.ValidationOut({"valid": not findings, "findings": findings}).data)


class DefinitionPublishApi(ApiView):
    required_scopes = {"POST": PUBLISH}

    @extend_schema(
        operation_id="workflow_definitions_publish",
        request=shapes.PublishIn,
        responses={200: shapes.DefinitionDetailOut, 202: WaitingOut},
        examples=[shapes.PUBLISH_EXAMPLE],
    )
    def post(self, request: Request, definition_id: UUID) -> Response:
        """200: published, by the founder alone. 202: proposed; a second person has to confirm it."""
        fields = self.body(request, shapes.PublishIn)
        outcome = authority_act(
            actor=self.actor(request),
            at=timezone.now(),
            organization=definition_organization(definition_id=definition_id),
            kind="definition.publish",
            subject=str(definition_id),
            details=fields,
        )
        if outcome.applied is None:
            return waiting(outcome)
        return _definition_response(outcome.applied.made.definition)


class DefinitionArchiveApi(ApiView):
    required_scopes = {"POST": PUBLISH}

    @extend_schema(
        operation_id="workflow_definitions_archive",
        request=shapes.ReasonIn,
        responses=shapes.DefinitionDetailOut,
        examples=[shapes.REASON_EXAMPLE],
    )
    def post(self, request: Request, definition_id: UUID) -> Response:
        fields = self.body(request, shapes.ReasonIn)
        archived = definition_archive(
            actor=self.actor(request), at=timezone.now(), definition_id=definition_id, **fields
        )
        return _definition_response(archived)


class DefinitionUnpublishApi(ApiView):
    required_scopes = {"POST": PUBLISH}

    @extend_schema(
        operation_id="workflow_definitions_unpublish",
        request=shapes.ReasonIn,
        responses=shapes.DefinitionDetailOut,
        examples=[shapes.REASON_EXAMPLE],
    )
    def post(self, request: Request, definition_id: UUID) -> Response:
        """Archives it and puts the version before it in force again; the answer is that version. New runs follow it at
        once; runs that have started keep their own copy."""
        fields = self.body(request, shapes.ReasonIn)
        earlier = definition_unpublish(
            actor=self.actor(request), at=timezone.now(), definition_id=definition_id, **fields
        )
        return _definition_response(earlier)


class DefinitionCloneApi(ApiView):
    required_scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="workflow_definitions_clone",
        request=shapes.CloneIn,
        responses={201: shapes.DefinitionDetailOut},
        examples=[shapes.CLONE_EXAMPLE],
    )
    def post(self, request: Request, definition_id: UUID) -> Response:
        fields, actor = self.body(request, shapes.CloneIn), self.actor(request)
        asked = fields.pop("org_id", None)
        home = definition_home(definition_id=definition_id)
        return _definition_clone_response(
            actor, definition_id, organization_of(actor=actor, org_id=asked or home), fields
        )


class DefinitionRevisionsApi(ApiView):
    required_scopes = {"GET": READ}

    @extend_schema(operation_id="workflow_definitions_revisions", responses=shapes.RevisionOut(many=True))
    def get(self, request: Request, definition_id: UUID) -> Response:
        self.query(request)
        return self.page(request, revision_list(definition_id=definition_id), shapes.RevisionOut)


class TemplateListApi(ApiView):
    required_scopes = {"GET": READ}

    @extend_schema(operation_id="workflow_templates_list", responses=shapes.DefinitionOut(many=True))
    def get(self, request: Request) -> Response:
        self.query(request)
        return self.page(request, template_list(), shapes.DefinitionOut)


class TemplateApi(ApiView):
    required_scopes = {"GET": READ}

    @extend_schema(operation_id="workflow_templates_read", responses=shapes.DefinitionDetailOut)
    def get(self, request: Request, template_id: UUID) -> Response:
        self.query(request)
        return _definition_response(template_get(template_id=template_id))


DEFINITION = "workflow-definitions/<uuid:definition_id>"
urlpatterns = [
    path("workflow-definitions", DefinitionListApi.as_view(), name="definition_list"),
    path(DEFINITION, DefinitionApi.as_view(), name="definition"),
    path(f"{DEFINITION}/publish", DefinitionPublishApi.as_view(), name="definition_publish"),
    path(f"{DEFINITION}/archive", DefinitionArchiveApi.as_view(), name="definition_archive"),
    path(f"{DEFINITION}/unpublish", DefinitionUnpublishApi.as_view(), name="definition_unpublish"),
    path(f"{DEFINITION}/clone", DefinitionCloneApi.as_view(), name="definition_clone"),
    path(f"{DEFINITION}/revisions", DefinitionRevisionsApi.as_view(), name="definition_revisions"),
    path(f"{DEFINITION}/validate", DefinitionValidateApi.as_view(), name="definition_validate"),
    path("workflow-templates", TemplateListApi.as_view(), name="template_list"),
    path("workflow-templates/<uuid:template_id>", TemplateApi.as_view(), name="template"),
]
