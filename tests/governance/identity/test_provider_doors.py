"""The API and the console's pages of identity providers: two people to open, one to close; nothing secret comes out."""

from typing import Any

import pytest
import requests
from django.test import Client
from django.utils import timezone

from governance.authority.models import AuthorityChange
from governance.identity.adapters import GuardedSession
from governance.identity.errors import ProviderAnswerInvalid
from governance.identity.models import IdentityProvider
from governance.identity.selectors import client_secret
from governance.identity.services.assertions import assertion_use
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.identity.support import TERMS, TIER, Scim, connect

URL = "/api/v1/identity-providers"
BODY = {"slug": "clinic-login", "kind": "oidc", "client_secret": "very secret indeed"} | TERMS


@pytest.fixture
def two(cast: Cast) -> Cast:
    _ = cast.operator, cast.second_operator
    return cast


def confirm(cast: Cast, change_id: str, *, by: User) -> Any:
    url = f"/api/v1/authority-changes/{change_id}/confirm"
    return cast.fresh(cast.session(by)).post(url, {}, format="json")


def test_a_provider_works_only_after_a_second_person_confirmed_it(two: Cast) -> None:
    answer = two.session(two.operator).post(URL, BODY, format="json")
    assert answer.status_code == 202, answer.json()
    with every_tenant():
        assert not IdentityProvider.objects.exists()
    change = answer.json()["authority_change"]["id"]
    assert confirm(two, change, by=two.operator).status_code == 403
    assert confirm(two, change, by=two.second_operator).status_code == 200
    with every_tenant():
        provider = IdentityProvider.objects.get(slug="clinic-login")
    assert client_secret(provider) == "very secret indeed"
    entries = everything_on_record()
    assert "identity_provider.created" in [action for action, _ in entries]


def everything_on_record() -> list[tuple[str, str]]:
    with every_tenant():
        return [(row.action, str(row.payload)) for row in LedgerEntry.objects.order_by("id")]


def test_the_secret_and_the_names_of_groups_are_in_no_answer_proposal_or_entry(two: Cast) -> None:
    body = BODY | {"mapping": {"a group that names somebody": [TIER]}}
    answer = two.session(two.operator).post(URL, body, format="json")
    confirm(two, answer.json()["id"], by=two.second_operator)
    shown = two.session(two.operator).get(URL)
    assert shown.json()["results"][0]["has_secret"] is True
    with every_tenant():
        stored = str(list(AuthorityChange.objects.values_list("details", "before", "after")))
    for text in (answer.content.decode(), shown.content.decode(), stored, str(everything_on_record())):
        assert "very secret indeed" not in text
    assert "a group that names somebody" not in str(everything_on_record())


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"mapping": {"a": ["root"]}}, 422),
        ({"kind": "ldap"}, 400),
        ({"issuer": "ftp://login.clinic.example"}, 400),
        ({"kind": "saml"}, 400),
        ({"slug": "Not A Slug"}, 400),
        ({"owner": "me"}, 400),
    ],
)
def test_terms_that_cannot_work_are_refused_when_they_are_proposed(two: Cast, change: Any, status: int) -> None:
    answer = two.session(two.operator).post(URL, BODY | change, format="json")
    assert answer.status_code == status, answer.json()


def test_operators_and_auditors_read_and_only_operators_change(two: Cast) -> None:
    provider = connect(two)
    one = f"{URL}/{provider.id}"
    for reader in (two.operator, two.auditor):
        assert two.session(reader).get(one).status_code == 200
    assert two.session(two.reviewer).get(one).status_code == 403
    assert two.session(two.other_operator).get(one).status_code == 404
    patch = {"mapping": {}}
    assert two.session(two.auditor).patch(one, patch, format="json").status_code == 403
    assert two.session(two.other_operator).patch(one, patch, format="json").status_code == 404
    assert two.session(two.operator).patch(one, patch, format="json").status_code == 202


def test_a_proposal_is_outdated_when_the_provider_changed_in_between(two: Cast) -> None:
    one = f"{URL}/{connect(two).id}"
    first, second = (
        two.session(two.operator).patch(one, {"roles_claim": name}, format="json").json()["id"] for name in ("a", "b")
    )
    assert confirm(two, first, by=two.second_operator).status_code == 200
    assert confirm(two, second, by=two.second_operator).status_code == 409


def test_one_person_disconnects_at_once(two: Cast) -> None:
    provider = connect(two)
    url = f"{URL}/{provider.id}/disable"
    reason = {"reason_code": "planned_maintenance"}
    assert two.session(two.other_operator).post(url, reason, format="json").status_code == 404
    assert two.api("governance:write").post(url, reason, format="json").status_code == 403
    answer = two.session(two.operator).post(url, reason, format="json")
    assert (answer.status_code, answer.json()["active"]) == (200, False)
    assert Client().get(f"/accounts/sso/{provider.organization.slug}/").status_code == 404


def test_a_scim_token_is_shown_once_works_after_the_confirmation_and_one_person_ends_it(two: Cast) -> None:
    provider = connect(two)
    url = f"{URL}/{provider.id}/scim-token"
    proposed = two.session(two.operator).post(url, {}, format="json")
    token = proposed.json()["secret"]
    assert token.startswith("hps_")
    assert Scim(provider.slug, token)("GET", "Users").status_code == 401
    confirmed = confirm(two, proposed.json()["id"], by=two.second_operator)
    assert token not in confirmed.content.decode()
    assert Scim(provider.slug, token)("GET", "Users").status_code == 200
    assert two.session(two.operator).delete(url).status_code == 204
    assert Scim(provider.slug, token)("GET", "Users").status_code == 401


def test_the_console_proposes_and_shows_the_token_once(two: Cast) -> None:
    console = two.console(two.operator)
    add = "/admin/governance/identityprovider/add/"
    assert console.get(add).status_code == 200
    form = {
        "organization": str(two.organization.id),
        "slug": "clinic-login",
        "kind": "oidc",
        "issuer": "https://login.clinic.example",
        "client_id": "holdpoint",
        "client_secret": "very secret indeed",
        "roles_claim": "groups",
        "mapping": '{"reviewers": ["reviewer:sa_qa"]}',
    }
    answer = console.post(add, form)
    assert (answer.status_code, "authoritychange" in answer["Location"]) == (302, True), answer.content
    with every_tenant():
        change = AuthorityChange.objects.get()
        assert not IdentityProvider.objects.exists()
    assert confirm(two, str(change.id), by=two.second_operator).status_code == 200
    with every_tenant():
        provider = IdentityProvider.objects.get()
    page = f"/admin/governance/identityprovider/{provider.id}"
    assert "very secret" not in console.get(f"{page}/change/").content.decode()
    assert b"hps_" in console.post(f"{page}/act/open-scim/").content
    assert two.console(two.other_operator).get(f"{page}/change/").status_code in {302, 403, 404}


@pytest.mark.parametrize("path", ["sso/nobody/", "oidc/nobody/login/", "saml/nobody/login/", "saml/nobody/metadata/"])
def test_what_is_not_there_is_404(cast: Cast, path: str) -> None:
    assert Client().get(f"/accounts/{path}").status_code == 404


def test_the_way_to_a_provider_begins_at_the_sign_in_page(two: Cast) -> None:
    connect(two)
    browser = Client()
    assert "/accounts/sso/" in browser.get("/accounts/login/").content.decode()
    assert browser.get("/accounts/sso/?organization=clinic")["Location"] == "/accounts/sso/clinic/"
    page = browser.get("/accounts/sso/clinic/?next=https://elsewhere.example/").content.decode()
    assert "/accounts/oidc/clinic-login/login/" in page
    assert "elsewhere" not in page
    assert browser.get("/accounts/sso/?organization=../admin").status_code == 404


def test_a_provider_in_the_internal_network_is_not_asked(settings: Any) -> None:
    settings.IDENTITY_ALLOW_PRIVATE = []
    for address in ("http://127.0.0.1:9/", "https://127.0.0.1:9/", "https://[::1]:9/"):
        with pytest.raises(requests.ConnectionError):
            GuardedSession().get(address)


def test_a_sign_in_at_a_provider_that_cannot_be_asked_is_a_page_and_not_an_error(two: Cast) -> None:
    connect(two, issuer="https://127.0.0.1:9")
    answer = Client().get("/accounts/oidc/clinic-login/login/")
    assert answer.status_code == 403
    assert "not valid" in answer.content.decode()


@pytest.mark.django_db
def test_an_assertion_counts_once_and_only_for_its_provider() -> None:
    at, one, two = timezone.now(), uuid7(), uuid7()
    until = int(at.timestamp()) + 60
    assertion_use(at=at, provider_id=one, assertion_id="_1", until=until)
    assertion_use(at=at, provider_id=two, assertion_id="_1", until=until)
    with pytest.raises(ProviderAnswerInvalid):
        assertion_use(at=at, provider_id=one, assertion_id="_1", until=until)
