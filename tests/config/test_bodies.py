"""Bodies at the HTTP door: limits first, then JSON, then the shape. Nothing is stored, nothing is repeated."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.cast import Cast
from tests.config.test_problems import check
from tests.governance.support import row_counts

URL = "/api/v1/reason-codes"
GOOD = {"scope": "human_decline", "code": "tired", "label": "Tired"}


@pytest.fixture
def api(cast: Cast) -> APIClient:
    api = cast.api("orchestrator:read", "orchestrator:write")
    api.get(URL)  # the key's "last used" is written once in ten minutes
    return api


def post(api: APIClient, raw: bytes) -> Any:
    return api.post(URL, raw, content_type="application/json")


def padded(size: int) -> bytes:
    body = json.dumps(GOOD).encode()
    return body + b" " * (size - len(body))


def test_64_kib_are_taken_and_one_byte_more_is_413(api: APIClient) -> None:
    before = row_counts()
    check(post(api, padded(64 * 1024 + 1)), status=413, code="body-too-large")
    assert row_counts() == before
    assert post(api, padded(64 * 1024)).status_code == 201


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"[" * 9 + b"]" * 9, "body-too-deep"),
        (b'{"scope":"halt","scope":"denial","code":"x1","label":"x"}', "invalid-input"),
        (b'{"scope":"human_decline","code":"tired","label":NaN}', "invalid-input"),
        (b'{"scope":"human_decline","code":"tired","label":"\xff"}', "invalid-input"),
        (b'{"scope":"human_decline","code":"tired","label":"\\ud800"}', "invalid-input"),
        (b'{"scope":"human_decline","code":"tired","label":"a\\u0000b"}', "invalid-input"),
        (b'{"scope":"human_decline","code":"tired","label":{}}', "invalid-input"),
        (b'{"scope":"human_decline","code":"tired","label":1e999}', "invalid-input"),
        (b"", "invalid-input"),
        (b"null", "invalid-input"),
        (b"[]", "invalid-input"),
        (b'"text"', "invalid-input"),
        (b"17", "invalid-input"),
        (b"zx81marker", "invalid-input"),
    ],
)
def test_a_bad_body_is_400_and_stores_nothing(api: APIClient, raw: bytes, code: str) -> None:
    before = row_counts()
    check(post(api, raw), status=400, code=code)
    assert row_counts() == before
    assert post(api, json.dumps(GOOD).encode()).status_code == 201


def test_a_body_that_is_not_an_object_points_at_the_whole(api: APIClient) -> None:
    assert post(api, b"[]").json()["errors"][0]["pointer"] == ""
