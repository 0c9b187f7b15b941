"""Slack's signature over the raw bytes, against Slack's own library: skew, byte flips, what is not ASCII or UTF-8."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.signature import SignatureVerifier

from attempts.notify.rules.delivery import SKEW_SECONDS, slack_signature, slack_signature_fits

pytestmark = pytest.mark.unit
NOW = 1_790_000_000
BODY = b"payload=%7B%22x%22%3A%22d%C3%A9cid%C3%A9%22%7D"


def fits(**changes: object) -> bool:
    stamp = str(changes.get("timestamp", NOW))
    facts = {"secret": "s3cret-of-the-app", "timestamp": stamp, "body": BODY, "now": float(NOW)}
    signature = slack_signature(secret="s3cret-of-the-app", timestamp=stamp, body=BODY).decode()
    return slack_signature_fits(**({"signature": signature} | facts | changes))  # type: ignore[arg-type]


@given(st.text(max_size=300))
def test_it_is_the_signature_that_slacks_library_makes(text: str) -> None:
    try:
        body = text.encode()
    except UnicodeEncodeError:
        return
    theirs = SignatureVerifier("a secret").generate_signature(timestamp=str(NOW), body=body)
    assert slack_signature(secret="a secret", timestamp=str(NOW), body=body).decode() == theirs


def test_five_minutes_either_way_and_no_second_more() -> None:
    for seconds, good in ((0, True), (SKEW_SECONDS, True), (-SKEW_SECONDS, True), (301, False), (-301, False)):
        assert fits(timestamp=str(NOW + seconds)) is good, seconds


def test_every_flipped_byte_of_the_body_and_of_the_signature_is_seen() -> None:
    right = slack_signature(secret="s3cret-of-the-app", timestamp=str(NOW), body=BODY)
    for place in range(len(BODY)):
        assert not fits(body=BODY[:place] + bytes([BODY[place] ^ 1]) + BODY[place + 1 :]), place
    for place in range(len(right)):
        wrong = right[:place] + bytes([right[place] ^ 1]) + right[place + 1 :]
        assert not fits(signature=wrong.decode("latin-1")), place


@pytest.mark.parametrize(
    "changes",
    [
        {"signature": ""},
        {"signature": "v0="},
        {"signature": "v0=é" + "0" * 63},
        {"signature": "\udcff" * 67},
        {"timestamp": ""},
        {"timestamp": "١٧٩٠٠٠٠٠٠٠"},
        {"timestamp": "1e9"},
        {"timestamp": "9" * 400},
        {"timestamp": str(-NOW)},
        {"secret": "another"},
        {"body": b"\xff\xfe" + BODY},
        {"now": time.time() + 10**9},
    ],
)
def test_what_is_not_slacks_is_refused_and_raises_nothing(changes: dict[str, object]) -> None:
    right = {"signature": slack_signature(secret="s3cret-of-the-app", timestamp=str(NOW), body=BODY).decode()}
    facts = {"secret": "s3cret-of-the-app", "timestamp": str(NOW), "body": BODY, "now": float(NOW)}
    assert slack_signature_fits(**(right | facts))  # type: ignore[arg-type]
    assert not slack_signature_fits(**(right | facts | changes))  # type: ignore[arg-type]
