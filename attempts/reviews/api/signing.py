"""Shapes of signed votes: the challenge as browsers take it, and the assertion as they give it. Bytes are base64url
without padding, as in WebAuthn's own JSON."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from attempts.reviews.services.signing import SignedWord, SigningRequest
from attempts.reviews.states import VERDICTS_OF, ReviewKind
from governance.people.rules.webauthn_json import LONGEST, AssertionUnreadable, assertion_read
from reasoncodes.base.api import StrictSerializer
from reasoncodes.base.errors import FieldError, InvalidInput


def _bytes(part: str) -> serializers.RegexField:
    return serializers.RegexField("^[A-Za-z0-9_-]+$", max_length=LONGEST[part])


class SignatureIn(StrictSerializer):
    challenge_id = serializers.UUIDField()
    credential_id = _bytes("credential_id")
    authenticator_data = _bytes("authenticator_data")
    client_data_json = _bytes("client_data_json")
    signature = _bytes("signature")


class ChallengeIn(StrictSerializer):
    verdict = serializers.ChoiceField(choices=[one for kind in ReviewKind for one in VERDICTS_OF[kind]])
    action_digest = serializers.CharField(max_length=64)


class CredentialOut(serializers.Serializer[Any]):
    type = serializers.CharField()
    id = serializers.CharField()


class PublicKeyOut(serializers.Serializer[Any]):
    """The options for `navigator.credentials.get`."""

    challenge = serializers.CharField()
    rpId = serializers.CharField()
    timeout = serializers.IntegerField()
    userVerification = serializers.CharField()
    allowCredentials = CredentialOut(many=True)


class ChallengeOut(serializers.Serializer[Any]):
    challenge_id = serializers.UUIDField()
    nonce = serializers.CharField(help_text="Part of what is hashed into the challenge.")
    expires_at = serializers.DateTimeField()
    public_key = PublicKeyOut()


def challenge_shown(found: SigningRequest) -> dict[str, Any]:
    return {
        "challenge_id": found.challenge_id,
        "nonce": found.nonce,
        "expires_at": found.expires_at,
        "public_key": found.options,
    }


def signed_word(given: Mapping[str, Any]) -> SignedWord:
    """The signature that was sent, or a refusal that names the field."""
    try:
        return SignedWord(given["challenge_id"], assertion_read(given))
    except AssertionUnreadable as error:
        raise InvalidInput(
            errors=[FieldError(f"/signature/{error.part}", "is not base64url", rule="base64")]
        ) from error


_DIGEST = "3f0c7a5de1b2" + "0" * 52
CHALLENGE = OpenApiExample("To approve", value={"verdict": "approve", "action_digest": _DIGEST}, request_only=True)
SIGNED = OpenApiExample(
    "Released, signed",
    value={
        "action_digest": _DIGEST,
        "signature": {
            "challenge_id": "0190f5f0-0000-7000-8000-000000000001",
            "credential_id": "AAECAwQFBgcICQoLDA0ODw",
            "authenticator_data": "SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAQ",
            "client_data_json": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0",
            "signature": "MEUCIQ",
        },
    },
    request_only=True,
)
