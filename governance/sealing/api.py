"""API of the sealed ledger (proofs, signed heads, public keys, witnesses) and of the read audit; and `opened`, with
which other views record that they show something."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.ledger.api import HexField, LedgerEntryOut
from governance.people.rules.roles import ApiScope
from governance.sealing.configured import cosigners_configured, witness_quorum, witnesses_configured
from governance.sealing.models import LedgerCheckpoint, ReadAccess
from governance.sealing.selectors.cosignatures import Quorum, cosignatures_of, quorum_standing
from governance.sealing.selectors.keys import ledger_key_history
from governance.sealing.selectors.read_audit import read_access_list
from governance.sealing.selectors.tree import checkpoint_get, checkpoint_list, consistency, entry_proof
from governance.sealing.selectors.witnesses import (
    WitnessStanding,
    epoch_current,
    epoch_list,
    ledger_denial,
    witness_standing,
)
from governance.sealing.services.read_audit import read_recorded
from reasoncodes.base.api import ApiView, StrictSerializer


class CosignatureOut(serializers.Serializer[Any]):
    witness = serializers.CharField()
    line = serializers.CharField(help_text="C2SP tlog-cosignature: a further line of the checkpoint.")


class CheckpointListOut(serializers.ListSerializer[Any]):
    def to_representation(self, data: Any) -> list[Any]:
        """The cosignatures of a page in one query."""
        heads = list(data)
        found = cosignatures_of(heads=heads, cosigners=cosigners_configured())
        self._context = {**self._context, "cosignatures": found}
        return super().to_representation(heads)


class CheckpointOut(serializers.ModelSerializer[LedgerCheckpoint]):
    root_sha256 = HexField(source="root")
    checkpoint = serializers.CharField(source="text", help_text="C2SP tlog-checkpoint with its signature.")
    key_id = serializers.CharField()
    cosignatures = serializers.SerializerMethodField(help_text="Of the witnesses that this installation knows.")

    class Meta:
        model = LedgerCheckpoint
        fields = ["size", "root_sha256", "checkpoint", "key_id", "cosignatures", "at"]
        list_serializer_class = CheckpointListOut

    @extend_schema_field(CosignatureOut(many=True))
    def get_cosignatures(self, head: LedgerCheckpoint) -> list[dict[str, str]]:
        found = self.context.get("cosignatures")
        if found is None:
            found = cosignatures_of(heads=[head], cosigners=cosigners_configured())
        return [{"witness": name, "line": line} for name, line in found.get(head.size, [])]


class ProofOut(StrictSerializer):
    entry = LedgerEntryOut()
    leaf_index = serializers.IntegerField(source="position")
    rows_sha256 = HexField(
        allow_null=True, help_text="SHA-256 of the rows that are bound to the entry; null if there are none."
    )
    leaf_sha256 = HexField(
        source="leaf_hash", help_text="SHA-256 over a zero byte, the entry's sha256 and, if there is one, rows_sha256."
    )
    tree_size = serializers.IntegerField(source="checkpoint.size")
    proof = serializers.ListField(child=HexField(), help_text="RFC 9162 inclusion proof, lowest sibling first.")
    checkpoint = serializers.CharField(source="checkpoint.text")


class ProofQuery(StrictSerializer):
    tree_size = serializers.IntegerField(min_value=1, required=False, help_text="Of a signed head; default the newest.")


class ConsistencyQuery(StrictSerializer):
    to = serializers.IntegerField(min_value=1)

    def get_fields(self) -> dict[str, Any]:
        """`from` is a word of the language, so it cannot stand among the attributes."""
        return {"from": serializers.IntegerField(min_value=1)} | super().get_fields()


class ConsistencyOut(serializers.Serializer[Any]):
    old = CheckpointOut()
    new = CheckpointOut()
    proof = serializers.ListField(child=HexField(), help_text="RFC 9162 consistency proof.")


class LedgerKeyOut(serializers.Serializer[Any]):
    key_id = serializers.CharField()
    verifier_key = serializers.CharField(help_text="name+id+base64, as C2SP writes it.")
    state = serializers.ChoiceField(
        choices=["former", "current", "next"], help_text="`next`: named, and it has signed nothing yet."
    )
    first_used_at = serializers.DateTimeField(allow_null=True)
    first_tree_size = serializers.IntegerField(allow_null=True, help_text="Of the first head that it signed.")
    last_tree_size = serializers.IntegerField(allow_null=True, help_text="Of the newest head that it signed.")
    replaces = serializers.CharField(help_text="The key that named it; empty for the first one.")
    handover = serializers.CharField(
        help_text="The line in which that key names this one, with its signature, for `--public-key` of the verifier. "
        "Empty for the first key, and where the old key was lost."
    )


class LedgerKeysOut(serializers.Serializer[Any]):
    keys = LedgerKeyOut(many=True)


class EntryProofApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="ledger_entries_proof", parameters=[ProofQuery], responses=ProofOut)
    def get(self, request: Request, entry_id: UUID) -> Response:
        size = self.query(request, ProofQuery).get("tree_size")
        return Response(ProofOut(entry_proof(entry_id=entry_id, size=size)).data)


class CheckpointListApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="ledger_checkpoints_list", responses=CheckpointOut(many=True))
    def get(self, request: Request) -> Response:
        self.query(request)
        return self.page(request, checkpoint_list(), CheckpointOut)


class CheckpointApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="ledger_checkpoints_read", responses=CheckpointOut)
    def get(self, request: Request, size: int) -> Response:
        self.query(request)
        return Response(CheckpointOut(checkpoint_get(size=size)).data)


class ConsistencyApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="ledger_consistency", parameters=[ConsistencyQuery], responses=ConsistencyOut)
    def get(self, request: Request) -> Response:
        asked = self.query(request, ConsistencyQuery)
        old, new, proof = consistency(old=asked["from"], new=asked["to"])
        return Response(ConsistencyOut({"old": old, "new": new, "proof": proof}).data)


class PublicKeyApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="ledger_public_key", responses=LedgerKeysOut)
    def get(self, request: Request) -> Response:
        self.query(request)
        rows = [
            {
                "key_id": one.id,
                "verifier_key": one.verifier,
                "state": one.state,
                "first_used_at": one.since.first_used_at if one.since else None,
                "first_tree_size": one.first_size,
                "last_tree_size": one.last_size,
                "replaces": one.handover.old_key_id if one.handover else "",
                "handover": one.line,
            }
            for one in ledger_key_history()
        ]
        return Response({"keys": LedgerKeyOut(rows, many=True).data})


class WitnessOut(serializers.Serializer[Any]):
    name = serializers.CharField(source="witness")
    tree_size = serializers.IntegerField(source="size", help_text="Of the largest head that it stored.")
    stored_at = serializers.DateTimeField(allow_null=True)
    behind_heads = serializers.IntegerField(source="behind")
    behind_seconds = serializers.SerializerMethodField()
    last_result = serializers.CharField()
    last_detail = serializers.CharField()
    alarm = serializers.SerializerMethodField()
    cosigns = serializers.SerializerMethodField()

    def get_cosigns(self, standing: WitnessStanding) -> bool:
        return standing.witness in self.context["cosigners"]

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


class QuorumOut(serializers.Serializer[Any]):
    wanted = serializers.IntegerField(help_text="How many witnesses must have cosigned a head.")
    known = serializers.IntegerField(help_text="How many witnesses cosign.")
    tree_size = serializers.IntegerField(source="size", help_text="Of the newest head that so many cosigned.")
    behind_seconds = serializers.SerializerMethodField(help_text="Age of the oldest head that fewer cosigned.")
    alarm = serializers.SerializerMethodField()

    def get_behind_seconds(self, quorum: Quorum) -> float:
        return round(quorum.lag(at=self.context["at"]), 1)

    def get_alarm(self, quorum: Quorum) -> bool:
        return quorum.missing(at=self.context["at"], seconds=settings.WITNESS_LIMIT_SECONDS)


class WitnessesOut(serializers.Serializer[Any]):
    denied = serializers.BooleanField(help_text="True while a witness holds what the record does not continue.")
    findings = serializers.ListField(child=serializers.DictField())
    epoch = serializers.IntegerField()
    epochs = EpochOut(many=True)
    witnesses = WitnessOut(many=True)
    quorum = QuorumOut(allow_null=True, help_text="Null if no witness cosigns.")


class WitnessListApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="ledger_witnesses", responses=WitnessesOut)
    def get(self, request: Request) -> Response:
        self.query(request)
        denial, cosigners = ledger_denial(), cosigners_configured()
        found = {
            "denied": denial is not None,
            "findings": denial.preview.get("findings", []) if denial else [],
            "epoch": epoch_current(),
            "epochs": epoch_list(),
            "witnesses": [witness_standing(witness=one.name) for one in witnesses_configured()],
            "quorum": quorum_standing(cosigners=cosigners, wanted=witness_quorum()),
        }
        context = {"at": timezone.now(), "cosigners": {one.name for one in cosigners}}
        return Response(WitnessesOut(found, context=context).data)


HEADER = "X-Purpose"
PURPOSE = OpenApiParameter(
    name=HEADER,
    location=OpenApiParameter.HEADER,
    required=False,
    type=str,
    description="What it is opened for: a code of your own, kept in the read audit.",
)


class ReadAccessOut(serializers.ModelSerializer[ReadAccess]):
    organization_id = serializers.UUIDField()

    class Meta:
        model = ReadAccess
        fields = [
            "id",
            "organization_id",
            "actor_kind",
            "actor_ref",
            "subject_kind",
            "subject_id",
            "door",
            "purpose",
            "request_id",
            "at",
        ]


class ReadAccessFilter(StrictSerializer):
    subject_kind = serializers.CharField(max_length=32, required=False)
    subject_id = serializers.UUIDField(required=False)
    actor_ref = serializers.CharField(max_length=64, required=False)


class ReadAuditApi(ApiView):
    """For auditors: people with that role, and keys with `ledger:read`."""

    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="read_audit_list", parameters=[ReadAccessFilter], responses=ReadAccessOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, read_access_list(**self.query(request, ReadAccessFilter)), ReadAccessOut)


def opened(view: ApiView, request: Request, *, subject_kind: str, subject_id: UUID, organization_id: UUID) -> None:
    """Record that the caller opens this. Call it after the row was found and before it is rendered."""
    read_recorded(
        actor=view.actor(request),
        organization_id=organization_id,
        subject_kind=subject_kind,
        subject_id=subject_id,
        purpose=request.headers.get(HEADER, ""),
        at=timezone.now(),
    )
