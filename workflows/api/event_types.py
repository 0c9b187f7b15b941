"""`/event-types`: the versioned events that modules and Holdpoint exchange, each with its JSON Schema."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiTypes, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.roles import ApiScope
from reasoncodes.api.conventions import ApiView, StrictSerializer
from reasoncodes.errors import NotFound
from workflows.events.catalogue import event_type, event_types, schema_document, versions_of
from workflows.kinds.base import EventType

READ = ApiScope.ORCHESTRATOR_READ


class EventTypeOut(serializers.Serializer[EventType]):
    name = serializers.CharField()
    version = serializers.CharField()
    direction = serializers.ChoiceField(choices=["in", "out"], help_text="`in`: a module sends it to Holdpoint.")
    description = serializers.CharField()


class EventTypeDetailOut(EventTypeOut):
    versions = serializers.SerializerMethodField()
    schema = serializers.SerializerMethodField(help_text="JSON Schema of the whole event, envelope and payload.")

    def get_versions(self, event: EventType) -> list[str]:
        return versions_of(event.name)

    def get_schema(self, event: EventType) -> dict[str, Any]:
        return schema_document(event)


class EventTypeFilter(StrictSerializer):
    direction = serializers.ChoiceField(choices=["in", "out"], required=False)


class EventTypeListApi(ApiView):
    """All of them on one page: they come with the program and are few."""

    one_page = True
    required_scopes = {"GET": READ}

    @extend_schema(operation_id="event_types_list", parameters=[EventTypeFilter], responses=EventTypeOut(many=True))
    def get(self, request: Request) -> Response:
        direction = self.query(request, EventTypeFilter).get("direction")
        found = [event for event in event_types() if direction in {None, event.direction}]
        return Response({"next": None, "previous": None, "results": [EventTypeOut(event).data for event in found]})


class EventTypeApi(ApiView):
    required_scopes = {"GET": READ}

    @extend_schema(operation_id="event_types_read", responses=EventTypeDetailOut)
    def get(self, request: Request, name: str) -> Response:
        """Of its newest version."""
        self.query(request)
        return Response(EventTypeDetailOut(known(name, next(iter(versions_of(name)[-1:]), ""))).data)


class EventTypeSchemaApi(ApiView):
    """The address that a schema names as its `$id`: the schema and nothing around it."""

    required_scopes = {"GET": READ}

    @extend_schema(operation_id="event_types_schema", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, name: str, version: str) -> Response:
        self.query(request)
        return Response(schema_document(known(name, version)))


def known(name: str, version: str) -> EventType:
    event = event_type(name, version)
    if event is None:
        raise NotFound
    return event


urlpatterns = [
    path("event-types", EventTypeListApi.as_view(), name="event_type_list"),
    path("event-types/<str:name>", EventTypeApi.as_view(), name="event_type"),
    path("event-types/<str:name>/<str:version>", EventTypeSchemaApi.as_view(), name="event_type_schema"),
]
