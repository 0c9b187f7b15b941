"""From an invitation to the first page: password or passkey, then the second factor that the role needs. And a new
password by mail."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import PHONE, People, Site, axe, sign_in
from tests.browser.test_sign_in import AUTHENTICATOR, by_name, code_of

PASSWORD, NEW = "correct horse battery staple", "another long pass phrase"
INVITE = """
from django.conf import settings
from django.utils import timezone
from governance.people.services.links import invitation_create
from governance.people.services.people import person_create, person_role_give
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
settings.MAIL_REACHES_PEOPLE = bool("{email}")  # a shell of its own, without the stack's variables
now, place = timezone.now(), Organization.objects.get(slug="other")
user = person_create(actor=SYSTEM, at=now, username="{name}", email="{email}")
person_role_give(actor=SYSTEM, at=now, user=user, organization=place, role="reviewer:customer_clinician")
print(invitation_create(actor=SYSTEM, at=now, user=user).address)
"""


@pytest.fixture
def proving(site: Site) -> Iterator[None]:
    """The other organization requires a second factor of its reviewers."""
    site.sql(
        "INSERT INTO governance_signinrules (organization_id, second_factor_roles, changed_at) "
        "SELECT id, '{reviewer}', now() FROM governance_organization WHERE slug = 'other'"
    )
    yield
    site.sql("DELETE FROM governance_signinrules")


def invited(site: Site, *, email: str = "") -> tuple[str, str]:
    """A new reviewer of the other organization: their name, and the way of their link."""
    name = f"petra-{uuid4().hex[:6]}"
    found = re.search(r"/accounts/link/\S+/", site.shell(INVITE.format(name=name, email=email)))
    return name, found[0] if found else ""


def choose(page: Page, password: str, button: str) -> None:
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_label("The same password again").fill(password)
    page.get_by_role("button", name=button).click()


def mailed(site: Site, address: str, words: str) -> str:
    """The way of the link in the mail to this address that says this."""
    folder, until = Path(site.stack.variables["HOLDPOINT_MAIL_FOLDER"]), time.monotonic() + 30
    while time.monotonic() < until:
        for text in (file.read_text() for file in folder.glob("*.log")):
            found = re.search(r"(/accounts/link/\S+/)", text)
            if found and f"To: {address}" in text and words in text:
                return found[1]
        time.sleep(0.2)
    raise AssertionError("no mail")


def test_an_invitation_leads_to_a_password_a_second_factor_and_the_first_page(
    site: Site, people: People, proving: None
) -> None:
    name, link = invited(site)
    page = people.nobody()
    page.goto(link)
    assert axe(page) == []
    choose(page, PASSWORD, "Choose this password")
    expect(page.get_by_role("heading", name="Set up a second factor")).to_be_visible()
    assert axe(page) == []
    page.goto("/review/")
    expect(page).to_have_url(re.compile("/accounts/second-factor/"))
    page.get_by_role("link", name="Set up an app").click()
    secret = page.locator("#authenticator_secret").input_value()
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.get_by_role("button", name="Activate").click()
    expect(page.get_by_role("heading", name="Recovery Codes")).to_be_visible()
    page.get_by_role("link", name="Go on").click()
    expect(page).to_have_url(re.compile(r"/review/$"))
    expect(page.locator(".person summary")).to_have_text(name)
    page.goto("/accounts/sessions/")
    expect(page.locator("main")).to_contain_text("Used")
    expect(page.locator("main")).to_contain_text("from 127.0.0.1")


def test_the_link_does_not_work_a_second_time(site: Site, people: People) -> None:
    _, link = invited(site)
    page, late = people.nobody(), people.nobody(viewport=PHONE, color_scheme="dark")
    page.goto(link)
    choose(page, PASSWORD, "Choose this password")
    expect(page).to_have_url(re.compile(r"/review/$"))
    people.allow("status of 410")
    late.goto(link)
    expect(late.get_by_role("heading", name="This link does not work")).to_be_visible()
    assert axe(late) == []


def test_an_invitation_is_accepted_with_a_passkey_alone(site: Site, people: People, proving: None) -> None:
    name, link = invited(site)
    context = by_name(people)
    page = context.new_page()
    debugger = context.new_cdp_session(page)
    debugger.send("WebAuthn.enable")
    debugger.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    page.goto(link)
    page.get_by_role("button", name="Use a passkey instead").click()
    page.wait_for_url("**/accounts/2fa/webauthn/add/**")
    expect(page.get_by_label("Passwordless")).to_be_checked()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="Recovery Codes")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.goto("/accounts/login/?next=/review/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.locator(".person summary")).to_have_text(name)


def test_a_forgotten_password_is_replaced_by_a_mailed_link(site: Site, people: People) -> None:
    address = f"{uuid4().hex[:8]}@clinic.invalid"
    name, _ = invited(site, email=address)
    here, lost = people.nobody(), people.nobody()
    here.goto(mailed(site, address, "An account was made for you"))
    choose(here, PASSWORD, "Choose this password")
    expect(here).to_have_url(re.compile(r"/review/$"))
    sign_in(lost, username=name, password=PASSWORD)

    page = people.nobody(viewport=PHONE)
    page.goto("/accounts/login/")
    page.get_by_role("link", name="Forgotten your password?").click()
    assert axe(page) == []
    page.get_by_label("Username or mail address").fill(name)
    page.get_by_role("button", name="Send the link").click()
    expect(page.get_by_role("heading", name="Look into your mail")).to_be_visible()
    page.goto(mailed(site, address, "Somebody asked for a new password"))
    assert axe(page) == []
    choose(page, NEW, "Change the password")
    expect(page.locator(".messages")).to_contain_text("signed out everywhere")
    for other in (here, lost):
        other.goto("/review/")
        expect(other).to_have_url(re.compile("/accounts/login/"))
    sign_in(page, username=name, password=NEW)
    expect(page.locator(".person summary")).to_have_text(name)
