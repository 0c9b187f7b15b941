"""Cursor pages: a stable order while rows are added, bounds on the size, no cursor but those that were given out."""

from base64 import b64encode
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from reasoncodes.base.actors import SYSTEM
from reasoncodes.services import reason_code_create
from tests.cast import Cast
from tests.config.test_problems import check

URL = "/api/v1/reason-codes"


def add(cast: Cast, number: int) -> str:
    row = reason_code_create(
        actor=SYSTEM,
        at=timezone.now(),
        organization_id=cast.organization.id,
        scope="human_decline",
        code=f"own_{number}",
        label=f"Own {number}",
    )
    return row.code


@pytest.fixture
def api(cast: Cast) -> APIClient:
    return cast.api("orchestrator:read")


def codes(answer: Any) -> list[str]:
    return [row["code"] for row in answer.json()["results"]]


def test_newest_first_and_a_page_says_where_the_next_one_is(cast: Cast, api: APIClient) -> None:
    made = [add(cast, number) for number in range(5)]
    first = api.get(URL, {"page_size": 2})
    assert set(first.json()) == {"next", "previous", "results"}
    assert codes(first) == [made[4], made[3]]
    assert first.json()["previous"] is None
    second = api.get(first.json()["next"])
    assert codes(second) == [made[2], made[1]]
    assert codes(api.get(second.json()["previous"])) == [made[4], made[3]]


def test_rows_added_meanwhile_neither_repeat_nor_hide_any(cast: Cast, api: APIClient) -> None:
    made = [add(cast, number) for number in range(7)]
    seen: list[str] = []
    url, number = f"{URL}?page_size=2&scope=human_decline", 100
    while url:
        page = api.get(url)
        seen += codes(page)
        add(cast, number := number + 1)
        url = page.json()["next"]
    own = [code for code in seen if code.startswith("own_")]
    assert own == made[::-1]
    assert len(seen) == len(set(seen))


def test_the_filter_is_kept_from_page_to_page(cast: Cast, api: APIClient) -> None:
    page = api.get(URL, {"scope": "denial", "page_size": 3})
    query = parse_qs(urlsplit(page.json()["next"]).query)
    assert query["scope"] == ["denial"]
    assert {row["scope"] for row in api.get(page.json()["next"]).json()["results"]} == {"denial"}


def test_a_page_has_fifty_rows_unless_asked_and_two_hundred_at_most(cast: Cast, api: APIClient) -> None:
    for number in range(205):
        add(cast, number)
    assert len(codes(api.get(URL))) == 50
    assert len(codes(api.get(URL, {"page_size": 200}))) == 200
    assert len(codes(api.get(URL, {"page_size": 100_000}))) == 200
    assert len(codes(api.get(URL, {"page_size": "9" * 400}))) == 200
    assert len(codes(api.get(URL, {"page_size": 1}))) == 1


@pytest.mark.parametrize("size", ["0", "-1", "", "many", "1.5", "²", "٣"])
def test_a_size_that_is_no_number_of_rows_is_400(api: APIClient, size: str) -> None:
    body = check(api.get(URL, {"page_size": size}), status=400, code="invalid-input")
    assert body["errors"][0]["pointer"] == "/page_size"


def cursor(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "value",
    [
        "zx81marker",
        "%00",
        "ü",
        cursor("p=zx81marker"),
        cursor("p=\x00"),
        cursor("p=' OR 1=1 --"),
        cursor("o=zx81marker"),
        cursor("o=-1"),
        cursor("p=01999999-0000-7000-8000-00000000000g"),
    ],
)
def test_a_cursor_that_nobody_gave_out_is_400_never_500(api: APIClient, value: str) -> None:
    body = check(api.get(URL, {"cursor": value}), status=400, code="invalid-input")
    assert body["errors"][0]["pointer"] == "/cursor"


def test_a_strangers_cursor_shows_nothing_of_the_stranger(cast: Cast) -> None:
    owner = cast.api("ledger:read", organization=cast.other)
    theirs = owner.get("/api/v1/ledger/entries", {"page_size": 1}).json()
    answer = cast.api("ledger:read").get(theirs["next"])
    assert {row["organization_id"] for row in answer.json()["results"]} <= {str(cast.organization.id)}
