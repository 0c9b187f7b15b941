"""No list of the console tells what is in a hidden column: every registered page, tried with lookups that are not its
own."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from attempts.lifecycle.models import Attempt
from attempts.notify.models import ChatWorkspace
from config.apps import close_foreign_pages
from governance.console.admin.lists import ListPages
from governance.console.admin.lookups import is_secret, secrets_listed
from governance.console.models import SavedFilter
from governance.people.models import ApiKey, User
from tests.cast import Cast
from tests.governed import open_contract

PAGES = sorted(admin.site._registry, key=lambda model: model._meta.label)
# A lookup and two guesses, of which one is right for some row.
HOSTILE = [
    ("password__startswith", "p", "x"),
    ("password__regex", "^p", "^x"),
    ("password__iregex", "^P", "^X"),
    ("password__gte", "a", "z"),
    ("password__contains", "$", "#"),
    ("user__password__startswith", "p", "x"),
    ("groups__user__password__regex", "^p", "^x"),
    ("groups__user__password__startswith", "p", "x"),
    ("user_permissions__codename__contains", "a", "zz"),
    ("service_account__keys__sha256__gte", "00", "ff"),
    ("service_account__responsible__password__startswith", "p", "x"),
    ("keys__sha256__startswith", "0", "f"),
    ("sha256__gte", "0", "f"),
    ("organization__service_accounts__keys__sha256__gt", "0", "f"),
    ("bot_token_sealed__startswith", "g", "x"),
    ("signing_secret_sealed__regex", ".", "x{9}"),
    ("salt__isnull", "0", "1"),
    ("note__text__icontains", "a", "zzz"),
    ("note__salt__gte", "0", "f"),
    ("payload__has_key", "name", "zzz"),
    ("body__icontains", "a", "zzz"),
    ("id__regex", "^0", "^f"),
    ("id__startswith", "0", "f"),
    ("pk__in", "1,2", "3"),
    ("state__in", "open,draft", "gone"),
    ("organization__slug__startswith", "c", "x"),
    ("created_at__year", "2026", "1999"),
    ("at__date__gte", "2026-01-01", "2099-01-01"),
    ("_to_field", "password", "id"),
    ("_popup", "1", "0"),
    ("_facets", "True", "False"),
    ("o", "99", "-98"),
    ("o", "password", "-username"),
    ("p", "password", "0x1"),
    ("e", "1", "2"),
    ("nothing_like_it", "1", "2"),
]
FIXED = {"X-Request-ID": "0190a0b0-0000-7000-8000-000000000001"}


def address(model: Any, page: str = "changelist") -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}")


def names(model: Any) -> str:
    return str(model._meta.label)


def answer(console: Client, path: str, accept: str = "text/html") -> Any:
    return console.get(path, headers=FIXED | {"Accept": accept})


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 30
    assert len(PAGES) > 30


@pytest.mark.parametrize("model", PAGES, ids=names)
def test_every_list_refuses_what_it_does_not_declare_with_the_same_bytes(cast: Cast, model: Any) -> None:
    console = cast.console(cast.administrator)
    seen = set()
    for page in ("changelist", "export"):
        assert answer(console, address(model, page)).status_code == 200
        for name, *guesses in HOSTILE:
            for guess in guesses:
                found = answer(console, f"{address(model, page)}?{urlencode({name: guess})}")
                assert found.status_code == 400, (name, guess)
                seen.add(found.content)
    # One answer to all of them: it depends neither on the column, nor on the guess, nor on any row.
    assert len(seen) == 1
    text = seen.pop().decode()
    assert "no such filter" in text
    assert "password" not in text


@pytest.mark.parametrize("model", PAGES, ids=names)
def test_every_filter_that_a_list_shows_works(cast: Cast, model: Any) -> None:
    open_contract(cast)
    console = cast.console(cast.administrator)
    chosen = console.get(address(model)).context["cl"]
    for spec in chosen.filter_specs:
        for choice in spec.choices(chosen):
            assert console.get(address(model) + choice["query_string"]).status_code == 200, choice
    sortable = [place for place, name in enumerate(chosen.list_display) if chosen.get_ordering_field(name)]
    for place in sortable:
        assert console.get(address(model), {"o": f"-{place}"}).status_code == 200, place
    assert console.get(address(model), {"p": "1"}).status_code == 200
    if chosen.search_fields:
        assert console.get(address(model), {"q": 'a "b c" OR 1=1 password__startswith=p'}).status_code == 200


def test_an_operator_and_an_auditor_are_refused_alike(cast: Cast) -> None:
    for person in (cast.operator, cast.auditor):
        console = cast.console(person)
        for model in (User, Attempt, ApiKey, ChatWorkspace):
            assert answer(console, f"{address(model)}?password__startswith=p").status_code == 400, (person, model)


def test_a_program_gets_the_refusal_as_problem_json(cast: Cast) -> None:
    found = answer(cast.console(cast.operator), f"{address(User)}?password__startswith=p", accept="*/*")
    assert (found.status_code, found.json()["type"].rpartition("/")[2]) == (400, "lookup-refused")


def test_a_row_is_found_by_its_id_only_and_never_in_a_window(cast: Cast) -> None:
    console, person = cast.console(cast.administrator), cast.operator
    page = reverse("admin:governance_user_change", args=[person.id])
    assert console.get(page).status_code == 200
    for query in ("_to_field=id", "_to_field=password", "_popup=1"):
        assert answer(console, f"{page}?{query}").status_code == 400, query
        for action in ("history", "delete"):
            other = reverse(f"admin:governance_user_{action}", args=[person.id])
            assert answer(console, f"{other}?{query}").status_code == 400, query
    by_hash = reverse("admin:governance_user_change", args=[person.password])
    assert answer(console, f"{by_hash}?_to_field=password").status_code == 400
    assert answer(console, by_hash).status_code in {302, 404}


@pytest.mark.parametrize(
    "query", ["", "app_label=governance&model_name=savedfilter&field_name=user&term=a", "term=a&field_name=password"]
)
def test_autocomplete_and_view_on_site_do_not_exist(cast: Cast, query: str) -> None:
    console = cast.console(cast.administrator)
    assert answer(console, f"/admin/autocomplete/?{query}").status_code == 400
    assert answer(console, f"/admin/r/1/{cast.operator.id}/").status_code == 404
    assert answer(console, f"/admin/r/1/{cast.organization.id}/?{query}").status_code == 404


def test_a_filter_that_the_list_does_not_have_is_not_saved(cast: Cast) -> None:
    console = cast.console(cast.operator)
    kept = {"name": "mine", "query": "password__startswith=p"}
    assert console.post("/admin/governance/user/filters/", kept).status_code == 400
    assert not SavedFilter.objects.exists()
    console.post("/admin/governance/user/filters/", {"name": "mine", "query": "is_staff__exact=1"})
    assert SavedFilter.objects.count() == 1


@pytest.mark.parametrize("model", PAGES, ids=names)
def test_no_page_shows_searches_orders_or_exports_a_secret(model: Any) -> None:
    assert secrets_listed(admin.site._registry[model]) == []


def test_secrets_are_recognised() -> None:
    assert is_secret(User, "password")
    assert is_secret(ApiKey, "sha256")
    assert is_secret(ApiKey, "stream_key")
    assert is_secret(ChatWorkspace, "bot_token_sealed")
    assert not is_secret(Attempt, "lease_token")

    class Careless(ListPages):
        list_display = ["username", "password"]
        search_fields = ["=groups__user__password"]

    assert secrets_listed(Careless(User, admin.site)) == ["password", "groups__user__password"]


def test_a_page_that_a_library_registers_is_taken_out_again() -> None:
    assert all(isinstance(page, ListPages) for page in admin.site._registry.values())
    admin.site.register(Group)
    close_foreign_pages()
    assert not admin.site.is_registered(Group)
