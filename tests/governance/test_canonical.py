"""The fast way to canonical JSON gives the bytes of the reference implementation, or leaves it to that one."""

import enum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from governance.ledger.rules.entry import _is_plain, canonical_bytes, canonical_sha256

pytestmark = pytest.mark.unit

TEXT = st.text(st.characters(codec="utf-8"))
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner) | st.lists(inner).map(tuple),
)


class Word(enum.StrEnum):
    ONE = "one"


@given(VALUES)
def test_the_bytes_are_those_of_the_reference(value: Any) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(st.dictionaries(st.text(st.characters(max_codepoint=127)), st.integers(-9, 9) | TEXT))
def test_what_is_taken_the_fast_way_has_the_same_bytes(value: dict[str, Any]) -> None:
    assert _is_plain(value)
    assert canonical_bytes(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("code", [*range(0x21), 0x22, 0x5C, 0x7F, 0x85, 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x1F600])
def test_every_character_that_could_be_escaped_is_written_alike(code: int) -> None:
    value = {"k": chr(code), chr(code): 1}
    assert canonical_bytes(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value",
    [
        {"\U0001f600": 1, "\ue000": 2},  # UTF-16 and code points order these differently
        [2**53 - 1, -(2**53) + 1, 1.0, 1e21, 5e-324, -0.0],
        {"word": Word.ONE, Word.ONE: True},
        ((1,), [], {}, [{}]),
    ],
)
def test_the_odd_ones_come_out_like_the_reference(value: Any) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value", [2**53, -(2**53), float("nan"), float("inf"), {1: 2}, {"a": {None: 1}}, b"x", {"s": "\ud800"}, {1, 2}]
)
def test_what_json_cannot_hold_is_refused_like_by_the_reference(value: Any) -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical_bytes(value)


def test_the_hash_of_a_known_value_never_changes() -> None:
    value = {"b": [1, True, None, "ü"], "a": {"z": "\n", "y": -3}}
    assert canonical_sha256(value) == "e800f94b69e1044a7378ff2e7ebc64b787d6098ca46c15ec1c8654ce6810a274"
