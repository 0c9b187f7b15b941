"""Signing in: password, second factor, passkey, lockout, sessions. One sign-in for the console and the review pages."""

import re
import time
from urllib.parse import urlsplit

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.site import People, Site, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.stack]
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def prove_again(page: Page, password: str) -> None:
    page.wait_for_url("**/accounts/reauthenticate/**")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Confirm").click()


def by_name(people: People) -> BrowserContext:
    """Passkeys belong to a name: the site as localhost."""
    return people.context(base_url=f"http://localhost:{urlsplit(people.site.base_url).port}")


def test_one_sign_in_opens_the_console_and_the_review_pages(site: Site, people: People) -> None:
    page = people.nobody()
    page.goto("/review/")
    expect(page).to_have_url(re.compile("/accounts/login/"))
    sign_in(page, **site.demo["users"]["operator"], to="/admin/")
    expect(page).to_have_url(re.compile(r"/admin/$"))
    page.goto("/review/?view=all")
    expect(page.locator(".tabs")).to_contain_text("All open")


def test_a_passkey_is_added_and_signs_in_without_a_password(site: Site, people: People) -> None:
    user = site.demo["users"]["owner_privacy"]
    context = by_name(people)
    page = context.new_page()
    debugger = context.new_cdp_session(page)
    debugger.send("WebAuthn.enable")
    debugger.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    sign_in(page, **user)
    page.goto("/accounts/2fa/webauthn/add/")
    prove_again(page, user["password"])
    page.get_by_label("Name").fill("Desk")
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="Recovery Codes")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.goto("/accounts/login/?next=/review/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.locator(".person summary")).to_have_text("owner_privacy")


def test_a_second_factor_is_set_up_and_asked_for(site: Site, people: People) -> None:
    user = site.demo["users"]["owner_workflow_platform"]
    page = people.nobody()
    sign_in(page, **user)
    page.goto("/accounts/2fa/totp/activate/")
    prove_again(page, user["password"])
    secret = page.locator("#authenticator_secret").input_value()
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.get_by_role("button", name="Activate").click()
    expect(page.get_by_role("heading", name="Recovery Codes")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.goto("/accounts/login/?next=/review/")
    page.get_by_label("Username").fill(user["username"])
    page.get_by_label("Password").fill(user["password"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/accounts/2fa/authenticate/**")
    page.get_by_label("Code").fill(code_of(secret, later=30))
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.locator(".person summary")).to_have_text(user["username"])


def code_of(secret: str, *, later: int = 0) -> str:
    """What an authenticator app shows; a code counts once, so the next one is taken for the second time."""
    return str(format_hotp_value(hotp_value(secret, int((time.time() + later) // 30))))


def test_five_wrong_passwords_lock_the_account_for_a_while(site: Site, people: People) -> None:
    page = people.nobody()
    people.allow("status of 429")
    for _ in range(5):
        page.goto("/accounts/login/")
        page.get_by_label("Username").fill("owner_global_compliance")
        page.get_by_label("Password").fill("not the password")
        page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Too many wrong tries")).to_be_visible()
    page.goto("/accounts/login/")
    page.get_by_label("Username").fill("owner_global_compliance")
    page.get_by_label("Password").fill(site.demo["users"]["owner_global_compliance"]["password"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Too many wrong tries")).to_be_visible()


def test_a_session_is_listed_and_ended_from_another_browser(site: Site, people: People) -> None:
    user = site.demo["users"]["owner_trust_operations"]
    lost, here = people.nobody(), people.nobody()
    for page in (lost, here):
        sign_in(page, **user)
    here.goto("/accounts/sessions/")
    expect(here.locator(".sessions li")).to_have_count(2)
    here.get_by_role("button", name="End the session from").click()
    expect(here.locator(".sessions li")).to_have_count(1)
    lost.goto("/review/")
    expect(lost).to_have_url(re.compile("/accounts/login/"))
