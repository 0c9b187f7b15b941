"""Signatures, with the package `standardwebhooks` as the other side."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from attempts.execution.adapters.base import signed_headers
from workflows.webhooks.configured import keys_of, new_salt, secret_of
from workflows.webhooks.rules.events import body_bytes

pytestmark = pytest.mark.unit
ENDPOINT = uuid4()
DATA = {"instance_id": str(uuid4()), "payload": {"ort": "Zürich", "名": "検査", "sign": "\u2028 \U0001f7e2"}}
BODY = body_bytes("case.reviewed", "2026-11-16T12:00:00.000000Z", DATA)


def signed(*salts: bytes, at: datetime | None = None, body: bytes = BODY, message: str = "msg-1") -> dict[str, str]:
    keys = keys_of(ENDPOINT, salts)
    return signed_headers(keys=keys, message_id=message, at=at or datetime.now(UTC), body=body)


def accepts(secret: str, body: bytes, headers: dict[str, str]) -> bool:
    try:
        Webhook(secret).verify(body, headers)
    except (WebhookVerificationError, ValueError):  # not base64, not UTF-8, no `v1,` before it: refused too
        return False
    return True


def test_a_receiver_accepts_what_was_sent_with_its_secret_also_beyond_ascii() -> None:
    salt = new_salt()
    secret = secret_of(ENDPOINT, salt)
    assert Webhook(secret).verify(BODY, signed(salt))["data"] == DATA  # type: ignore[index]
    assert "Zürich".encode() in BODY
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert not accepts(secret_of(uuid4(), salt), BODY, signed(salt))
    assert not accepts(secret_of(ENDPOINT, new_salt()), BODY, signed(salt))


@pytest.mark.parametrize(
    ("minutes", "fine"), [(-6, False), (-4.9, True), (0, True), (4.9, True), (6, False), (-1440, False)]
)
def test_a_signature_is_good_for_minutes_not_for_ever(minutes: float, fine: bool) -> None:
    """Skew, and a replay of something recorded earlier: the moment is part of what is signed."""
    salt = new_salt()
    headers = signed(salt, at=datetime.now(UTC) + timedelta(minutes=minutes))
    assert accepts(secret_of(ENDPOINT, salt), BODY, headers) is fine
    fresh = headers | {"webhook-timestamp": str(int(datetime.now(UTC).timestamp()))}
    assert accepts(secret_of(ENDPOINT, salt), BODY, fresh) is (fresh == headers)


def test_a_replay_under_another_id_is_refused_and_under_its_own_it_is_a_known_duplicate() -> None:
    salt = new_salt()
    first, again = signed(salt), signed(salt, at=datetime.now(UTC) + timedelta(seconds=2))
    assert first["webhook-id"] == again["webhook-id"]  # what receivers deduplicate on; the signature differs
    assert first["webhook-signature"] != again["webhook-signature"]
    assert not accepts(secret_of(ENDPOINT, salt), BODY, first | {"webhook-id": "msg-2"})
    mixed = first | {"webhook-timestamp": again["webhook-timestamp"]}
    assert not accepts(secret_of(ENDPOINT, salt), BODY, mixed)


def test_every_flipped_bit_is_noticed() -> None:
    salt = new_salt()
    headers, secret = signed(salt), secret_of(ENDPOINT, salt)
    for place in range(len(BODY)):
        for bit in (0, 3, 7):
            changed = bytearray(BODY)
            changed[place] ^= 1 << bit
            assert not accepts(secret, bytes(changed), headers), (place, bit)
    for changed in (BODY[:-1], BODY + b" ", b"", BODY.replace(b"Z\xc3\xbc", b"Zu\xcc\x88")):
        assert not accepts(secret, changed, headers)
    for name, value in headers.items():
        for place in range(len(value)):
            flipped = value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :]
            kept = accepts(secret, BODY, headers | {name: flipped})
            # The last letter before base64's padding has bits that mean nothing.
            assert not kept or (name, place) == ("webhook-signature", len(value) - 2), (name, place)


def test_while_two_secrets_overlap_both_receivers_accept_the_same_request() -> None:
    old, new = new_salt(), new_salt()
    both = signed(new, old)
    assert both["webhook-signature"].count("v1,") == 2
    for salt in (old, new):
        assert accepts(secret_of(ENDPOINT, salt), BODY, both)
    after = signed(new)
    assert accepts(secret_of(ENDPOINT, new), BODY, after)
    assert not accepts(secret_of(ENDPOINT, old), BODY, after)


def test_a_receivers_secret_outlives_a_change_of_the_installations(settings: Any) -> None:
    salt, before = new_salt(), settings.SECRET_KEY
    old = secret_of(ENDPOINT, salt)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another secret of the installation", [before]
    assert accepts(old, BODY, signed(salt))
    assert accepts(secret_of(ENDPOINT, salt), BODY, signed(salt))
    assert secret_of(ENDPOINT, salt) != old
    settings.SECRET_KEY_FALLBACKS = []
    assert not accepts(old, BODY, signed(salt))
