"""Signatures of votes, pure: every field altered is caught, and the server's rules and the stand-alone verifier say the
same about every assertion."""

import json
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from governance.people.rules.passkeys import (
    Assertion,
    AssertionFault,
    PasskeyUnusable,
    RegisteredKey,
    assertion_fault,
    counter_fits,
    key_from_cose,
    sign_count,
    vote_challenge,
)
from sdk import holdpoint_verify as verifier
from tests.authenticator import PRESENT, VERIFIED, SoftKey, text

pytestmark = pytest.mark.unit
SIGNED = {"review": "r-1", "action_digest": "d" * 64, "verdict": "approve", "nonce": "n" * 64}
CHALLENGE = vote_challenge(**SIGNED)
PERSON = "a" * 64
KINDS = ("ES256", "EdDSA", "RS256")
KEYS = {kind: SoftKey(kind) for kind in KINDS}
PARTS = ("credential_id", "authenticator_data", "client_data_json", "signature")


def payload_of(registered: RegisteredKey) -> dict[str, Any]:
    """As the ledger entry of the registration has it."""
    return {
        "person": registered.person,
        "credential_sha256": registered.credential_sha256,
        "algorithm": registered.key.algorithm,
        "public_key": registered.key.text,
        "rp_id": registered.rp_id,
    }


def both(assertion: Assertion, registered: RegisteredKey, challenge: bytes = CHALLENGE) -> str:
    """What the server says, after the verifier said the same."""
    here = assertion_fault(assertion, challenge=challenge, registered=registered)
    signed = {part: b64encode(getattr(assertion, part)).decode() for part in PARTS}
    there = verifier.assertion_fault(signed, payload_of(registered), challenge)
    assert there == (here.value if here else "")
    return there


def test_the_challenge_is_the_hash_of_four_named_values_and_the_same_in_the_verifier() -> None:
    said = f'{{"action_digest":"{"d" * 64}","nonce":"{"n" * 64}","review":"r-1","verdict":"approve"}}'
    assert sha256(said.encode()).digest() == CHALLENGE
    assert verifier.vote_challenge(**SIGNED) == CHALLENGE


@pytest.mark.parametrize("name", SIGNED)
def test_each_of_the_four_values_changes_the_challenge(name: str) -> None:
    other = vote_challenge(**(SIGNED | {name: "another"}))
    assert other != CHALLENGE
    key = KEYS["ES256"]
    assert both(key.sign(CHALLENGE), key.registered(PERSON), other) == "challenge"


@pytest.mark.parametrize("kind", KINDS)
def test_an_assertion_of_the_registered_key_is_the_persons_signature(kind: str) -> None:
    key = KEYS[kind]
    assert both(key.sign(CHALLENGE), key.registered(PERSON)) == ""
    assert RegisteredKey.from_payload(payload_of(key.registered(PERSON))) == key.registered(PERSON)


@pytest.mark.parametrize("kind", KINDS)
def test_another_key_cannot_sign_for_it_even_under_its_credential_id(kind: str) -> None:
    mine = KEYS[kind]
    forger = SoftKey(kind, credential_id=mine.credential_id)
    assert both(forger.sign(CHALLENGE), mine.registered(PERSON)) == "signature"
    assert both(SoftKey(kind).sign(CHALLENGE), mine.registered(PERSON)) == "credential"


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"type": "webauthn.create"}, "client_data"),
        ({"type": "payment.get"}, "client_data"),
        ({"challenge": text(bytes(32))}, "challenge"),
        ({"challenge": None}, "challenge"),
        ({"origin": "https://elsewhere"}, "origin"),
        ({"origin": "https://testserver.elsewhere"}, "origin"),
        ({"origin": "https://eviltestserver"}, "origin"),
        ({"origin": "http://testserver"}, "origin"),
        ({"origin": "https://testserver/path"}, "origin"),
        ({"origin": "https://me@testserver"}, "origin"),
        ({"origin": None}, "origin"),
        ({"crossOrigin": True}, "origin"),
        ({"origin": "https://card.testserver:8443"}, ""),
    ],
)
def test_the_browser_must_say_that_it_signed_this_challenge_on_a_page_of_ours(said: dict[str, Any], fault: str) -> None:
    key = KEYS["ES256"]
    assert both(key.sign(CHALLENGE, **said), key.registered(PERSON)) == fault


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (PRESENT | VERIFIED, ""),
        (PRESENT | VERIFIED | 0x18, ""),
        (VERIFIED, "presence"),
        (PRESENT, "verification"),
        (0, "presence"),
        (PRESENT | VERIFIED | 0x40, "authenticator_data"),
        (PRESENT | VERIFIED | 0x80, "authenticator_data"),
    ],
)
def test_the_person_was_present_and_verified(flags: int, fault: str) -> None:
    key = KEYS["ES256"]
    assert both(key.sign(CHALLENGE, flags=flags), key.registered(PERSON)) == fault


def test_an_assertion_for_another_site_does_not_count() -> None:
    key = KEYS["ES256"]
    elsewhere = replace(key.registered(PERSON), rp_id="example.org")
    assert both(key.sign(CHALLENGE, origin="https://example.org"), elsewhere) == "rp_id"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_client_data_that_is_no_object_is_refused(data: bytes) -> None:
    key = KEYS["ES256"]
    assert both(replace(key.sign(CHALLENGE), client_data_json=data), key.registered(PERSON)) == "client_data"


@given(kind=st.sampled_from(KINDS), part=st.sampled_from(PARTS), place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_one_flipped_bit_in_any_field_is_caught_by_both(kind: str, part: str, place: int, bit: int) -> None:
    key = KEYS[kind]
    whole = key.sign(CHALLENGE)
    changed = bytearray(getattr(whole, part))
    changed[place % len(changed)] ^= 1 << bit
    assert both(replace(whole, **{part: bytes(changed)}), key.registered(PERSON)) != ""


@given(kind=st.sampled_from(KINDS), part=st.sampled_from(PARTS), data=st.binary(max_size=200))
def test_any_bytes_in_any_field_get_the_same_answer_from_both(kind: str, part: str, data: bytes) -> None:
    key = KEYS[kind]
    assert both(replace(key.sign(CHALLENGE), **{part: data}), key.registered(PERSON)) != ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", [-7, -8, -257, -37, 0])
def test_a_key_counts_only_under_its_own_algorithm(kind: str, algorithm: int) -> None:
    key = KEYS[kind]
    registered = key.registered(PERSON)
    other = replace(registered, key=replace(registered.key, algorithm=algorithm))
    assert (both(key.sign(CHALLENGE), other) == "") == (algorithm == registered.key.algorithm)


@pytest.mark.parametrize(
    "cose",
    [
        {},
        {1: 2, 3: -7, -1: 1, -2: bytes(32), -3: bytes(32)},
        {1: 2, 3: -35, -1: 2, -2: bytes(48), -3: bytes(48)},
        {1: 1, 3: -8, -1: 6, -2: bytes(3)},
        {1: 3, 3: -257, -1: b"\x01", -2: b"\x03"},
    ],
)
def test_keys_that_cannot_sign_votes_are_not_registered(cose: dict[int, Any]) -> None:
    with pytest.raises(PasskeyUnusable):
        key_from_cose(cose)


def test_a_curve_that_we_do_not_know_is_refused_by_both() -> None:
    key = SoftKey()
    key.private = ec.generate_private_key(ec.SECP384R1())
    registered = KEYS["ES256"].registered(PERSON)
    whole = replace(KEYS["ES256"].sign(CHALLENGE), signature=key.raw(b"x"))
    assert both(whole, registered) == AssertionFault.SIGNATURE


@pytest.mark.parametrize(
    ("before", "now", "fits"), [(0, 0, True), (0, 1, True), (4, 5, True), (5, 5, False), (5, 0, False)]
)
def test_a_counter_that_does_not_grow_is_a_copy(before: int, now: int, fits: bool) -> None:
    assert counter_fits(before=before, now=now) is fits


def test_the_counter_is_read_from_the_authenticators_own_data() -> None:
    key = SoftKey(counter=41)
    assert sign_count(key.sign(CHALLENGE).authenticator_data) == 42
    assert json.loads(key.sign(CHALLENGE).client_data_json)["type"] == "webauthn.get"
