"""Words of the review tests in the browser."""

import json
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


def service_of(site: Site, username: str) -> str:
    """A key of a service that this person is behind."""
    code = f"""
from django.utils import timezone
from governance.models import Organization, ServiceAccount, User
from governance.services.api_key import api_key_issue
from reasoncodes.actors import SYSTEM
account, _ = ServiceAccount.objects.get_or_create(
    organization=Organization.objects.get(slug="demo"), slug="own-{username}",
    defaults={{"responsible": User.objects.get(username="{username}")}})
print(api_key_issue(actor=SYSTEM, at=timezone.now(), service_account=account, scopes=("attempts:create",)).secret)
"""
    return site.shell(code).splitlines()[-1]


def deadline_in(site: Site, held: Any, seconds: int) -> None:
    site.shell(f"""
from datetime import timedelta
from attempts.models import Review
from attempts.selectors.review import database_now
Review.objects.filter(id="{held["review_id"]}").update(expires_at=database_now() + timedelta(seconds={seconds}))
""")


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
    product = site.shell(f"""
from governance.models import Product
print(Product.objects.get(organization__slug="demo", slug="{template.replace("_", "-")}").id)
""").splitlines()[-1]
    event = site.demo["event_example"] | {
        "product_id": product,
        "event_id": str(uuid4()),
        "case_id": str(uuid4()),
        "correlation_id": str(uuid4()),
    }
    answer = site.call("POST", "/events", "admin", event)
    assert answer.status_code == 202, json.dumps(answer.json())
    return str(event["case_id"])
