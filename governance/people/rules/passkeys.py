"""Passkeys: what a person signs when they vote, the public keys that the ledger keeps, and whether a WebAuthn assertion
is theirs. Pure; `sdk/holdpoint_verify.py` checks the same with its own code, and a test compares the two."""

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from governance.ledger.rules.entry import canonical_bytes

ES256, EDDSA, RS256 = -7, -8, -257
_ORIGIN = re.compile(r"(https?)://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::[0-9]{1,5})?")
_HEAD = 37  # of authenticatorData: hash of the RP id, flags, counter
_PRESENT, _VERIFIED, _ATTESTED, _EXTENDED = 0x01, 0x04, 0x40, 0x80
_SMALLEST_RSA = 2048


class PasskeyUnusable(ValueError):
    """A public key of a kind that cannot sign votes."""


class AssertionFault(StrEnum):
    """Why an assertion is not this person's signature under this vote."""

    CREDENTIAL = "credential"
    CLIENT_DATA = "client_data"
    CHALLENGE = "challenge"
    ORIGIN = "origin"
    AUTHENTICATOR_DATA = "authenticator_data"
    RP_ID = "rp_id"
    PRESENCE = "presence"
    VERIFICATION = "verification"
    SIGNATURE = "signature"


@dataclass(frozen=True, slots=True)
class PasskeyKey:
    """A public key as the ledger keeps it: the COSE number of its algorithm, and its SubjectPublicKeyInfo (DER)."""

    algorithm: int
    spki: bytes

    @property
    def text(self) -> str:
        return b64encode(self.spki).decode()


@dataclass(frozen=True, slots=True)
class Assertion:
    """What an authenticator and a browser hand over for one signature."""

    credential_id: bytes
    authenticator_data: bytes
    client_data_json: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class RegisteredKey:
    """A passkey as the ledger entry of its registration names it."""

    person: str
    credential_sha256: str
    rp_id: str
    key: PasskeyKey

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "RegisteredKey":
        """Raises KeyError or ValueError if it is not such a payload."""
        key = PasskeyKey(int(payload["algorithm"]), b64decode(payload["public_key"], validate=True))
        return cls(payload["person"], payload["credential_sha256"], payload["rp_id"], key)


def vote_challenge(*, review: str, action_digest: str, verdict: str, nonce: str) -> bytes:
    """The challenge that a vote's signature answers: the SHA-256 of exactly these four, as canonical JSON."""
    # Nothing can be added later: an older verifier would rebuild another challenge.
    signed = {"review": review, "action_digest": action_digest, "verdict": verdict, "nonce": nonce}
    return sha256(canonical_bytes(signed)).digest()


def key_from_cose(cose: Mapping[int, Any]) -> PasskeyKey:
    """The public key of a registration, out of its COSE form. Raises PasskeyUnusable."""
    try:
        public = _public_key(cose)
    except (KeyError, TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise PasskeyUnusable("the public key cannot be read") from error
    spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return PasskeyKey(int(cose[3]), spki)


def _public_key(cose: Mapping[int, Any]) -> Any:
    kind, algorithm = cose[1], cose[3]
    if (kind, algorithm, cose.get(-1)) == (2, ES256, 1):
        x, y = int.from_bytes(cose[-2], "big"), int.from_bytes(cose[-3], "big")
        return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    if (kind, algorithm, cose.get(-1)) == (1, EDDSA, 6):
        return Ed25519PublicKey.from_public_bytes(cose[-2])
    if (kind, algorithm) == (3, RS256):
        return rsa.RSAPublicNumbers(int.from_bytes(cose[-2], "big"), int.from_bytes(cose[-1], "big")).public_key()
    raise PasskeyUnusable("the algorithm is not ES256, EdDSA or RS256")


def assertion_fault(assertion: Assertion, *, challenge: bytes, registered: RegisteredKey) -> AssertionFault | None:
    """What is wrong with the assertion, or None: the person's own authenticator signed exactly this challenge, and
    verified them (by fingerprint, face or PIN) while doing so."""
    if sha256(assertion.credential_id).hexdigest() != registered.credential_sha256:
        return AssertionFault.CREDENTIAL
    return (
        _client_data_fault(assertion.client_data_json, challenge=challenge, rp_id=registered.rp_id)
        or _authenticator_fault(assertion.authenticator_data, rp_id=registered.rp_id)
        or _signature_fault(assertion, registered.key)
    )


def _client_data_fault(data: bytes, *, challenge: bytes, rp_id: str) -> AssertionFault | None:
    try:
        said = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return AssertionFault.CLIENT_DATA
    # `webauthn.create` would let a registration pass as a signature.
    if not isinstance(said, dict) or said.get("type") != "webauthn.get":
        return AssertionFault.CLIENT_DATA
    if said.get("challenge") != urlsafe_b64encode(challenge).decode().rstrip("="):
        return AssertionFault.CHALLENGE
    if said.get("crossOrigin") not in (None, False) or not _origin_fits(said.get("origin"), rp_id):
        return AssertionFault.ORIGIN
    return None


def _origin_fits(origin: Any, rp_id: str) -> bool:
    """A page of the relying party over HTTPS; over HTTP only on localhost, as browsers allow it."""
    found = _ORIGIN.fullmatch(origin) if isinstance(origin, str) else None
    if found is None:
        return False
    scheme, host = found[1], found[2]
    local = host == "localhost" or host.endswith(".localhost")
    return (scheme == "https" or local) and (host == rp_id or host.endswith(f".{rp_id}"))


def _authenticator_fault(data: bytes, *, rp_id: str) -> AssertionFault | None:
    if len(data) < _HEAD:
        return AssertionFault.AUTHENTICATOR_DATA
    flags = data[32]
    # Nothing may follow that the flags do not announce; an attested credential belongs to a registration.
    if flags & _ATTESTED or bool(flags & _EXTENDED) != (len(data) > _HEAD):
        return AssertionFault.AUTHENTICATOR_DATA
    if data[:32] != sha256(rp_id.encode()).digest():
        return AssertionFault.RP_ID
    if not flags & _PRESENT:
        return AssertionFault.PRESENCE
    return None if flags & _VERIFIED else AssertionFault.VERIFICATION


def _signature_fault(assertion: Assertion, key: PasskeyKey) -> AssertionFault | None:
    signed = assertion.authenticator_data + sha256(assertion.client_data_json).digest()
    try:
        public: Any = load_der_public_key(key.spki)
        if key.algorithm == ES256 and _is_p256(public):
            public.verify(assertion.signature, signed, ec.ECDSA(SHA256()))
        elif key.algorithm == EDDSA and isinstance(public, Ed25519PublicKey):
            public.verify(assertion.signature, signed)
        elif key.algorithm == RS256 and isinstance(public, rsa.RSAPublicKey) and public.key_size >= _SMALLEST_RSA:
            public.verify(assertion.signature, signed, padding.PKCS1v15(), SHA256())
        else:
            return AssertionFault.SIGNATURE
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        return AssertionFault.SIGNATURE
    return None


def _is_p256(public: Any) -> bool:
    return isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1)


def sign_count(authenticator_data: bytes) -> int:
    """The authenticator's counter of signatures; 0 if it keeps none."""
    return int.from_bytes(authenticator_data[33:_HEAD], "big")


def counter_fits(*, before: int, now: int) -> bool:
    """A counter that does not grow may mean that the authenticator was copied. Many keep none and always say 0."""
    return now > before or (now == 0 and before == 0)
