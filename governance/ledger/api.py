"""`/ledger/entries`, read-only; and `RecordApi`, the base of views on rows that cannot be changed."""

from typing import Any
from uuid import UUID

from django.db.models import Model
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.ledger.models import LedgerEntry
from governance.ledger.rules.actions import wording
from governance.ledger.rules.entry import FORMATS
from governance.ledger.selectors import ledger_entry_get, ledger_entry_list
from governance.people.rules.roles import ApiScope
from governance.violations.errors import RecordImmutable
from reasoncodes.base.api import ApiView, StrictSerializer


def record_scopes(scope: str) -> dict[str, str]:
    """The scope that reads the row is enough to learn that it cannot be changed."""
    return dict.fromkeys(("GET", "PUT", "PATCH", "DELETE"), scope)


class RecordApi(ApiView):
    """Subclasses say how the row is found; somebody else's is 404 here too."""

    @property
    def default_response_headers(self) -> dict[str, str]:
        """`Allow` does not invite what is always refused."""
        return super().default_response_headers | {"Allow": "GET, HEAD, OPTIONS"}

    def find(self, **address: UUID) -> Model:
        raise TypeError("a subclass names its row")

    @extend_schema(exclude=True)
    def put(self, request: Request, **address: UUID) -> Response:
        return self._refuse(**address)

    @extend_schema(exclude=True)
    def patch(self, request: Request, **address: UUID) -> Response:
        return self._refuse(**address)

    @extend_schema(exclude=True)
    def delete(self, request: Request, **address: UUID) -> Response:
        return self._refuse(**address)

    def _refuse(self, **address: UUID) -> Response:
        row = self.find(**address)
        raise RecordImmutable(subject_type=str(row._meta.model_name), subject_id=row.pk)


@extend_schema_field({"type": "string", "pattern": "^[0-9a-f]*$"})
class HexField(serializers.Field[Any, Any, str, Any]):
    """Bytes as lower-case hex."""

    def to_representation(self, value: Any) -> str:
        return bytes(value).hex()


class MoveOut(serializers.Serializer[Any]):
    action = serializers.CharField()
    wording = serializers.CharField(help_text="The action in words.")
    reason_code = serializers.CharField(allow_blank=True)
    facts = serializers.DictField(allow_null=True, help_text="null once the payload was erased by order.")


class LedgerEntryOut(serializers.ModelSerializer[LedgerEntry]):
    wording = serializers.SerializerMethodField(help_text="The action in words.")
    sha256 = HexField()
    payload_sha256 = HexField()
    moves = serializers.SerializerMethodField(
        help_text="What the entry tells, in order: one or more moves of its subject in one transaction. The last one "
        "has the entry's `action` and `reason_code`."
    )
    earlier = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="As it is hashed: the actions of the moves before the last one; null if there is one move.",
    )
    format = serializers.ChoiceField(choices=list(FORMATS), help_text="Which bytes `sha256` covers.")
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
            "moves",
            "format",
            "earlier",
            "payload",
            "nonce",
            "payload_sha256",
            "sha256",
            "at",
        ]

    def get_wording(self, entry: LedgerEntry) -> str:
        return wording(entry.action)

    @extend_schema_field(MoveOut(many=True))
    def get_moves(self, entry: LedgerEntry) -> list[dict[str, Any]]:
        return [{**move._asdict(), "wording": wording(move.action)} for move in entry.moves]


class LedgerEntryFilter(StrictSerializer):
    action = serializers.CharField(
        max_length=64, required=False, help_text="Entries with this action among their moves."
    )
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
