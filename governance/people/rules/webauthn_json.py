"""WebAuthn's JSON, as browsers take and give it: bytes are base64url without padding."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from typing import Any

from governance.people.rules.passkeys import Assertion

PARTS = ("credential_id", "authenticator_data", "client_data_json", "signature")
# Longest text of each part. A credential id has at most 1023 bytes; the others are far shorter in practice.
LONGEST = {"credential_id": 1364, "authenticator_data": 2048, "client_data_json": 2048, "signature": 1024}


class AssertionUnreadable(ValueError):
    """A part of an assertion is missing, too long or not base64url. `part` names it."""

    def __init__(self, part: str) -> None:
        super().__init__(part)
        self.part = part


def request_options(*, challenge: bytes, rp_id: str, credential_ids: Sequence[bytes]) -> dict[str, Any]:
    """The options for `navigator.credentials.get`."""
    return {
        "challenge": _text(challenge),
        "rpId": rp_id,
        "timeout": 300_000,
        # Possession alone would let anybody sign who holds the authenticator for a moment.
        "userVerification": "required",
        "allowCredentials": [{"type": "public-key", "id": _text(one)} for one in credential_ids],
    }


def assertion_read(given: Mapping[str, Any]) -> Assertion:
    """The assertion that was sent. Raises AssertionUnreadable."""
    return Assertion(**{part: _bytes(given.get(part), part) for part in PARTS})


def _bytes(text: Any, part: str) -> bytes:
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST[part] or not text.isascii():
        raise AssertionUnreadable(part)
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Base64Error, ValueError) as error:
        raise AssertionUnreadable(part) from error


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
