"""The strict content policy everywhere, relaxed only under /admin/ and /api/docs/; and nothing from other hosts."""

import re

import pytest
from django.test import Client

from tests.cast import Cast

LOOSE = ("'unsafe-inline'", "'unsafe-eval'")


def policy(path: str, client: Client | None = None) -> dict[str, list[str]]:
    header = (client or Client()).get(path, headers={"accept": "text/html"})["Content-Security-Policy"]
    return {words[0]: words[1:] for words in (part.split() for part in header.split(";"))}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/problems/",
        "/problems/not-found",
        "/missing",
        "/api/v1/reason-codes",
        "/api/schema/",
        "/health",
        "/adminx",
    ],
)
def test_pages_are_strict(db: None, path: str) -> None:
    found = policy(path)
    assert found["script-src"] == found["style-src"] == found["default-src"] == ["'self'"]
    assert found["object-src"] == found["frame-ancestors"] == found["base-uri"] == ["'none'"]
    assert not any(word in words for words in found.values() for word in (*LOOSE, "*", "https:"))


@pytest.mark.parametrize(("path", "evaluates"), [("/admin/login/", True), ("/api/docs/", False)])
def test_two_prefixes_are_looser_but_load_from_here_only(db: None, path: str, evaluates: bool) -> None:
    found = policy(path)
    assert "'unsafe-inline'" in found["script-src"]
    assert ("'unsafe-eval'" in found["script-src"]) is evaluates
    assert found["default-src"] == ["'self'"]
    assert not any(word.startswith(("http", "*", "//")) for words in found.values() for word in words)


def test_other_protective_headers_are_there(db: None) -> None:
    answer = Client().get("/")
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"


def test_console_pages_refer_to_no_other_host(cast: Cast) -> None:
    console = cast.console(cast.operator)
    for path in ("/admin/", "/admin/governance/organization/", "/admin/governance/serviceaccount/add/"):
        text = console.get(path).content.decode()
        assert re.findall(r"""(?:src|href|action)=["'](?:https?:)?//(?!testserver)""", text) == []
