"""`/event-types`: the versioned events that modules and Holdpoint exchange, each with its JSON Schema."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiTypes, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import ApiScope
from reasoncodes.base.api import ApiView, StrictSerializer
from reasoncodes.base.errors import NotFound
from workflows.events.rules import event_type, event_types, schema_document, versions_of
from workflows.kinds.base import EventType
from workflows.webhooks.rules.events import TYPES, VERSION, webhook_schema

READ = ApiScope.ORCHESTRATOR_READ
WEBHOOK = "webhook"
DIRECTIONS = ["in", "out", WEBHOOK]
ONLY_WEBHOOKS = {
    one.name: EventType(name=one.name, direction=WEBHOOK, description=one.description, schema=one.data)
    for one in TYPES.values()
    if event_type(one.name) is None
}


class EventTypeOut(serializers.Serializer[EventType]):
    name = serializers.CharField()
    version = serializers.CharField()
    direction = serializers.ChoiceField(choices=DIRECTIONS, help_text="`in`: a module sends it to Holdpoint.")
    description = serializers.CharField()
    webhook = serializers.SerializerMethodField(help_text="Whether webhook endpoints can ask for it.")

    def get_webhook(self, event: EventType) -> bool:
        return event.name in TYPES


class EventTypeDetailOut(EventTypeOut):
    versions = serializers.SerializerMethodField()
    schema = serializers.SerializerMethodField(help_text="JSON Schema of the whole event, envelope and payload.")
    webhook_schema = serializers.SerializerMethodField(
        help_text="JSON Schema of a webhook's body; null: there is none."
    )

    def get_versions(self, event: EventType) -> list[str]:
        return versions(event.name)

    def get_schema(self, event: EventType) -> dict[str, Any]:
        return _event_type_document(event)

    def get_webhook_schema(self, event: EventType) -> dict[str, Any] | None:
        return webhook_schema(TYPES[event.name]) if event.name in TYPES else None


class EventTypeFilter(StrictSerializer):
    direction = serializers.ChoiceField(choices=DIRECTIONS, required=False)
    webhook = serializers.BooleanField(required=False)


class EventTypeListApi(ApiView):
    """All of them on one page: they come with the program and are few."""

    one_page = True
    required_scopes = {"GET": READ}

    @extend_schema(operation_id="event_types_list", parameters=[EventTypeFilter], responses=EventTypeOut(many=True))
    def get(self, request: Request) -> Response:
        given = self.query(request, EventTypeFilter)
        direction, told = given.get("direction"), given.get("webhook")
        found = [event for event in everything() if direction in {None, event.direction}]
        found = [event for event in found if told in {None, event.name in TYPES}]
        return Response({"next": None, "previous": None, "results": [EventTypeOut(event).data for event in found]})


class EventTypeApi(ApiView):
    required_scopes = {"GET": READ}

    @extend_schema(operation_id="event_types_read", responses=EventTypeDetailOut)
    def get(self, request: Request, name: str) -> Response:
        """Of its newest version."""
        self.query(request)
        return Response(EventTypeDetailOut(known(name, next(iter(versions(name)[-1:]), ""))).data)


class EventTypeSchemaApi(ApiView):
    """The address that a schema names as its `$id`: the schema and nothing around it."""

    required_scopes = {"GET": READ}

    @extend_schema(operation_id="event_types_schema", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, name: str, version: str) -> Response:
        self.query(request)
        return Response(_event_type_document(known(name, version)))


def everything() -> list[EventType]:
    """What modules exchange with Holdpoint, and what only webhooks tell; by name."""
    return sorted([*event_types(), *ONLY_WEBHOOKS.values()], key=lambda event: (event.name, event.version))


def known(name: str, version: str) -> EventType:
    event = event_type(name, version) or (ONLY_WEBHOOKS.get(name) if version == VERSION else None)
    if event is None:
        raise NotFound
    return event


def versions(name: str) -> list[str]:
    return versions_of(name) or ([VERSION] if name in ONLY_WEBHOOKS else [])


def _event_type_document(event: EventType) -> dict[str, Any]:
    """A webhook that no module gets has no envelope: its schema is that of its body."""
    if event.direction != WEBHOOK:
        return schema_document(event)
    return {"$id": f"/api/v1/event-types/{event.name}/{event.version}"} | webhook_schema(TYPES[event.name])


urlpatterns = [
    path("event-types", EventTypeListApi.as_view(), name="event_type_list"),
    path("event-types/<str:name>", EventTypeApi.as_view(), name="event_type"),
    path("event-types/<str:name>/<str:version>", EventTypeSchemaApi.as_view(), name="event_type_schema"),
]
