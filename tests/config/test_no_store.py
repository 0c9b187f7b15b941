"""Nothing that Holdpoint answers stays in a cache, and polling with an entity tag still works."""

from typing import Any

import pytest
from django.test import Client

from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import HOLD, open_contract

HX = {"HX-Request": "true"}


def stored(answer: Any) -> bool:
    return "no-store" not in answer.get("Cache-Control", "")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/accounts/login/",
        "/admin/",
        "/admin/figures/",
        "/admin/schedule/",
        "/admin/attempts/attempt/",
        "/admin/attempts/attempt/export/",
        "/admin/attempts/attempt/?password__startswith=p",
        "/admin/nothing/",
        "/review/",
        "/review/nothing",
        "/api/v1/attempts",
        "/api/v1/attempts?nothing=1",
        "/api/v1/nothing",
        "/api/schema/",
        "/health",
        "/problems/",
        "/metrics",
    ],
)
def test_pages_lists_and_errors_are_not_stored(cast: Cast, path: str) -> None:
    for client in (cast.console(cast.operator), cast.console(cast.nobody), Client(raise_request_exception=False)):
        assert not stored(client.get(path)), path


def test_answers_of_intake_and_of_the_review_queue_are_not_stored(cast: Cast) -> None:
    open_contract(cast, rules=HOLD)
    api = cast.api("attempts:create")
    held = post(api, body())
    assert not stored(held)
    assert held.status_code == 202
    assert not stored(post(api, {"nothing": 1}))
    assert not stored(Client().post("/api/v1/execution/none/1/attempts", b"x", content_type="text/plain"))
    reviewer = cast.console(cast.reviewer)
    card = f"/review/{held.json()['review']['id']}"
    assert not stored(reviewer.get(card))


def test_polling_with_the_entity_tag_is_still_answered_with_304(cast: Cast) -> None:
    for path, client in (
        ("/review/live", cast.console(cast.reviewer)),
        ("/admin/figures/", cast.console(cast.operator)),
    ):
        first = client.get(path, headers=HX)
        assert (first.status_code, stored(first)) == (200, False)
        again = client.get(path, headers=HX | {"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content, stored(again)) == (304, b"", False)


def test_static_files_keep_their_caching(db: None) -> None:
    answer = Client().get("/static/holdpoint/console.css")
    answer.close()
    assert (answer.status_code, stored(answer)) == (200, True)
    assert not stored(Client(raise_request_exception=False).get("/static/holdpoint/nothing.css"))
