"""An authenticator made of a key, for tests: registers a passkey as a browser would, and signs challenges."""

import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from allauth.mfa.webauthn.internal.auth import WebAuthn
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from django.utils import timezone
from fido2.cose import ES256, RS256, EdDSA
from fido2.webauthn import Aaguid, AttestationObject, AttestedCredentialData, AuthenticatorData

from governance.people.models import Passkey, User
from governance.people.rules.passkeys import Assertion, RegisteredKey, key_from_cose
from governance.people.services.passkeys import passkey_register
from reasoncodes.base.actors import Actor, ActorKind

RP_ID = "testserver"
COSE: dict[str, Any] = {"ES256": ES256, "EdDSA": EdDSA, "RS256": RS256}
PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def private_key(kind: str) -> Any:
    if kind == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    return Ed25519PrivateKey.generate() if kind == "EdDSA" else rsa.generate_private_key(65537, 2048)


def text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class SoftKey:
    kind: str = "ES256"
    rp_id: str = RP_ID
    private: Any = None
    credential_id: bytes = b""
    counter: int = 0
    origin: str = field(default="")

    def __post_init__(self) -> None:
        self.private = self.private or private_key(self.kind)
        self.credential_id = self.credential_id or sha256(repr(self.private).encode()).digest()
        self.origin = self.origin or f"https://{self.rp_id}"

    @property
    def cose(self) -> Any:
        return COSE[self.kind].from_cryptography_key(self.private.public_key())

    def registered(self, person: str) -> RegisteredKey:
        return RegisteredKey(person, sha256(self.credential_id).hexdigest(), self.rp_id, key_from_cose(dict(self.cose)))

    def registration(self, challenge: str = "") -> dict[str, Any]:
        """The answer of `navigator.credentials.create`, as JSON."""
        credential = AttestedCredentialData.create(Aaguid(bytes(16)), self.credential_id, self.cose)
        data = AuthenticatorData.create(
            sha256(self.rp_id.encode()).digest(), PRESENT | VERIFIED | ATTESTED, 0, credential
        )
        said = {"type": "webauthn.create", "challenge": challenge or text(bytes(32)), "origin": self.origin}
        return {
            "id": text(self.credential_id),
            "rawId": text(self.credential_id),
            "type": "public-key",
            "clientExtensionResults": {},
            "response": {
                "clientDataJSON": text(json.dumps(said).encode()),
                "attestationObject": text(bytes(AttestationObject.create("none", data, {}))),
            },
        }

    def sign(self, challenge: bytes, /, *, flags: int = PRESENT | VERIFIED, **said: Any) -> Assertion:
        self.counter += 1
        told = {
            "type": "webauthn.get",
            "challenge": text(challenge),
            "origin": self.origin,
            "crossOrigin": False,
        } | said
        client = json.dumps(told).encode()
        data = sha256(self.rp_id.encode()).digest() + bytes([flags]) + self.counter.to_bytes(4, "big")
        return Assertion(self.credential_id, data, client, self.raw(data + sha256(client).digest()))

    def raw(self, data: bytes) -> bytes:
        if self.kind == "ES256":
            return bytes(self.private.sign(data, ec.ECDSA(SHA256())))
        if self.kind == "EdDSA":
            return bytes(self.private.sign(data))
        return bytes(self.private.sign(data, padding.PKCS1v15(), SHA256()))


def assertion_json(challenge_id: Any, assertion: Assertion) -> dict[str, str]:
    return {
        "challenge_id": str(challenge_id),
        "credential_id": text(assertion.credential_id),
        "authenticator_data": text(assertion.authenticator_data),
        "client_data_json": text(assertion.client_data_json),
        "signature": text(assertion.signature),
    }


def register(user: User, key: SoftKey, *, at: Any = None) -> Passkey:
    """As if the person had added the key on the page."""
    return passkey_register(
        actor=Actor(ActorKind.PERSON, user.id, frozenset()),
        at=at or timezone.now(),
        user=user,
        rp_id=key.rp_id,
        store=lambda: WebAuthn.add(user, "Desk", key.registration()).instance,
    )
