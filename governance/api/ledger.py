"""`/ledger/entries`: the record, read-only."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.append_only import RecordApi, record_scopes
from governance.ledger.actions import wording
from governance.models import LedgerEntry
from governance.roles import ApiScope
from governance.selectors import ledger_entry_get, ledger_entry_list
from reasoncodes.api.conventions import ApiView, StrictSerializer


@extend_schema_field({"type": "string", "pattern": "^[0-9a-f]*$"})
class HexField(serializers.Field[Any, Any, str, Any]):
    """Bytes as lower-case hex."""

    def to_representation(self, value: Any) -> str:
        return bytes(value).hex()


class LedgerEntryOut(serializers.ModelSerializer[LedgerEntry]):
    wording = serializers.SerializerMethodField(help_text="The action in words.")
    sha256 = HexField()
    payload_sha256 = HexField()
    nonce = HexField(allow_null=True, help_text="null, like the payload, once it was erased by order.")

    class Meta:
        model = LedgerEntry
        fields = [
            "id",
            "organization_id",
            "action",
            "wording",
            "subject_type",
            "subject_id",
            "actor_kind",
            "actor_ref",
            "reason_code",
            "request_id",
            "trace_id",
            "payload",
            "nonce",
            "payload_sha256",
            "sha256",
            "at",
        ]

    def get_wording(self, entry: LedgerEntry) -> str:
        return wording(entry.action)


class LedgerEntryFilter(StrictSerializer):
    action = serializers.CharField(max_length=64, required=False)
    subject_id = serializers.UUIDField(required=False)
    reason_code = serializers.CharField(max_length=64, required=False)


class LedgerEntryListApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(
        operation_id="ledger_entries_list",
        parameters=[LedgerEntryFilter],
        responses=LedgerEntryOut(many=True),
    )
    def get(self, request: Request) -> Response:
        return self.page(request, ledger_entry_list(**self.query(request, LedgerEntryFilter)), LedgerEntryOut)


class LedgerEntryApi(RecordApi):
    required_scopes = record_scopes(ApiScope.LEDGER_READ)

    def find(self, **address: UUID) -> LedgerEntry:
        return ledger_entry_get(**address)

    @extend_schema(operation_id="ledger_entries_read", responses=LedgerEntryOut)
    def get(self, request: Request, entry_id: UUID) -> Response:
        self.query(request)
        return Response(LedgerEntryOut(ledger_entry_get(entry_id=entry_id)).data)
