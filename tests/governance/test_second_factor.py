"""A role that decides needs a second factor. Until somebody has one, only the pages where they set it up work."""

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.people.models import SignInRules, User
from governance.people.selectors.sign_in import second_factor_missing
from governance.people.services.people import person_role_take
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

SECRET = "JBSWY3DPEHPK3PXP"
DECIDING = ["administrator", "operator", "reviewer", "owner"]
ENROLMENT = "/accounts/second-factor/"
RULES = "/admin/governance/organization/{}/act/sign-in-rules/"
URL = "/api/v1/authority-changes"


@pytest.fixture
def required(settings: LazySettings) -> None:
    settings.SECOND_FACTOR_ROLES = DECIDING


@pytest.mark.parametrize("who", ["operator", "reviewer", "owner", "administrator"])
@pytest.mark.parametrize("path", ["/admin/", "/review/", "/review/notifications", "/accounts/password/change/"])
def test_nothing_but_the_enrolment_works_for_a_deciding_role(cast: Cast, required: None, who: str, path: str) -> None:
    client = cast.console(getattr(cast, who))
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (302, ENROLMENT)
    assert "Set up a second factor" in client.get(ENROLMENT).content.decode()


@pytest.mark.parametrize("who", ["auditor", "nobody"])
def test_who_decides_nothing_is_not_asked(cast: Cast, required: None, who: str) -> None:
    assert not second_factor_missing(user=getattr(cast, who))
    assert cast.console(getattr(cast, who)).get(ENROLMENT).status_code == 302


def test_the_api_refuses_the_session_with_a_problem_of_its_own(cast: Cast, required: None) -> None:
    answer = cast.session(cast.operator).get("/api/v1/attempts")
    assert answer.status_code == 403
    assert answer.json()["type"].endswith("/second-factor-needed")
    assert Client().get("/problems/second-factor-needed").status_code == 200
    assert cast.session(cast.auditor).get("/api/v1/attempts").status_code == 200


def test_keys_of_services_are_not_concerned(cast: Cast, required: None) -> None:
    assert cast.api().get("/api/v1/attempts").status_code == 200


def test_a_posted_act_does_nothing(cast: Cast, required: None) -> None:
    _ = cast.reviewer
    page = f"/admin/governance/user/{cast.reviewer.id}/act/deactivate/"
    answer = cast.console(cast.operator).post(page, {"reason_code": "person_left"})
    assert answer.status_code == 403
    assert "Nothing was done" in answer.content.decode()
    cast.reviewer.refresh_from_db()
    assert cast.reviewer.is_active


def test_a_script_is_sent_to_the_page_as_a_whole(cast: Cast, required: None) -> None:
    answer = cast.console(cast.reviewer).get("/review/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Redirect"]) == (403, ENROLMENT)


@pytest.mark.parametrize("kind", [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN])
def test_an_app_or_a_passkey_counts(cast: Cast, required: None, kind: str) -> None:
    client = cast.console(cast.reviewer)
    assert client.get("/review/").status_code == 302
    Authenticator.objects.create(user=cast.reviewer, type=kind, data={})
    assert client.get("/review/").status_code == 200
    assert client.get("/api/v1/reviews").status_code == 200


def test_recovery_codes_alone_do_not_count(cast: Cast, required: None) -> None:
    Authenticator.objects.create(user=cast.reviewer, type=Authenticator.Type.RECOVERY_CODES, data={})
    assert cast.console(cast.reviewer).get("/review/").status_code == 302


def test_whoever_removes_their_last_factor_has_to_set_one_up_again(cast: Cast, required: None) -> None:
    TOTP.activate(cast.reviewer, SECRET)
    client = cast.console(cast.reviewer)
    assert client.get("/review/").status_code == 200
    Authenticator.objects.all().delete()
    assert client.get("/review/").status_code == 302


def test_the_enrolment_pages_and_the_sign_out_work(cast: Cast, required: None) -> None:
    client = cast.console(cast.reviewer)
    assert client.get("/accounts/2fa/").status_code == 200
    assert client.get("/accounts/2fa/totp/activate/")["Location"].startswith("/accounts/reauthenticate/")
    assert client.get("/accounts/reauthenticate/").status_code == 200
    assert client.post("/accounts/logout/").status_code == 302
    assert "_auth_user_id" not in client.session


def test_without_the_setting_nobody_is_asked(cast: Cast) -> None:
    assert cast.console(cast.operator).get("/admin/").status_code == 200


def test_a_taken_role_no_longer_asks(cast: Cast, required: None) -> None:
    assert second_factor_missing(user=cast.reviewer)
    with every_tenant():
        person_role_take(
            actor=SYSTEM,
            at=timezone.now(),
            user=cast.reviewer,
            organization=cast.organization,
            role="reviewer:customer_clinician",
        )
    assert not second_factor_missing(user=cast.reviewer)


def rules_of(cast: Cast) -> list[str]:
    with every_tenant():
        found = SignInRules.objects.filter(organization=cast.organization).first()
    return list(found.second_factor_roles) if found else []


def test_an_organization_requires_it_by_its_own_rules_confirmed_by_a_second_person(cast: Cast) -> None:
    _ = cast.operator, cast.second_operator, cast.auditor
    page = RULES.format(cast.organization.id)
    answer = cast.console(cast.operator).post(page, {"second_factor_roles": ["auditor", "reviewer"]})
    assert answer.status_code == 302
    assert rules_of(cast) == []
    change = cast.session(cast.operator).get(URL).json()["results"][0]
    assert change["kind"] == "sign_in_rules.change"
    done = cast.fresh(cast.session(cast.second_operator)).post(f"{URL}/{change['id']}/confirm", {}, format="json")
    assert done.status_code == 200, done.json()
    assert rules_of(cast) == ["reviewer", "auditor"]
    assert cast.console(cast.auditor).get("/admin/").status_code == 302
    assert cast.console(cast.operator).get("/admin/").status_code == 200
    with every_tenant():
        entry = LedgerEntry.objects.get(action="sign_in_rules.changed")
    assert entry.payload == {"before": [], "after": ["reviewer", "auditor"]}


def test_the_rules_are_those_of_the_organization_where_the_role_is(cast: Cast) -> None:
    with every_tenant():
        SignInRules.objects.create(organization=cast.other, second_factor_roles=["operator"], changed_at=timezone.now())
    assert not second_factor_missing(user=cast.operator)
    assert second_factor_missing(user=cast.other_operator)


def test_taking_a_rule_away_is_marked_as_loosening(cast: Cast) -> None:
    _ = cast.second_operator
    with every_tenant():
        SignInRules.objects.create(
            organization=cast.organization, second_factor_roles=["auditor"], changed_at=timezone.now()
        )
    body = {"kind": "sign_in_rules.change", "details": {"second_factor_roles": []}}
    assert cast.session(cast.operator).post(URL, body, format="json").json()["loosens"] is True


@pytest.mark.parametrize("wrong", [["administrator"], ["boss"], "operator", [1]])
def test_only_kinds_of_an_organization_can_be_named(cast: Cast, wrong: Any) -> None:
    _ = cast.second_operator
    body = {"kind": "sign_in_rules.change", "details": {"second_factor_roles": wrong}}
    assert cast.session(cast.operator).post(URL, body, format="json").status_code == 400


@pytest.mark.parametrize(("who", "status"), [("auditor", 403), ("reviewer", 403), ("other_operator", 404)])
def test_only_operators_of_the_organization_change_its_rules(cast: Cast, who: str, status: int) -> None:
    user: User = getattr(cast, who)
    assert cast.console(user).post(RULES.format(cast.organization.id), {}).status_code == status
    assert rules_of(cast) == []
