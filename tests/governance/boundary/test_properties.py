"""Properties: never raises, finds what is planted anywhere, repeats nothing, and takes linear time."""

import time
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.boundary.rules import BoundaryPolicy, inspect_metadata, inspect_note, inspect_reference
from governance.boundary.rules.checksums import luhn
from governance.boundary.rules.detectors import DETECTOR_NAMES, InspectedText, tripped
from governance.boundary.rules.findings import RULES
from governance.boundary.rules.keys import key_facts
from governance.boundary.rules.text import normalise
from tests.governance.boundary.corpus import ACCEPTED, REFUSED
from tests.properties import examples

pytestmark = pytest.mark.unit

OPEN = BoundaryPolicy(schema=None, max_bytes=65_536, max_depth=12)
CLOSED = BoundaryPolicy.from_document({})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
PLANTED = [
    (rule, value) for rule, cases in REFUSED.items() for key, value in cases if key == "link" and isinstance(value, str)
]
HARMLESS = st.sampled_from([value for _, value in ACCEPTED])
FILLER = st.dictionaries(st.sampled_from(["alpha", "beta", "gamma", "delta"]), HARMLESS, max_size=3)


@given(st.dictionaries(st.text(max_size=20), JSON, max_size=5))
@examples(150)
def test_no_json_value_makes_it_raise(metadata):
    for policy in (OPEN, CLOSED):
        for finding in inspect_metadata(metadata, policy=policy):
            assert finding.message.startswith(f"`{finding.field}` ")
            assert finding.rule in RULES
            assert finding.pointer.startswith("/metadata")


@given(st.text(max_size=300))
@examples(150)
def test_no_text_makes_it_raise(text):
    inspect_note(text)
    inspect_reference(text, pointer="/r")


@given(
    planted=st.sampled_from(PLANTED),
    filler=FILLER,
    way=st.lists(st.sampled_from(["list", "object"]), max_size=6),
    as_key=st.booleans(),
)
@examples(200)
def test_what_is_planted_anywhere_is_found_and_repeated_nowhere(planted, filler, way, as_key):
    rule, text = planted
    # A key is a name: `chest_pain` may be one.
    value = {text: 1} if as_key and rule != "clinical_phrase" else text
    for step in way:
        value = [value, 7] if step == "list" else {"inner": value, **filler}
    found = inspect_metadata({"outer": value, **filler}, policy=OPEN)
    assert rule in {finding.rule for finding in found}
    for finding in found:
        shown = f"{finding!r} {finding.message} {finding.pointer}"
        assert text not in shown
        assert normalise(text) not in shown


@given(st.sampled_from(PLANTED), st.randoms(use_true_random=False))
@examples(150)
def test_zero_width_characters_hide_nothing(planted, random):
    rule, text = planted
    place = random.randrange(len(text) + 1)
    hidden = text[:place] + random.choice("\u200b\u200d\u2060\ufeff\u00ad") + text[place:]
    assert rule in {finding.rule for finding in inspect_metadata({"link": hidden}, policy=OPEN)}


@given(st.sampled_from([case for case in PLANTED if case[1].isascii()]))
@examples(100)
def test_full_width_characters_hide_nothing(planted):
    rule, text = planted
    wide = "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)
    assert rule in {finding.rule for finding in inspect_metadata({"link": wide}, policy=OPEN)}


@given(st.uuids(), st.binary(max_size=32).map(sha256))
@examples(300)
def test_no_uuid_of_a_real_version_and_no_sha256_is_ever_suspicious(uuid, digest):
    versioned = uuid.__class__(int=uuid.int, version=4)
    for text in (str(versioned), f"case/{versioned}", digest.hexdigest(), f"sha256:{digest.hexdigest()}"):
        assert inspect_reference(text, pointer="/r") == ()


@given(st.integers(min_value=10**14, max_value=10**15 - 1))
@examples(100)
def test_every_card_number_is_found_with_and_without_separators(body):
    stem = "4" + str(body)[1:]
    number = next(stem + str(check) for check in range(10) if luhn(stem + str(check)))
    grouped = " ".join(number[place : place + 4] for place in range(0, 16, 4))
    for value in (number, grouped, grouped.replace(" ", "-"), int(number), f"ref {grouped} x"):
        assert "card_number" in {f.rule for f in inspect_metadata({"link": value}, policy=OPEN)}


@given(st.text(max_size=40))
@examples(200)
def test_normalising_twice_changes_nothing_more(text):
    assert normalise(normalise(text)) == normalise(text)


ADVERSARIAL = [
    "a@", "a@a.", "@a.", "1-", "1 ", "12 34 ", "0 ", "+1 ", "(1", "1.", "4111 ", "4111-", "eyJ", "eyJ-", "sk-", "hp_",
    "a.", "A b ", "John ", "John, ", "Dr. ", "a^", "a-", "a'", "A", "9", "data:", "data:a", "-----BEGIN ", "bearer ",
    "password", "password=", "://a:", "://", "xoxb-", "ssn ", "ssn:", "dob ", "born ", "born:", "mrn ", "policy no ",
    "call ", "call 1", "aA1+", "a/", "\u200b", "ﷺ", "胸", "1/", "784-", "00 1 ", "0a", "12345678-1234-", "age ", "7 y",
    "patientName", "patient_name_", "Patient-A", "mrn-1", "mrn1 ", "dob1", "ssn1-", "tel1 ", "card1-1", "secret1",
    "bearer-a", "authorization: token ", " at a dot ", " at a.a", "(at)a.", "-at-", "-dot-", "_at_a_dot_", "a@ ",
    '{"a', '{"a":', '["a"', "<a", '<a b="c" ', "</a", "PID|a", "ISA*a*", "%41", "%25", "&amp;", "&#65;", "\\u0041",
    "SmFuZSBEb2U", "JTI1", "4a616e65", "4a ", "chest pain ", "type 2 ", "ра", "JohnSmith", "a\u0301", "password.a",
]  # fmt: skip


def cpu_seconds(text):
    subject, start = InspectedText(text), time.process_time()
    tripped(subject, frozenset(DETECTOR_NAMES))
    return time.process_time() - start


@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_long_hostile_text_takes_linear_time(unit):
    """Straight into the detectors, past the length cap: four times the text may not cost sixteen times the work."""
    text = normalise(unit * 65_536)[:65_536]
    large = cpu_seconds(text)
    if large > 0.15:  # below that it is fast whatever its shape; above it may also have been a collector's pause
        large = min(large, cpu_seconds(text), cpu_seconds(text))
        assert large < 9 * min(cpu_seconds(text[:16_384]) for _ in range(3))
    assert large < 2.0


@pytest.mark.parametrize("unit", ["a_", "aB", "A", "é", "1a", "\u0344"])
def test_long_keys_take_linear_time(unit):
    start = time.perf_counter()
    key_facts((unit * 65_536)[:65_536])
    assert time.perf_counter() - start < 1.0


def test_twice_the_metadata_takes_about_twice_the_time():
    def cost(count):
        metadata = {f"key_{number}": "gpt-4o 2024-08-06 x" for number in range(count)}
        start = time.perf_counter()
        inspect_metadata(metadata, policy=OPEN)
        return time.perf_counter() - start

    small, large = (min(cost(count) for _ in range(3)) for count in (200, 1600))
    assert large < small * 8 * 4
