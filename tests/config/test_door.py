"""The door's short way: what every answer of this server has, without what only browsers need."""

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from tests.attempts.test_intake import URL, body, post
from tests.cast import Cast
from tests.config.test_problems import check
from tests.governed import open_contract

SECURITY = (
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Referrer-Policy",
    "X-Content-Type-Options",
    "X-Frame-Options",
)


def test_its_answers_carry_the_security_headers_of_all_others(cast: Cast) -> None:
    open_contract(cast)
    client = cast.api("attempts:create")
    other = client.get("/api/v1/attempts")
    for answer in (post(client, body()), post(client, body()), post(client, "x"), post(APIClient(), body())):
        assert {name: answer.headers.get(name) for name in SECURITY} == {name: other.headers[name] for name in SECURITY}
        assert int(answer.headers["Content-Length"]) == len(answer.content)
        assert answer.headers["X-Request-ID"]
        assert answer.headers["traceparent"]


def test_it_asks_for_nothing_that_a_cookie_could_give(cast: Cast, django_assert_num_queries: Any) -> None:
    client = cast.session(cast.operator)
    with django_assert_num_queries(0):
        answer = post(client, body())
    check(answer, status=401, code="credential-missing")
    assert not answer.cookies


@pytest.mark.parametrize("secure", [True, False])
def test_over_https_it_says_so_and_without_it_leads_there(cast: Cast, settings: Any, secure: bool) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 60
    answer = Client().post(URL, {}, content_type="application/json", secure=secure)
    if secure:
        assert answer.status_code == 401
        assert answer.headers["Strict-Transport-Security"].startswith("max-age=60")
    else:
        assert (answer.status_code, answer.headers["Location"]) == (301, f"https://testserver{URL}")


def test_a_host_that_is_not_ours_is_refused(cast: Cast) -> None:
    answer = cast.api("attempts:create").post(URL, {}, headers={"host": "elsewhere.example"})
    check(answer, status=400, code="invalid-input")
    assert "elsewhere" not in answer.content.decode()


@pytest.mark.parametrize("path", [f"{URL}/", URL.replace("/1/", "/1/2/"), URL.replace("close-case", "close%00case")])
def test_an_address_that_only_looks_like_it_is_not_the_door(cast: Cast, path: str) -> None:
    check(cast.api("attempts:create").post(path, {}), status=404, code="not-found")


def test_an_error_that_nobody_foresaw_is_500_without_its_text(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.config.test_problems import breaking

    client = cast.api("attempts:create")
    with breaking("governance_apikey"):
        check(post(client, body()), status=500, code="internal-error")
