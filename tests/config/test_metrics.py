"""`/metrics`: open only where no token is set, and without a word that a caller wrote."""

from typing import Any

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
TOKEN = "a-token-for-prometheus"


@pytest.fixture
def guarded(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN


def get(**headers: str) -> Any:
    return Client(raise_request_exception=False).get("/metrics", headers=headers)


def test_with_the_token_the_figures_are_there(guarded: None) -> None:
    answer = get(authorization=f"Bearer {TOKEN}")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    assert b"holdpoint_http_requests_total" in answer.content
    assert b"holdpoint_attempts_refused_unread_total" in answer.content


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", f"Bearer {TOKEN}x", TOKEN[:-1], f"Basic {TOKEN}", "Bearer ü", "Bearer \xff\x00"]
)
def test_without_it_the_answer_is_401(guarded: None, header: str) -> None:
    answer = get(authorization=header) if header else get()
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert b"holdpoint_http" not in answer.content


def test_where_no_token_is_set_nobody_is_asked_for_one() -> None:
    assert get().status_code == 200


def test_methods_and_paths_that_callers_invent_do_not_become_labels() -> None:
    client = Client(raise_request_exception=False)
    client.generic("ZX81MARKER", "/health")
    client.get("/zx81marker")
    text = get().content.decode()
    assert "zx81marker" not in text.lower()
    assert 'method="other"' in text
    assert 'route="unmatched"' in text
