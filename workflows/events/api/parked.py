"""`/parked-messages`: messages of the streams that could not be taken in; which one and why, never what it says."""

from uuid import UUID

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import AUDIT, ApiScope
from reasoncodes.base.api import ApiView, StrictSerializer
from workflows.events.models import ParkedMessage
from workflows.events.selectors import parked_get, parked_list
from workflows.events.states import ParkedStatus, ParkedWhy


class ParkedMessageFilter(StrictSerializer):
    status = serializers.ChoiceField(choices=list(ParkedStatus), required=False)
    why = serializers.ChoiceField(choices=list(ParkedWhy), required=False)
    event_type = serializers.CharField(max_length=100, required=False)
    event_id = serializers.UUIDField(required=False, help_text="The module's id of the event.")


class ParkedProblemOut(serializers.Serializer[dict[str, str]]):
    pointer = serializers.CharField()
    rule = serializers.CharField()
    message = serializers.CharField()


class ParkedMessageOut(serializers.ModelSerializer[ParkedMessage]):
    status = serializers.ChoiceField(choices=list(ParkedStatus))
    why = serializers.ChoiceField(choices=list(ParkedWhy))
    service_account_id = serializers.UUIDField(allow_null=True, help_text="Whose key has signed it.")
    problems = ParkedProblemOut(many=True)

    class Meta:
        model = ParkedMessage
        fields = [
            "id",
            "event_type",
            "entry_id",
            "event_id",
            "service_account_id",
            "why",
            "problems",
            "data_sha256",
            "data_bytes",
            "deliveries",
            "status",
            "parked_at",
            "settled_at",
            "settled_code",
        ]


class ParkedMessageView(ApiView):
    """As in the console: for an organization's operators and auditors."""

    required_scopes = {"GET": ApiScope.ORCHESTRATOR_READ_INSTANCES}
    other_scopes = {"GET": ApiScope.ORCHESTRATOR_READ}
    people_permissions = {"GET": AUDIT}


class ParkedMessageListApi(ParkedMessageView):
    @extend_schema(
        operation_id="parked_messages_list", parameters=[ParkedMessageFilter], responses=ParkedMessageOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """What keys of the organization have signed. What nobody has signed, administrators see in the console."""
        return self.page(request, parked_list(**self.query(request, ParkedMessageFilter)), ParkedMessageOut)


class ParkedMessageApi(ParkedMessageView):
    @extend_schema(operation_id="parked_messages_read", responses=ParkedMessageOut)
    def get(self, request: Request, message_id: UUID) -> Response:
        self.query(request)
        return Response(ParkedMessageOut(parked_get(message_id=message_id)).data)


urlpatterns = [
    path("parked-messages", ParkedMessageListApi.as_view(), name="parked_message_list"),
    path("parked-messages/<uuid:message_id>", ParkedMessageApi.as_view(), name="parked_message"),
]
