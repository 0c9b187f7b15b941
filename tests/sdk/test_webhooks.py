"""The webhook helper against published vectors, our own adapter's signature, and whatever a forger may try."""

import base64
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from holdpoint_client import WebhookRefused, verify_webhook
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook as Reference

from attempts.execution.adapters.base import signature_headers, signing_secret
from tests.properties import examples

pytestmark = pytest.mark.unit
# The example of the Standard Webhooks specification and of its reference libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
BODY = b'{"test": 2432232314}'
AT = 1614265330.0


def test_the_published_vector_is_accepted_and_found_in_any_case_of_the_headers() -> None:
    upper = {name.title(): value for name, value in HEADERS.items()}
    found = verify_webhook(SECRET, upper, BODY, now=AT)
    assert (found.id, found.json()) == ("msg_p5jXN8AQM9LWM0D4loKWxJek", {"test": 2432232314})


@given(st.binary(max_size=300), st.binary(min_size=16, max_size=64), st.uuids())
@examples(60)
def test_what_the_reference_library_signs_is_accepted(body: bytes, key: bytes, id_: object) -> None:
    text, at = body.hex(), datetime.now(UTC)
    signature = Reference(base64.b64encode(key).decode()).sign(str(id_), at, text)
    headers = {"webhook-id": str(id_), "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}
    secret = "whsec_" + base64.b64encode(key).decode()
    assert verify_webhook(secret, headers, text.encode()).id == str(id_)


def test_what_the_http_adapter_signs_is_accepted_with_the_secret_that_it_prints() -> None:
    organization, body = uuid4(), '{"ü": 1}'.encode()
    at = datetime.now(UTC)
    headers = signature_headers(organization_id=organization, message_id="m-1", at=at, body=body)
    assert verify_webhook([SECRET, signing_secret(organization)], headers, body).body == body
    with pytest.raises(WebhookRefused):
        verify_webhook(signing_secret(uuid4()), headers, body)


@pytest.mark.parametrize(
    ("secret", "changes", "body", "now"),
    [
        (SECRET, {}, b'{"test": 2432232315}', AT),
        (SECRET, {}, BODY + b" ", AT),
        (SECRET, {}, BODY, AT + 301),
        (SECRET, {}, BODY, AT - 301),
        ("whsec_" + base64.b64encode(b"another secret!!").decode(), {}, BODY, AT),
        (SECRET, {"webhook-id": "msg_other"}, BODY, AT),
        (SECRET, {"webhook-id": "é\udcff"}, BODY, AT),
        (SECRET, {"webhook-timestamp": "1614265331"}, BODY, AT),
        (SECRET, {"webhook-timestamp": "١٦١٤٢٦٥٣٣٠"}, BODY, AT),
        (SECRET, {"webhook-timestamp": "9" * 400}, BODY, AT),
        (SECRET, {"webhook-timestamp": ""}, BODY, AT),
        (SECRET, {"webhook-signature": "v1,é"}, BODY, AT),
        (SECRET, {"webhook-signature": "v1a," + HEADERS["webhook-signature"][3:]}, BODY, AT),
        (SECRET, {"webhook-signature": "v1"}, BODY, AT),
        (SECRET, {"webhook-signature": " "}, BODY, AT),
    ],
)
def test_what_is_not_exactly_right_is_refused(secret: str, changes: dict[str, str], body: bytes, now: float) -> None:
    with pytest.raises(WebhookRefused):
        verify_webhook(secret, HEADERS | changes, body, now=now)


def test_while_a_secret_is_changed_either_side_may_have_both() -> None:
    new = "whsec_" + base64.b64encode(b"the new secret!!").decode()
    both = HEADERS | {
        "webhook-signature": "v1," + base64.b64encode(b"x" * 32).decode() + " " + HEADERS["webhook-signature"]
    }
    assert verify_webhook([new, SECRET], both, BODY, now=AT, tolerance=0).timestamp == int(AT)


def test_an_unusable_secret_is_a_fault_of_ours_and_not_a_refusal() -> None:
    for secret in ("", "whsec_", "whsec_%%%"):
        with pytest.raises(ValueError):
            verify_webhook(secret, HEADERS, BODY, now=AT)
