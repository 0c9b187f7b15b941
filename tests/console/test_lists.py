"""Lists: filters that a person keeps, CSV that no spreadsheet runs, and who may have which."""

import csv
import io
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from attempts.lifecycle.models import Attempt
from governance.console.admin import lists as csv_export
from governance.console.admin.base import ConsoleAdmin
from governance.console.models import SavedFilter
from governance.tenancy.models import Product
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.factories import ProductFactory
from tests.governance.support import row_counts
from tests.governed import HOLD, open_contract

ATTEMPTS = "/admin/attempts/attempt/"


def rows_of(answer: Any) -> list[list[str]]:
    assert answer.status_code == 200, answer
    text = b"".join(answer.streaming_content).decode()
    assert text.startswith("\ufeff")
    return list(csv.reader(io.StringIO(text[1:])))


@pytest.fixture
def held(cast: Cast) -> Attempt:
    open_contract(cast, rules=HOLD)
    made = post(cast.api("attempts:create"), body())
    with every_tenant():
        return Attempt.objects.get(id=made.json()["id"])


def test_the_export_has_what_the_list_has_with_this_filter(cast: Cast, held: Attempt) -> None:
    console = cast.console(cast.operator)
    head, row = rows_of(console.get(f"{ATTEMPTS}export/"))
    assert head[:2] == ["id", "State"]
    assert row[:3] == [str(held.id), "review-required", "close-case"]
    assert len(rows_of(console.get(f"{ATTEMPTS}export/", {"state": "completed"}))) == 1
    assert len(rows_of(console.get(f"{ATTEMPTS}export/", {"state": "review-required"}))) == 2


def test_an_export_is_of_ones_own_organizations_only(cast: Cast, held: Attempt) -> None:
    assert len(rows_of(cast.console(cast.other_operator).get(f"{ATTEMPTS}export/"))) == 1
    assert len(rows_of(cast.console(cast.administrator).get(f"{ATTEMPTS}export/"))) == 2
    assert cast.console(cast.nobody).get(f"{ATTEMPTS}export/").status_code == 403
    assert Client().get(f"{ATTEMPTS}export/").status_code == 302
    assert cast.console(cast.operator).post(f"{ATTEMPTS}export/").status_code == 405
    assert cast.console(cast.reviewer).get("/admin/governance/ledgerentry/export/").status_code == 403


def test_every_list_can_be_exported(cast: Cast, held: Attempt) -> None:
    console, before = cast.console(cast.administrator), row_counts()
    for model, model_admin in admin.site._registry.items():
        if isinstance(model_admin, ConsoleAdmin):
            address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_export")
            assert rows_of(console.get(address))[0][0].lower() in {"id", "code"}, model
    assert row_counts() == before


def test_what_looks_like_a_formula_is_written_as_text(cast: Cast) -> None:
    ProductFactory(organization=cast.organization, slug="evil", name='=HYPERLINK("http://x","y")')
    cells = rows_of(cast.console(cast.operator).get(reverse("admin:governance_product_export")))[1]
    assert '\'=HYPERLINK("http://x","y")' in cells
    with every_tenant():
        assert Product.objects.get(slug="evil").name.startswith("=")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+1+1", "'+1+1"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("  =1", "'  =1"),
        ("\r=1", "'\r=1"),
        ("＝1", "'＝1"),
        ("|cmd", "'|cmd"),
        (-5, "-5"),
        ("-5.25", "-5.25"),
        (None, ""),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_only_beginnings_of_formulas_get_an_apostrophe(value: Any, written: str) -> None:
    assert csv_export.guarded(value) == written


def test_an_export_ends_at_its_limit_and_says_so(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_export, "MOST_ROWS", 3)
    for number in range(5):
        ProductFactory(organization=cast.organization, slug=f"p-{number}")
    lines = rows_of(cast.console(cast.operator).get(reverse("admin:governance_product_export")))
    assert len(lines) == 5
    assert lines[-1] == ["This file has only the newest 3 rows. Narrow the filter to export the others."]


def keep(console: Client, name: str, query: str, path: str = ATTEMPTS) -> Any:
    return console.post(f"{path}filters/", {"name": name, "query": query}, follow=True)


def test_a_filter_is_kept_for_oneself_and_forgotten_again(cast: Cast, held: Attempt) -> None:
    console = cast.console(cast.operator)
    assert "Save this filter" not in console.get(ATTEMPTS).content.decode()
    assert "Save this filter" in console.get(ATTEMPTS, {"state": "review-required"}).content.decode()
    keep(console, "Held ones", "state=review-required&q=somebody&p=3&o=1")
    kept = SavedFilter.objects.get()
    assert (kept.query, kept.name) == ("state=review-required", "Held ones")  # nothing that was searched for is stored
    assert "Held ones" in console.get(ATTEMPTS).content.decode()
    assert "Held ones" not in cast.console(cast.auditor).get(ATTEMPTS).content.decode()
    forget = f"{ATTEMPTS}filters/{kept.id}/forget/"
    assert cast.console(cast.auditor).post(forget).status_code == 404
    assert console.get(forget).status_code == 405
    assert console.post(forget).status_code == 302
    assert not SavedFilter.objects.exists()


def test_a_name_that_says_too_much_is_not_kept(cast: Cast, held: Attempt) -> None:
    console = cast.console(cast.operator)
    for name, query in (("", "state=completed"), ("Nothing", ""), ("mail jane.doe@example.org", "state=completed")):
        assert "Not saved" in keep(console, name, query).content.decode()
    assert not SavedFilter.objects.exists()
    for number in range(21):
        keep(console, f"filter {number}", "state=completed")
    assert SavedFilter.objects.count() == 20
    keep(console, "filter 1", "state=received")
    assert SavedFilter.objects.get(name="filter 1").query == "state=received"
    assert cast.console(cast.nobody).post(f"{ATTEMPTS}filters/", {"name": "x", "query": "a=b"}).status_code == 403


def test_the_lists_of_reviews_and_cases_show_what_waits_unless_asked(cast: Cast, held: Attempt) -> None:
    console = cast.console(cast.operator)

    def listed(name: str, **query: str) -> str:
        return " ".join(console.get(f"/admin/attempts/{name}/", query).content.decode().split())

    assert "1 review" in listed("review")
    assert "0 reviews" in listed("review", status="approved")
    assert "0 quarantine cases" in listed("quarantinecase")
    keys = console.get("/admin/attempts/idempotencyrecord/")
    assert "You cannot browse keys" in keys.content.decode()
    assert "key-00000001" not in keys.content.decode()
    for term in ("key-00000001", str(held.id)):
        assert "key-00000001" in console.get("/admin/attempts/idempotencyrecord/", {"q": term}).content.decode()
