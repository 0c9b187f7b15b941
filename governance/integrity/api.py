"""`GET /api/v1/record/status`: how far the record is checked, and what is wrong with it."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.integrity.models import RecordFault
from governance.integrity.selectors.standing import faults_open, record_denials, record_standing
from governance.people.rules.roles import ApiScope
from reasoncodes.base.api import ApiView

# Faults that one answer names, newest first. The full check names more.
MOST = 100


class RecordFaultOut(serializers.ModelSerializer[RecordFault]):
    id = serializers.CharField(source="row", help_text="The id of the row in its table.")
    organization_id = serializers.UUIDField(allow_null=True)

    class Meta:
        model = RecordFault
        fields = ["table", "id", "what", "organization_id", "found_at", "found_by"]


class RecordStatusOut(serializers.Serializer[Any]):
    valid = serializers.BooleanField(help_text="False while a fault is open.")
    denied = serializers.BooleanField(help_text="True while a fault stops work that you can see.")
    checked = serializers.DictField(help_text="Entries that were compared when they were new, and when.")
    round = serializers.DictField(help_text="The round through the whole record: how far it is, when one last ended.")
    full = serializers.DictField(help_text="The last full verification and its result.")
    accepted = serializers.IntegerField(help_text="Faults that two people accepted.")
    faults = RecordFaultOut(many=True)


class RecordStatusApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="record_status", responses=RecordStatusOut)
    def get(self, request: Request) -> Response:
        self.query(request)
        standing = record_standing()
        done = standing.progress
        full = {name: done.full_result.get(name) for name in ("valid", "checked", "count")} if done.full_at else {}
        found = {
            "valid": not standing.open,
            "denied": bool(record_denials(organization_ids=self.actor(request).organization_ids)),
            "checked": {"entries": done.checked_to, "at": done.checked_at, "age_s": standing.age(at=timezone.now())},
            "round": {"entries": done.walked_to, "began_at": done.round_began_at, "ended_at": done.round_ended_at},
            "full": full | {"at": done.full_at},
            "accepted": standing.accepted,
            "faults": faults_open()[:MOST],
        }
        return Response(RecordStatusOut(found).data)
