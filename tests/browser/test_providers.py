"""Sign-in by an organization's own provider, real ones on loopback: OpenID Connect, SAML, and SCIM that ends it."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.providers.running import CLIENT_SECRET, Providers, running
from tests.browser.site import People, Site

TOKEN = "hps_0123456789_a-token-of-the-tests"
OIDC, SAML = "demo-oidc", "other-saml"
TIER = "reviewer:customer_clinician"
MAPPING = {"reviewers": [TIER]}
CONNECT = """
import json
from datetime import UTC, datetime
from governance.identity.selectors import SECRET
from governance.identity.services.providers import identity_provider_create, scim_open
from governance.outside.secret_box import seal
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
asked = json.loads({asked!r})
for one in asked:
    who = dict(actor=SYSTEM, at=datetime.now(UTC), organization=Organization.objects.get(slug=one["organization"]))
    secret = seal({secret!r}, purpose=SECRET)
    made = identity_provider_create(**who, slug=one["slug"], kind=one["kind"], terms=one["terms"], secret_sealed=secret)
    if one["kind"] == "oidc":
        scim_open(**who, provider_id=made.id, prefix="0123456789", token_sha256={token!r})
"""


@pytest.fixture(scope="module")
def providers(site: Site) -> Iterator[Providers]:
    base = site.base_url
    with running(
        redirect_uri=f"{base}/accounts/oidc/{OIDC}/login/callback/", acs_url=f"{base}/accounts/saml/{SAML}/acs/"
    ) as found:
        common = {"mapping": MAPPING, "create_on_first_sign_in": True}
        oidc = {"issuer": found.issuer, "client_id": "holdpoint"}
        saml = {"issuer": "urn:tests:saml", "sso_url": found.sso_url, "certificate": found.certificate}
        asked = [
            {"organization": site.demo["organization"]["slug"], "slug": OIDC, "kind": "oidc", "terms": oidc | common},
            {
                "organization": site.demo["other_organization"]["slug"],
                "slug": SAML,
                "kind": "saml",
                "terms": saml | common,
            },
        ]
        hashed = sha256(TOKEN.encode()).hexdigest()
        site.shell(CONNECT.format(asked=json.dumps(asked), secret=CLIENT_SECRET, token=hashed))
        yield found


def visitor(people: People, providers: Providers) -> Page:
    page = people.nobody()
    people.allow(*providers.hosts)
    return page


def go_to_provider(page: Page, organization: str) -> None:
    page.goto("/accounts/login/?next=/review/")
    page.get_by_role("link", name="Sign in with your organization").click()
    page.get_by_label("Organization").fill(organization)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("link", name=re.compile("^Sign in with ")).first.click()


def prove(page: Page, name: str) -> None:
    page.get_by_label("Name at the provider").fill(name)
    page.get_by_role("button", name="Sign in").click()


def scim(site: Site, method: str, path: str, body: Any = None, token: str = TOKEN) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/scim+json"}
    return httpx.request(method, f"{site.base_url}/scim/v2/{OIDC}/{path}", headers=headers, json=body, timeout=40)


def roles_of(site: Site, username: str) -> list[str]:
    rows = site.sql(
        "SELECT r.role FROM governance_rolegroup r JOIN governance_user_groups m ON m.group_id = r.group_id "
        "JOIN governance_user u ON u.id = m.user_id WHERE u.username = %s ORDER BY 1",
        username,
    )
    return [role for (role,) in rows]


def test_openid_connect_signs_in_with_the_role_of_the_group_and_not_without_it(
    site: Site, people: People, providers: Providers
) -> None:
    providers.knows("rita", "oidc-1", "reviewers")
    page = visitor(people, providers)
    go_to_provider(page, site.demo["organization"]["slug"])
    assert "code_challenge=" in page.url or "/interaction/" in page.url
    prove(page, "rita")
    expect(page.locator(".person summary")).to_have_text(f"{OIDC}:rita")
    assert roles_of(site, f"{OIDC}:rita") == [TIER]

    providers.knows("rita", "oidc-1")
    again = visitor(people, providers)
    people.allow("status of 403")
    go_to_provider(again, site.demo["organization"]["slug"])
    prove(again, "rita")
    expect(again.get_by_role("heading", name="No access through this provider")).to_be_visible()
    assert roles_of(site, f"{OIDC}:rita") == []
    page.goto("/review/")  # the session from before has ended with the role
    expect(page).to_have_url(re.compile("/accounts/login/"))


def test_an_answer_that_this_browser_did_not_ask_for_signs_nobody_in(
    site: Site, people: People, providers: Providers
) -> None:
    providers.knows("ines", "oidc-2", "reviewers")
    page = visitor(people, providers)
    answers: list[str] = []
    page.on("request", lambda request: answers.append(request.url) if "/login/callback/" in request.url else None)
    go_to_provider(page, site.demo["organization"]["slug"])
    prove(page, "ines")
    expect(page.locator(".person summary")).to_have_text(f"{OIDC}:ines")
    thief = visitor(people, providers)
    people.allow("status of 403", "status of 401")
    thief.goto(answers[0])
    expect(thief.get_by_role("heading", name="The answer of the provider is not valid")).to_be_visible()
    page.goto(answers[0])  # the same browser a second time
    expect(page.get_by_role("heading", name="The answer of the provider is not valid")).to_be_visible()


def test_saml_signs_in_and_refuses_the_same_answer_again(site: Site, people: People, providers: Providers) -> None:
    providers.knows("sam", "saml-1", "reviewers")
    page = visitor(people, providers)
    posted: list[Request] = []
    page.on("request", lambda request: posted.append(request) if request.url.endswith("/acs/") else None)
    go_to_provider(page, site.demo["other_organization"]["slug"])
    prove(page, "sam")
    expect(page.locator(".person summary")).to_have_text(f"{SAML}:sam")
    assert roles_of(site, f"{SAML}:sam") == [TIER]
    answer = parse_qs(posted[0].post_data or "")
    with httpx.Client(base_url=site.base_url, follow_redirects=True) as other:
        refused = other.post(f"/accounts/saml/{SAML}/acs/", data={name: values[0] for name, values in answer.items()})
    assert refused.status_code == 403
    assert "not valid" in refused.text


@pytest.mark.parametrize("flaw", ["unsigned", "late", "audience", "recipient", "unasked"])
def test_a_flawed_assertion_signs_nobody_in(site: Site, people: People, providers: Providers, flaw: str) -> None:
    providers.knows(f"sam-{flaw}", f"saml-{flaw}", "reviewers", flaw=flaw)
    page = visitor(people, providers)
    people.allow("status of 403", "status of 401")
    go_to_provider(page, site.demo["other_organization"]["slug"])
    prove(page, f"sam-{flaw}")
    expect(page.get_by_role("heading", name="The answer of the provider is not valid")).to_be_visible()
    assert site.sql("SELECT 1 FROM governance_user WHERE username = %s", f"{SAML}:sam-{flaw}") == []


def test_deactivated_by_scim_the_person_is_out_at_once_and_stays_out(
    site: Site, people: People, providers: Providers
) -> None:
    made = scim(site, "POST", "Users", {"userName": "dora", "externalId": "oidc-3", "active": True})
    assert made.status_code == 201, made.text
    dora = made.json()["id"]
    group = scim(site, "POST", "Groups", {"displayName": "reviewers", "members": [{"value": dora}]}).json()
    providers.knows("dora", "oidc-3")
    page = visitor(people, providers)
    go_to_provider(page, site.demo["organization"]["slug"])
    prove(page, "dora")
    expect(page.locator(".person summary")).to_have_text(f"{OIDC}:dora")

    off = {"Operations": [{"op": "replace", "path": "active", "value": False}]}
    assert scim(site, "PATCH", f"Users/{dora}", off, token=f"{TOKEN}x").status_code == 401
    assert scim(site, "PATCH", f"Users/{dora}", off).json()["active"] is False
    page.reload()
    expect(page).to_have_url(re.compile("/accounts/login/"))
    people.allow("status of 403")
    go_to_provider(page, site.demo["organization"]["slug"])
    if page.get_by_label("Name at the provider").count():
        prove(page, "dora")
    expect(page.get_by_role("heading", name="No access through this provider")).to_be_visible()
    assert roles_of(site, f"{OIDC}:dora") == []
    scim(site, "DELETE", f"Groups/{group['id']}")  # so that the claims of the other tests decide again
