"""The attack that once worked: one operator gave himself every role, made a service with a key, approved, opened, asked
and released. Tried with one operator, with an operator and a service's key, with an operator and a person he invited,
and with every single role against every act. Each step is refused, and each is on record."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from governance.authority.models import AuthorityChange
from governance.authority.rules import ACTS
from governance.people.models import ApiKey, ServiceAccount, User
from governance.people.rules.roles import PERMISSIONS_OF_ROLE
from governance.people.selectors.people import roles_held
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

URL = "/api/v1/authority-changes"
TIER = "reviewer:customer_clinician"


@pytest.fixture
def clinic(cast: Cast) -> Cast:
    """Two operators, so that the founding is over. Mallory is one of them, and alone."""
    _ = cast.operator, cast.second_operator
    return cast


def mallory_of(cast: Cast) -> User:
    return cast.person("mallory", "operator")


def ask(client: Any, kind: str, subject: str, **details: Any) -> Any:
    return client.post(URL, {"kind": kind, "subject": subject, "details": details}, format="json")


def confirm(client: Any, change: str) -> Any:
    return client.post(f"{URL}/{change}/confirm", {}, format="json")


def standing(cast: Cast, user: User) -> list[str]:
    with every_tenant():
        return roles_held(user_id=user.id, organization_id=cast.organization.id)


def recorded() -> list[str]:
    with every_tenant():
        return sorted(GovernanceViolation.objects.values_list("kind", flat=True))


def test_one_operator_alone_gets_no_role_no_account_and_no_key(clinic: Cast) -> None:
    mallory = mallory_of(clinic)
    client = clinic.fresh(clinic.session(mallory))
    # The owner's and the reviewer's roles are forbidden to an operator at all.
    for role in ("owner:privacy", TIER):
        assert ask(client, "role.give", "mallory", role=role).status_code == 403
    # With an exception he can propose them, and not confirm.
    tried = ask(client, "role.give", "mallory", role=TIER, exception_until=_next_month())
    assert confirm(client, tried.json()["id"]).status_code == 403
    account = ask(client, "service_account.create", "my-bot", responsible="mallory")
    assert account.status_code == 201
    assert confirm(client, account.json()["id"]).status_code == 403
    with every_tenant():
        assert not ServiceAccount.objects.filter(slug="my-bot").exists()
    assert standing(clinic, mallory) == ["operator"]
    assert recorded() == ["roles_forbidden", "roles_forbidden", "second_person_missing", "second_person_missing"]


def test_an_operator_with_a_services_key_is_still_one_person(clinic: Cast) -> None:
    mallory = mallory_of(clinic)
    secret = clinic.key("governance:write", "governance:read")
    with every_tenant():
        account = ServiceAccount.objects.latest("id")
        account.responsible = mallory
        account.save(update_fields=["responsible"])
    key, person = clinic.with_key(secret), clinic.fresh(clinic.session(mallory))
    proposed = ask(key, "api_key.issue", account.slug, scopes=["attempts:create"]).json()["id"]
    assert confirm(person, proposed).status_code == 403  # the service is his
    mine = ask(person, "api_key.issue", account.slug, scopes=["attempts:create"]).json()["id"]
    assert confirm(key, mine).status_code == 403  # a key never confirms
    with every_tenant():
        assert ApiKey.objects.filter(service_account=account).count() == 1
    assert recorded() == ["second_person_missing"]


def test_an_operator_cannot_bring_in_a_second_person_of_his_own(clinic: Cast) -> None:
    client = clinic.fresh(clinic.session(mallory_of(clinic)))
    invited = ask(client, "person.create", "puppet", roles=["operator"]).json()["id"]
    assert confirm(client, invited).status_code == 403
    assert not User.objects.filter(username="puppet").exists()
    # Somebody without a right here, whom he knows the password of, gets none from him either.
    norman = clinic.nobody
    raised = ask(client, "role.give", "norman", role="operator").json()["id"]
    assert confirm(client, raised).status_code == 403
    assert confirm(clinic.fresh(clinic.session(norman)), raised).status_code == 403
    assert standing(clinic, norman) == []
    assert recorded() == ["second_person_missing", "second_person_missing"]


@pytest.mark.parametrize("role", sorted(PERMISSIONS_OF_ROLE))
def test_no_single_role_puts_an_act_in_force(clinic: Cast, role: str) -> None:
    """With whatever a person of this role can say in one session, no act of any kind comes into force."""
    client = clinic.fresh(clinic.session(clinic.person("solo", role)))
    proposed = 0
    for kind in sorted(ACTS):
        for subject, details in (("solo", {"role": "operator"}), ("", {}), ("bot", {"responsible": "solo"})):
            answer = client.post(URL, {"kind": kind, "subject": subject, "details": details}, format="json")
            assert answer.status_code in {201, 400, 403, 404, 409, 422}, answer.content
            if answer.status_code == 201:
                proposed += 1
                assert answer.json()["state"] == "proposed"
                assert confirm(client, answer.json()["id"]).status_code == 403
    assert (proposed > 0) == (role == "operator")
    with every_tenant():
        assert not AuthorityChange.objects.filter(state="in_force").exists()


def _next_month() -> str:
    return (timezone.now() + timedelta(days=30)).date().isoformat()
