"""SCIM: people and groups of one provider, with its token alone; deprovisioning ends everything at once."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from attempts.reviews.models import Delegation, Review
from attempts.reviews.services.claim import review_claim
from governance.identity.models import IdentityProvider
from governance.identity.services.providers import identity_provider_disable, scim_close
from governance.people.models import ServiceAccount, SignInLink, User
from governance.people.services.people import person_deactivate
from governance.people.services.sign_in_mail import password_reset_ask
from governance.people.tasks import sign_in_mail_send_task
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.cast import Cast
from tests.factories import ServiceAccountFactory
from tests.governance.identity.support import (
    TIER,
    Scim,
    actions,
    connect,
    person,
    roles,
    scim,
    sign_in,
)
from tests.governed import HOLD


@pytest.fixture
def provider(cast: Cast) -> IdentityProvider:
    return connect(cast, create_on_first_sign_in=False)


@pytest.fixture
def client(cast: Cast, provider: IdentityProvider) -> Scim:
    return scim(cast, provider)


def test_a_person_is_made_found_changed_and_never_deleted(client: Scim, provider: IdentityProvider) -> None:
    made = client.user("rita@clinic.example", emails=[{"value": "rita@clinic.example", "primary": True}])
    assert made.status_code == 201, made.content
    assert made["Content-Type"] == "application/scim+json"
    body = made.json()
    assert made["Location"] == body["meta"]["location"]
    assert (body["userName"], body["externalId"], body["active"]) == (
        "rita@clinic.example",
        "id-rita@clinic.example",
        True,
    )
    found = client("GET", 'Users?filter=userName eq "RITA@clinic.example"').json()
    assert (found["totalResults"], found["Resources"][0]["id"]) == (1, body["id"])
    assert client("GET", 'Users?filter=externalId eq "id-rita@clinic.example"').json()["totalResults"] == 1
    assert client("GET", 'Users?filter=userName eq "nobody"').json()["totalResults"] == 0
    renamed = client("PUT", f"Users/{body['id']}", {"userName": "rita", "externalId": "id-2"})
    assert (renamed.status_code, renamed.json()["userName"]) == (200, "rita")
    assert person(body["id"]).user.username == "clinic-login:rita"
    assert client("DELETE", f"Users/{body['id']}").status_code == 204
    assert client("GET", f"Users/{body['id']}").json()["active"] is False
    assert not person(body["id"]).user.is_active
    assert actions(provider)[:2] == ["person.created", "identity_provider.person_added"]


def test_a_name_that_is_taken_is_a_conflict(client: Scim) -> None:
    client.user("rita")
    again = client.user("rita")
    assert (again.status_code, again.json()["scimType"]) == (409, "uniqueness")


def test_lists_have_pages(client: Scim) -> None:
    for number in range(3):
        client.user(f"person-{number}")
    page = client("GET", "Users?startIndex=2&count=1").json()
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (3, 2, 1)
    assert page["Resources"][0]["userName"] == "person-1"
    assert client("GET", "Users?count=0").json()["Resources"] == []
    assert client("GET", "Users?startIndex=x").status_code == 400


@pytest.mark.parametrize("path", ["ServiceProviderConfig", "ResourceTypes", "Schemas", "Users", "Groups"])
def test_what_is_there_is_told_with_the_token_only(client: Scim, path: str) -> None:
    assert client("GET", path).status_code == 200
    for wrong in ("", "hps_0000000000_nothing"):
        answer = Scim("clinic-login", wrong)("GET", path)
        assert (answer.status_code, answer["Content-Type"]) == (401, "application/scim+json")


def test_a_token_is_for_its_own_provider_and_ends_at_once(cast: Cast, client: Scim, provider: IdentityProvider) -> None:
    other = connect(cast, "stranger-login", cast.other)
    theirs = scim(cast, other)
    token = client.headers["Authorization"].removeprefix("Bearer ")
    assert Scim("stranger-login", token)("GET", "Users").status_code == 401
    assert Scim("nobody", token)("GET", "Users").status_code == 401
    mine = client.user("rita").json()["id"]
    for answer in (
        theirs("GET", f"Users/{mine}"),
        theirs.patch(f"Users/{mine}", {"op": "replace", "path": "active", "value": False}),
        theirs("DELETE", f"Users/{mine}"),
        theirs.group("reviewers", mine),
    ):
        assert answer.status_code == 404, answer.content
    assert theirs("GET", "Users").json()["totalResults"] == 0
    assert person(mine).user.is_active
    with every_tenant():
        scim_close(actor=cast.actor(cast.operator, [cast.organization]), at=timezone.now(), provider_id=provider.id)
    assert client("GET", "Users").status_code == 401


def test_an_api_key_and_a_session_open_nothing_here(cast: Cast, client: Scim) -> None:
    assert Scim("clinic-login", cast.key())("GET", "Users").status_code == 401
    browser = cast.console(cast.operator)
    assert browser.get("/scim/v2/clinic-login/Users").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "Users", [], 400),
        ("POST", "Users", {"userName": "x" * 200}, 400),
        ("POST", "Users", {"userName": "x", "n": "y" * 70_000}, 413),
        ("GET", 'Users?filter=password eq "x"', None, 400),
        ("GET", "Users/0191e1c5-0000-7000-8000-000000000000", None, 404),
        ("POST", "Groups", {"displayName": "x", "members": [{"value": "me"}]}, 400),
    ],
)
def test_refusals_have_scims_form(client: Scim, method: str, path: str, body: Any, status: int) -> None:
    answer = client(method, path, body)
    assert answer.status_code == status, answer.content
    assert answer.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert answer.json()["status"] == str(status)


def test_groups_give_roles_and_their_removal_takes_them_at_once(client: Scim, provider: IdentityProvider) -> None:
    rita = client.user("rita").json()["id"]
    user = person(rita).user
    group = client.group("reviewers", rita).json()
    assert group["members"] == [{"value": rita, "display": "rita"}]
    assert roles(user, provider) == [TIER]
    assert client.patch(f"Groups/{group['id']}", {"op": "replace", "path": "displayName", "value": "auditors"})
    assert roles(user, provider) == ["auditor"]
    client.patch(f"Groups/{group['id']}", {"op": "remove", "path": f'members[value eq "{rita}"]'})
    assert roles(user, provider) == []
    client.patch(f"Groups/{group['id']}", {"op": "add", "path": "members", "value": [{"value": rita}]})
    assert roles(user, provider) == ["auditor"]
    assert client("DELETE", f"Groups/{group['id']}").status_code == 204
    assert roles(user, provider) == []
    assert "person.left_groups" in actions(provider)


def test_where_groups_come_by_scim_the_claims_of_a_sign_in_give_nothing(
    client: Scim, provider: IdentityProvider
) -> None:
    rita = client.user("rita").json()["id"]
    client.group("reviewers", rita)
    user = sign_in(provider, "id-rita", "auditors")
    assert user.id == person(rita).user_id
    assert roles(user, provider) == [TIER]


def test_deactivated_there_ends_everything_here_at_once(cast: Cast, client: Scim, provider: IdentityProvider) -> None:
    rita = client.user("rita").json()["id"]
    client.group("reviewers", rita)
    user = person(rita).user
    _ = cast.reviewer
    browser = cast.session(user)
    assert browser.get("/api/v1/reviews").status_code == 200
    contract(cast, adapter="external", effect="none", rules=HOLD)
    held = ask(cast.api("attempts:create"), connector="external").json()
    ends = (timezone.now() + timedelta(days=1)).isoformat()
    cover = {"tier": "customer_clinician", "to_username": "rita", "reason_code": "handover", "ends_at": ends}
    assert browser.post("/api/v1/delegations", cover, format="json").status_code == 201
    with every_tenant():
        review_claim(actor=cast.actor(user, [cast.organization]), at=timezone.now(), review_id=held["review"]["id"])
        account = ServiceAccountFactory(organization=cast.organization, responsible=user)
    secret = _key_of(cast, account)
    assert cast.with_key(secret).get("/api/v1/contracts").status_code == 200

    answer = client.patch(f"Users/{rita}", {"op": "replace", "value": {"active": False}})
    assert (answer.status_code, answer.json()["active"]) == (200, False)

    assert browser.get("/api/v1/reviews").status_code == 401
    assert roles(user, provider) == []
    assert cast.with_key(secret).get("/api/v1/contracts").status_code == 401
    with every_tenant():
        assert Review.objects.get(id=held["review"]["id"]).claimed_by_id is None
        assert Delegation.objects.get().ended_at is not None
        account.refresh_from_db()
    assert (account.status, account.suspended_reason_code) == ("suspended", "responsible_left")
    said = actions(provider)
    assert {"review.released", "delegation.ended", "service_account.suspended", "person.deactivated"} <= set(said)
    page = cast.console(cast.operator).get("/admin/")
    assert str(account.slug) in page.content.decode()


def test_what_the_provider_took_it_can_give_back_but_not_what_an_operator_ended(
    cast: Cast, client: Scim, provider: IdentityProvider
) -> None:
    rita = client.user("rita").json()["id"]
    client.group("reviewers", rita)
    off = {"op": "replace", "path": "active", "value": False}
    on = {"op": "replace", "path": "active", "value": True}
    client.patch(f"Users/{rita}", off)
    assert client.patch(f"Users/{rita}", on).json()["active"] is True
    assert roles(person(rita).user, provider) == [TIER]
    assert "person.reactivated" in actions(provider)
    with every_tenant():
        person_deactivate(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            user_id=person(rita).user_id,
            reason_code="person_left",
        )
    assert client.patch(f"Users/{rita}", on).status_code == 409
    assert client("GET", f"Users/{rita}").json()["active"] is False
    assert not User.objects.get(id=person(rita).user_id).is_active


def test_a_disconnected_provider_signs_nobody_in_and_signs_its_people_out(
    cast: Cast, client: Scim, provider: IdentityProvider
) -> None:
    rita = client.user("rita").json()["id"]
    client.group("reviewers", rita)
    browser = cast.console(person(rita).user)
    assert browser.get("/review/").status_code == 200
    with every_tenant():
        identity_provider_disable(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            provider_id=provider.id,
            reason_code="planned_maintenance",
        )
    assert browser.get("/review/").status_code == 302
    assert client("GET", "Users").status_code == 401


def _key_of(cast: Cast, account: ServiceAccount) -> str:
    from governance.people.services.accounts import api_key_issue
    from reasoncodes.base.actors import SYSTEM

    with every_tenant():
        return api_key_issue(
            actor=SYSTEM, at=timezone.now(), service_account=account, scopes=["governance:read"]
        ).secret


# -- whoever holds the token: the operator who proposed it saw it --
def test_the_token_makes_nobody_the_second_operator(client: Scim, provider: IdentityProvider) -> None:
    """The operator changes the second one's address and asks for a new password; then puts their own subject there."""
    made = client.user("amir", emails=[{"value": "amir@clinic.example", "primary": True}]).json()
    client.group("reviewers", made["id"])
    amir = sign_in(provider, "id-amir")
    User.objects.filter(id=amir.id).update(last_login=timezone.now())
    mine = [{"value": "mallory@evil.example", "primary": True}]
    assert client("PUT", f"Users/{made['id']}", {"userName": "amir", "emails": mine}).status_code == 200
    assert User.objects.get(id=amir.id).email == "mallory@evil.example"
    password_reset_ask(at=timezone.now(), typed=amir.username, source="10.0.0.9")
    sign_in_mail_send_task()
    assert not SignInLink.objects.filter(user=amir).exists()
    assert mail.outbox == []
    assert client("PUT", f"Users/{made['id']}", {"userName": "amir", "externalId": "mallory"}).status_code == 200
    assert person(made["id"]).subject == "id-amir"
    assert sign_in(provider, "id-amir") == amir


def test_a_subject_can_be_corrected_before_the_first_sign_in(client: Scim) -> None:
    made = client.user("nina").json()
    assert client("PUT", f"Users/{made['id']}", {"userName": "nina", "externalId": "right"}).status_code == 200
    assert person(made["id"]).subject == "right"
