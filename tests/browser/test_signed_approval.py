"""Proof on the card: step-up by password and passkey, and a signed approval with a passkey that the ledger knows."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.site import PHONE, People, Site, axe, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.stack]
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
# What an hour without a sign-in does to a session.
AGE = """
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
for row in Session.objects.all():
    store = SessionStore(row.session_key)
    for record in store.get("account_authentication_methods", []):
        record["at"] -= 3600
    store.save()
"""
# A contract like the demo's `hold`, whose owner asks for signatures.
SIGNING = """
from django.utils import timezone
from config.demo.contracts import CONTRACTS, contract_make
from governance.tenancy.models import Organization
from dataclasses import replace
changes = {"attempt_identity_envelope": {"signature": "passkey"}}
wanted = replace(CONTRACTS["hold"], title="Waits for a signature", changes=changes)
organization = Organization.objects.get(id="%s")
contract = contract_make(organization, slug="demo-signed", wanted=wanted, at=timezone.now())
print(contract.version)
"""


def by_name(people: People, **options: object) -> BrowserContext:
    """Passkeys belong to a name: the site as localhost."""
    return people.context(base_url=f"http://localhost:{urlsplit(people.site.base_url).port}", **options)


def with_passkey(context: BrowserContext, user: dict[str, str]) -> Page:
    page = context.new_page()
    debugger = context.new_cdp_session(page)
    debugger.send("WebAuthn.enable")
    debugger.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    sign_in(page, **user)
    page.goto("/accounts/2fa/webauthn/add/")
    page.wait_for_url("**/accounts/reauthenticate/**")
    page.get_by_label("Password").fill(user["password"])
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Name").fill("Desk")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="Recovery Codes")).to_be_visible()
    return page


def votes_of(site: Site, review: str) -> list[tuple[str, bool]]:
    found = site.sql(
        "SELECT v.verdict, s.id IS NOT NULL FROM attempts_reviewvote v"
        " LEFT JOIN attempts_votesignature s ON s.vote_id = v.id WHERE v.review_id = %s",
        review,
    )
    return [(verdict, signed) for verdict, signed in found]


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 900}], ids=["phone", "desktop"])
def test_the_password_is_asked_for_on_the_card_and_the_same_press_decides(
    site: Site, people: People, viewport: dict[str, int]
) -> None:
    review = site.ask("hold", action={"risk_tier": "high", "target_ref": "case-5001"})["review"]["id"]
    user = site.demo["users"]["reviewer2"]
    page = people.nobody(viewport=viewport)
    sign_in(page, **user)
    site.shell(AGE)
    page.goto(f"/review/{review}")
    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Approve: case.update on case-5001")
    assert axe(page) == []
    page.get_by_label("Password").fill("not the password")
    dialog.get_by_role("button", name="Approve").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    assert votes_of(site, review) == []
    page.get_by_label("Password").fill(user["password"])
    dialog.get_by_role("button", name="Approve").click()
    expect(page.locator("#card .notice")).to_contain_text("Released: case-5001")
    assert votes_of(site, review) == [("approve", False)]


def test_a_press_with_a_passkey_is_one_prompt_and_a_signed_vote(site: Site, people: People) -> None:
    version = site.shell(SIGNING % site.demo["organization"]["id"]).split()[-1]
    site.demo["contracts"]["signed"] = {"slug": "demo-signed", "version": version}
    user = site.demo["users"]["reviewer"]
    page = with_passkey(by_name(people), user)
    site.shell(AGE)

    plain = site.ask("hold", action={"risk_tier": "high", "target_ref": "case-5002"})["review"]["id"]
    page.goto(f"/review/{plain}")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#card .notice")).to_contain_text("Released: case-5002")
    assert votes_of(site, plain) == [("approve", False)]

    review = site.ask("signed", action={"target_ref": "case-5003"})["review"]["id"]
    page.goto(f"/review/{review}")
    expect(page.locator("#answers")).to_contain_text("Your answer is signed with your passkey (registered")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#card .notice")).to_contain_text("Released: case-5003")
    assert votes_of(site, review) == [("approve", True)]
    page.goto(f"/review/{review}")
    expect(page.locator(".votes")).to_contain_text(re.compile(r"signed, passkey registered .* \(new: less than a day"))
    page.goto(f"/review/{plain}")
    expect(page.locator(".votes")).to_contain_text("unsigned")


def test_somebody_without_a_passkey_is_sent_to_add_one(site: Site, people: People) -> None:
    site.demo["contracts"]["signed"] = {"slug": "demo-signed", "version": 1}
    if not site.sql("SELECT 1 FROM governance_contract WHERE slug = 'demo-signed'"):
        site.shell(SIGNING % site.demo["organization"]["id"])
    review = site.ask("signed", action={"target_ref": "case-5004"})["review"]["id"]
    page = people.nobody()
    sign_in(page, **site.demo["users"]["reviewer2"])
    page.goto(f"/review/{review}")
    expect(page.get_by_role("link", name="Add a passkey")).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#card .refusal")).to_contain_text("A signature is needed")
    assert votes_of(site, review) == []
