"""Proofs, signed heads and public keys of the ledger: what a third party checks with."""

from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.ledger import HexField, LedgerEntryOut
from governance.merkle import verifier_key
from governance.models import LedgerCheckpoint
from governance.roles import ApiScope
from governance.selectors import (
    checkpoint_get,
    checkpoint_list,
    consistency,
    entry_proof,
)
from governance.selectors.ledger_tree import ledger_key_ranges
from reasoncodes.api.conventions import ApiView, StrictSerializer


class CheckpointOut(serializers.ModelSerializer[LedgerCheckpoint]):
    root_sha256 = HexField(source="root")
    checkpoint = serializers.CharField(source="text", help_text="C2SP tlog-checkpoint with its signature.")
    key_id = serializers.CharField()

    class Meta:
        model = LedgerCheckpoint
        fields = ["size", "root_sha256", "checkpoint", "key_id", "at"]


class ProofOut(StrictSerializer):
    entry = LedgerEntryOut()
    leaf_index = serializers.IntegerField(source="position")
    leaf_sha256 = HexField(source="leaf_hash", help_text="SHA-256 over a zero byte and the entry's sha256.")
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
    first_used_at = serializers.DateTimeField()
    first_tree_size = serializers.IntegerField(allow_null=True, help_text="Of the first head that it signed.")
    last_tree_size = serializers.IntegerField(allow_null=True, help_text="Of the newest head that it signed.")


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
                "key_id": one.key.id,
                "verifier_key": verifier_key(
                    one.key.name, Ed25519PublicKey.from_public_bytes(bytes(one.key.public_key))
                ),
                "first_used_at": one.key.first_used_at,
                "first_tree_size": one.first_size,
                "last_tree_size": one.last_size,
            }
            for one in ledger_key_ranges()
        ]
        return Response({"keys": LedgerKeyOut(rows, many=True).data})
