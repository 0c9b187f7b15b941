"""`/idempotency-keys`: the explorer. First use, fingerprint, replays, conflicts."""

from typing import Any
from uuid import UUID

from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.models import IdempotencyRecord
from attempts.selectors.idempotency import idempotency_record_get, idempotency_record_list, key_uses
from governance.roles import VIEW, ApiScope
from reasoncodes.api.conventions import ApiView, StrictSerializer


class KeyOut(serializers.ModelSerializer[IdempotencyRecord]):
    attempt_id = serializers.UUIDField()

    class Meta:
        model = IdempotencyRecord
        fields = [
            "id",
            "scope",
            "key",
            "fingerprint",
            "attempt_id",
            "status",
            "generation",
            "first_used_at",
            "expires_at",
        ]


class KeyUsesOut(serializers.Serializer[Any]):
    replays = serializers.IntegerField()
    conflicts = serializers.IntegerField()
    after_expiry = serializers.IntegerField()


class KeyDetailOut(KeyOut):
    uses = serializers.SerializerMethodField(help_text="Counted up to 1000 each.")

    class Meta(KeyOut.Meta):
        fields = [*KeyOut.Meta.fields, "uses"]

    @extend_schema_field(KeyUsesOut)
    def get_uses(self, record: IdempotencyRecord) -> dict[str, int]:
        return key_uses(record=record)


class KeyFilter(StrictSerializer):
    key = serializers.CharField(max_length=200, required=False)


class KeyListApi(ApiView):
    required_scopes = {"GET": ApiScope.ATTEMPTS_CREATE}
    people_permissions = {"GET": VIEW}

    @extend_schema(operation_id="idempotency_keys_list", parameters=[KeyFilter], responses=KeyOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, idempotency_record_list(**self.query(request, KeyFilter)), KeyOut)


class KeyApi(ApiView):
    required_scopes = {"GET": ApiScope.ATTEMPTS_CREATE}
    people_permissions = {"GET": VIEW}

    @extend_schema(operation_id="idempotency_keys_read", responses=KeyDetailOut)
    def get(self, request: Request, record_id: UUID) -> Response:
        self.query(request)
        return Response(KeyDetailOut(idempotency_record_get(record_id=record_id)).data)


urlpatterns = [
    path("idempotency-keys", KeyListApi.as_view(), name="idempotency_key_list"),
    path("idempotency-keys/<uuid:record_id>", KeyApi.as_view(), name="idempotency_key"),
]
