"""`/ledger/witnesses`: how far each configured witness is, the epochs, and whether the record is denied."""

from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.roles import ApiScope
from governance.selectors.epoch import epoch_current, epoch_list, ledger_denial
from governance.selectors.witness import WitnessStanding, witness_standing
from governance.witnesses import witnesses_configured
from reasoncodes.api.conventions import ApiView


class WitnessOut(serializers.Serializer[Any]):
    name = serializers.CharField(source="witness")
    tree_size = serializers.IntegerField(source="size", help_text="Of the largest head that it stored.")
    stored_at = serializers.DateTimeField(allow_null=True)
    behind_heads = serializers.IntegerField(source="behind")
    behind_seconds = serializers.SerializerMethodField()
    last_result = serializers.CharField()
    last_detail = serializers.CharField()
    alarm = serializers.SerializerMethodField()

    def get_behind_seconds(self, standing: WitnessStanding) -> float:
        return round(standing.lag(at=self.context["at"]), 1)

    def get_alarm(self, standing: WitnessStanding) -> bool:
        limits = {"heads": settings.WITNESS_LIMIT_HEADS, "seconds": settings.WITNESS_LIMIT_SECONDS}
        return standing.alarming(at=self.context["at"], **limits)


class EpochOut(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    kept = serializers.IntegerField()
    lost_to = serializers.IntegerField()
    reason_code = serializers.CharField()
    begun_at = serializers.DateTimeField()


class WitnessesOut(serializers.Serializer[Any]):
    denied = serializers.BooleanField(help_text="True while a witness holds what the record does not continue.")
    findings = serializers.ListField(child=serializers.DictField())
    epoch = serializers.IntegerField()
    epochs = EpochOut(many=True)
    witnesses = WitnessOut(many=True)


class WitnessListApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="ledger_witnesses", responses=WitnessesOut)
    def get(self, request: Request) -> Response:
        self.query(request)
        denial = ledger_denial()
        found = {
            "denied": denial is not None,
            "findings": denial.preview.get("findings", []) if denial else [],
            "epoch": epoch_current(),
            "epochs": epoch_list(),
            "witnesses": [witness_standing(witness=one.name) for one in witnesses_configured()],
        }
        return Response(WitnessesOut(found, context={"at": timezone.now()}).data)
