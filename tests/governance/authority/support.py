"""Words that the tests of authority changes share."""

from typing import Any

from rest_framework.test import APIClient

from governance.authority.models import AuthorityChange
from governance.people.models import ServiceAccount, User
from governance.people.services.accounts import api_key_issue
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ServiceAccountFactory
from tests.governed import AT

CHANGES = "/api/v1/authority-changes"


def confirm(cast: Cast, change_id: Any, *, by: User) -> Any:
    return cast.fresh(cast.session(by)).post(f"{CHANGES}/{change_id}/confirm", {}, format="json")


def change_of(answer: Any) -> AuthorityChange:
    """The change that a 202 names."""
    assert answer.status_code == 202, answer.json()
    assert answer.json()["authority_change"]["state"] == "proposed"
    with every_tenant():
        return AuthorityChange.objects.get(id=answer.json()["authority_change"]["id"])


def key_of(cast: Cast, responsible: User, *scopes: str) -> APIClient:
    """A client with a key of a service that this person is responsible for."""
    account: ServiceAccount = ServiceAccountFactory(organization=cast.organization, responsible=responsible)
    with every_tenant():
        issued = api_key_issue(
            actor=SYSTEM, at=AT, service_account=account, scopes=scopes or ("governance:read", "governance:write")
        )
    return cast.with_key(issued.secret)


def violation_kinds() -> list[str]:
    with every_tenant():
        return list(GovernanceViolation.objects.order_by("id").values_list("kind", flat=True))


def waits(kind: str, subject: Any) -> bool:
    """Whether such a proposal waits for a second person."""
    with every_tenant():
        return AuthorityChange.objects.filter(kind=kind, subject=str(subject), state="proposed").exists()
