"""The closed door: decided from address, headers and credential. The body is not read and nothing is stored."""

import json
from typing import Any

import pytest
from prometheus_client import REGISTRY
from rest_framework.test import APIClient

from tests.cast import Cast
from tests.config.test_problems import check
from tests.governance.support import row_counts

MARKER = "zx81marker"
URL = f"/api/v1/execution/{MARKER}/1/attempts"
BODIES = [b"", b"{}", b"garbage \xff\x00", b"[" * 1000, json.dumps({"metadata": MARKER}).encode(), b"x" * 100_000]


class NeverRead:
    """A body that fails the test when anybody looks at it."""

    def __len__(self) -> int:
        return 50 * 1024 * 1024

    def read(self, *_: Any) -> bytes:
        raise AssertionError("the body was read")

    readline = read


def knock(client: APIClient, body: bytes = b"{}", url: str = URL, **headers: Any) -> Any:
    return client.post(url, body, content_type="application/json", headers=headers)


def refusals() -> float:
    labels = {"reason_code": "attempt_creation_disabled"}
    return REGISTRY.get_sample_value("holdpoint_attempts_refused_unread_total", labels) or 0.0


@pytest.mark.parametrize("body", BODIES)
def test_without_a_credential_it_is_401(db: None, body: bytes) -> None:
    before = row_counts()
    answer = knock(APIClient(), body)
    check(answer, status=401, code="credential-missing")
    assert answer["WWW-Authenticate"] == 'Bearer realm="holdpoint"'
    assert row_counts() == before


@pytest.mark.parametrize("body", BODIES)
def test_without_the_scope_it_is_403_naming_it(cast: Cast, body: bytes) -> None:
    client = cast.api("attempts:execute", "governance:write")
    before = row_counts()
    assert check(knock(client, body), status=403, code="scope-missing")["required_scope"] == "attempts:create"
    assert row_counts() == before


@pytest.mark.parametrize("body", BODIES)
def test_with_the_scope_an_unknown_contract_is_403_and_counted_and_nothing_is_stored(cast: Cast, body: bytes) -> None:
    client = cast.api("attempts:create")
    before, counted = row_counts(), refusals()
    answer = knock(client, body, **{"Idempotency-Key": "key-1"})
    assert check(answer, status=403, code="attempt-creation-disabled")["reason_code"] == "attempt_creation_disabled"
    assert row_counts() == before
    assert refusals() == counted + 1


@pytest.mark.parametrize("slug", ["no-such-contract", "UPPER", "a b", "é", "..", "%00", "x" * 300, "%2Fetc"])
@pytest.mark.parametrize("version", ["1", "0", "999999999999999999999999", "v1", "-1", "latest"])
def test_any_slug_and_version_that_is_not_an_open_contract_gets_the_same_answer(
    cast: Cast, slug: str, version: str
) -> None:
    answer = knock(cast.api("attempts:create"), url=f"/api/v1/execution/{slug}/{version}/attempts")
    assert answer.status_code in {403, 404}
    if answer.status_code == 403:
        check(answer, status=403, code="attempt-creation-disabled")
    else:  # ".." and an encoded slash make it another address
        check(answer, status=404, code="not-found")


def test_the_body_is_not_even_looked_at(cast: Cast) -> None:
    for client, status in ((APIClient(), 401), (cast.api("ledger:read"), 403), (cast.api("attempts:create"), 403)):
        environ = client._base_environ(
            PATH_INFO=URL,
            REQUEST_METHOD="POST",
            CONTENT_TYPE="application/json",
            CONTENT_LENGTH=str(50 * 1024 * 1024),
            **client._credentials,
        )
        environ["wsgi.input"] = NeverRead()
        assert client.request(**environ).status_code == status


def test_a_signed_in_person_cannot_use_the_door(cast: Cast) -> None:
    """Keys only: no cookie opens it, so no other site can make a browser knock."""
    check(knock(cast.session(cast.operator)), status=401, code="credential-missing")


def test_the_security_line_names_the_account_and_nothing_that_the_caller_wrote(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    client = cast.api("attempts:create")
    knock(client, json.dumps({"metadata": MARKER}).encode(), **{"Idempotency-Key": MARKER, "User-Agent": MARKER})
    (line,) = [record.msg for record in caplog.records if record.name == "holdpoint.security"]
    assert isinstance(line, dict)
    assert line["event"] == "attempt_refused_unread"
    assert line["reason_code"] == "attempt_creation_disabled"
    assert line["organization_id"] == str(cast.organization.id)
    assert line["service_account_id"]
    assert MARKER not in "".join(str(record.msg) + str(record.args) for record in caplog.records)


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete"])
def test_other_methods_are_405(cast: Cast, method: str) -> None:
    answer = getattr(cast.api("attempts:create"), method)(URL)
    check(answer, status=405, code="method-not-allowed")
    assert "POST" in answer["Allow"]
