"""What the JSON parser takes and refuses. It never repeats the body and never builds what is too deep."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoncodes.base.errors import BodyTooDeep, BodyTooLarge, InvalidInput
from reasoncodes.base.json_body import parse_json

pytestmark = pytest.mark.unit


def nested(depth: int, *, opening: str = "[", closing: str = "]") -> bytes:
    return (opening * depth + closing * depth).encode()


def test_eight_levels_are_fine_and_nine_are_not() -> None:
    parse_json(nested(8))
    with pytest.raises(BodyTooDeep):
        parse_json(nested(9))
    parse_json(b'{"a":' * 7 + b"{}" + b"}" * 7)
    with pytest.raises(BodyTooDeep):
        parse_json(b'{"a":' * 8 + b"{}" + b"}" * 8)


def test_brackets_inside_strings_and_side_by_side_are_not_depth() -> None:
    text = json.dumps({"a": "[[[[[[[[[[{{{{{{{{{{", 'quote " and \\ [': ["[" * 20] * 20}).encode()
    assert parse_json(text) == json.loads(text)
    assert len(parse_json(b"[" + b",".join([b"[]"] * 1000) + b"]")) == 1000


def test_sixty_thousand_brackets_are_refused_without_being_built() -> None:
    with pytest.raises(BodyTooDeep):
        parse_json(b"[" * 60_000)


def test_sixty_four_kibibytes_are_fine_and_one_more_byte_is_not() -> None:
    fits = b'"' + b"x" * (64 * 1024 - 2) + b'"'
    assert len(parse_json(fits)) == 64 * 1024 - 2
    with pytest.raises(BodyTooLarge):
        parse_json(fits + b" ")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"{",
        b'{"a":1,"a":2}',
        b'[{"a":{"b":1,"b":1}}]',
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"[1e999]",
        b"[-1e999]",
        b"[" + b"9" * 5000 + b"]",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        '{"a":1}'.encode("utf-16"),
        b'"\\ud800"',
        b'{"\\uDFFF":1}',
        b'"\\ud800\\ud800"',
        b'"\\u0000"',
        b'{"a\\u0000b":1}',
        b"{'a':1}",
        b'{"a":1}garbage',
        b'"\n"',
    ],
)
def test_what_is_not_exactly_json_is_refused_without_being_repeated(raw: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_json(raw)
    assert caught.value.detail == "The body is not valid JSON."


@pytest.mark.parametrize("raw", [b'"\\ud83d\\ude00"', b'"\\\\u0000"', b'"\\\\ud800"', b'"\\u00e9"', b"1.5e3", b"{}"])
def test_escapes_that_mean_a_character_are_fine(raw: bytes) -> None:
    assert parse_json(raw) == json.loads(raw)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=10,
)


@given(value=values)
def test_it_agrees_with_the_standard_library_on_everything_it_takes(value: Any) -> None:
    raw = json.dumps(value).encode()
    try:
        parsed = parse_json(raw)
    except BodyTooDeep:
        return
    except InvalidInput:
        assert "\x00" in json.dumps(value, ensure_ascii=False) or "\\u0000" in raw.decode()
        return
    assert parsed == json.loads(raw)


@given(raw=st.binary(max_size=200))
def test_no_bytes_whatever_end_in_anything_but_a_value_or_a_refusal(raw: bytes) -> None:
    try:
        value = parse_json(raw)
    except (InvalidInput, BodyTooDeep):
        return
    json.dumps(value, allow_nan=False).encode()
