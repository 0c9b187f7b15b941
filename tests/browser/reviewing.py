"""Words of the review tests in the browser."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from playwright.sync_api import Locator, Page, expect

from tests.browser.site import Site

NOTE_CODE = "reviewer_too_risky"


def target() -> str:
    """A target that no other test has."""
    return f"case-{uuid4().hex[:10]}"


def hold(site: Site, *, contract: str = "hold", risk: str = "low", about: str = "", key: str = "caller") -> Any:
    """A held attempt: `target`, `id` of the attempt, `review`."""
    about = about or target()
    answer = site.ask(contract, key=key, action={"risk_tier": risk, "target_ref": about})
    assert answer.get("state") == "review-required", answer
    return answer | {"target": about, "review_id": answer["review"]["id"]}


def state_of(site: Site, attempt: Any) -> str:
    return str(site.call("GET", f"/attempts/{attempt['id']}", "caller").json()["state"])


def card_of(page: Page, held: Any, view: str = "groups") -> Locator:
    page.goto(f"/review/{held['review_id']}?view={view}")
    return page.locator("#card")


def row_of(page: Page, about: str) -> Locator:
    return page.locator(".row", has_text=about)


def search(page: Page, about: str, view: str = "groups") -> None:
    page.goto(f"/review/?view={view}&q={about}")
    expect(row_of(page, about)).to_have_count(1)


def approve(page: Page) -> None:
    page.get_by_role("button", name="Approve", exact=False).first.click()


@contextmanager
def behind(site: Site, username: str, service: str) -> Iterator[None]:
    """For a while this person is the one behind the service."""
    put = "UPDATE governance_serviceaccount SET responsible_id = (SELECT id FROM governance_user WHERE username = %s)"
    site.sql(f"{put} WHERE slug = %s", username, service)
    try:
        yield
    finally:
        site.sql(f"{put} WHERE slug = %s", "admin", service)


def deadline_in(site: Site, held: Any, seconds: int) -> None:
    # The owner's right: a trigger keeps deadlines as they are.
    site.sql("ALTER TABLE attempts_review DISABLE TRIGGER fixed_times")
    site.sql(
        "UPDATE attempts_review SET expires_at = clock_timestamp() + make_interval(secs => %s) WHERE id = %s",
        seconds,
        held["review_id"],
    )
    site.sql("ALTER TABLE attempts_review ENABLE ALWAYS TRIGGER fixed_times")


def age_sign_in(site: Site, username: str) -> None:
    """Everybody's sessions of this person look as if they signed in long ago."""
    site.shell(f"""
from importlib import import_module
from allauth.usersessions.models import UserSession
from django.contrib.sessions.backends.db import SessionStore
for row in UserSession.objects.filter(user__username="{username}"):
    store = SessionStore(session_key=row.session_key)
    for record in store.get("account_authentication_methods", []):
        record["at"] -= 7200
    store.save()
""")


def case_for_judgement(site: Site, template: str = "clinician_only") -> str:
    """Announces a case of a workflow that ends at a person's desk; its case id."""
    (product,) = site.sql("SELECT id FROM governance_product WHERE slug = %s", template.replace("_", "-"))
    event = site.demo["event_example"] | {
        "product_id": str(product[0]),
        "event_id": str(uuid4()),
        "case_id": str(uuid4()),
        "correlation_id": str(uuid4()),
    }
    answer = site.call("POST", "/events", "admin", event)
    assert answer.status_code == 202, json.dumps(answer.json())
    return str(event["case_id"])
