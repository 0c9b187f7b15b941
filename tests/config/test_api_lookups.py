"""No list of the API tells what is in a column that it does not return: an unknown filter is refused, with the same
bytes for every guess."""

from typing import Any

import pytest

from reasoncodes.base.api import ApiView
from tests.cast import Cast
from tests.contract.permissions import patterns

HOSTILE = [
    ("password__startswith", "p", "x"),
    ("service_account__keys__sha256__gte", "0", "f"),
    ("organization__service_accounts__keys__sha256__regex", "^0", "^f"),
    ("id__regex", "^0", "^f"),
    ("state__in", "open", "gone"),
    ("organization_id__gt", "0", "f"),
    ("note__salt", "0", "f"),
    ("ordering", "password", "-id"),
    ("order_by", "password", "-id"),
    ("search", "a", "zzz"),
    ("fields", "password", "id"),
    ("expand", "service_account", "organization"),
    ("_to_field", "password", "id"),
    ("o", "1", "-1"),
]
FIXED = {"X-Request-ID": "0190a0b0-0000-7000-8000-000000000001"}


def lists() -> list[str]:
    """Every route of the API that answers a GET and needs no id."""
    found = []
    for route, callback in patterns("api/v1/"):
        view: Any = getattr(callback, "view_class", None) or callback.cls
        if "<" not in route and issubclass(view, ApiView) and hasattr(view, "get"):
            found.append(f"/{route}")
    return found


def test_there_are_enough_of_them() -> None:
    assert len(lists()) > 20


@pytest.mark.parametrize("path", lists())
def test_an_unknown_filter_is_400_with_the_same_bytes_for_every_guess(cast: Cast, path: str) -> None:
    api = cast.api()
    if api.get(path).status_code == 403:  # for people only
        api = cast.session(cast.operator)
    for name, *guesses in HOSTILE:
        first, second = (api.get(path, {name: guess}, headers=FIXED) for guess in guesses)
        assert (first.status_code, second.status_code) == (400, 400), name
        assert first.content == second.content, name
