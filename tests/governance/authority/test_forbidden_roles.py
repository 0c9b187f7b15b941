"""Roles that let one person ask and release, or write and approve, are not given to one person."""

from datetime import timedelta
from itertools import combinations as pairs_of
from typing import Any

import pytest
from django.utils import timezone

from governance.authority.selectors import forbidden_report
from governance.authority.services.exceptions import role_exceptions_end
from governance.people.errors import RolesForbidden
from governance.people.models import User
from governance.people.rules.combinations import combinations, combinations_with
from governance.people.rules.roles import PERMISSIONS_OF_ROLE
from governance.people.services.people import person_role_give
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.authority.test_changes import confirm, propose, roles, two, violations

__all__ = ["two"]
TIER = "reviewer:customer_clinician"


@pytest.mark.unit
@pytest.mark.parametrize("pair", list(pairs_of(PERMISSIONS_OF_ROLE, 2)), ids=" + ".join)
def test_every_pair_of_roles_is_judged_the_same_in_both_orders(pair: tuple[str, str]) -> None:
    one, other = pair
    found = bool(combinations([one, other]))
    assert found == bool(combinations_with(one, [other])) == bool(combinations_with(other, [one]))
    kinds = {name.partition(":")[0] for name in pair}
    assert found == (kinds in ({"operator", "reviewer"}, {"operator", "owner"}) or ("auditor" in kinds))


@pytest.mark.unit
def test_a_tier_that_an_organization_added_counts_as_a_reviewer() -> None:
    assert combinations(["operator", "reviewer:night_shift"])


@pytest.mark.parametrize("role", [TIER, "owner:privacy", "auditor"])
def test_an_administrator_of_the_installation_is_given_no_role_that_decides(two: Cast, role: str) -> None:
    """They can be the second person for every act of an operator."""
    answer = propose(two, subject=two.administrator.username, details={"role": role})
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (403, "roles-forbidden")
    with every_tenant(), pytest.raises(RolesForbidden):
        person_role_give(
            actor=SYSTEM, at=timezone.now(), user=two.administrator, organization=two.organization, role=role
        )
    assert roles(two, two.administrator) == []
    assert violations() == ["roles_forbidden"]


def test_an_administrator_may_operate_an_organization(two: Cast) -> None:
    asked = propose(two, subject=two.administrator.username, details={"role": "operator"})
    assert confirm(two, asked.json()["id"], by=two.second_operator).status_code == 200
    assert roles(two, two.administrator) == ["operator"]


def test_an_administrators_exception_needs_two_people_and_ends(two: Cast) -> None:
    day = (timezone.now() + timedelta(days=30)).date()
    asked = propose(two, subject=two.administrator.username, details={"role": TIER, "exception_until": day.isoformat()})
    assert asked.status_code == 201, asked.json()
    assert confirm(two, asked.json()["id"], by=two.administrator).status_code == 403
    assert confirm(two, asked.json()["id"], by=two.second_operator).status_code == 200
    with every_tenant():
        (row,) = forbidden_report()
        assert (row.held.pair.one, row.held.pair.other, row.until) == ("administrator", TIER, day.isoformat())
        assert role_exceptions_end(at=timezone.now() + timedelta(days=31)) == 1
        assert forbidden_report() == []


def test_a_reviewer_who_became_administrator_keeps_their_role_and_is_named(two: Cast) -> None:
    """Nobody is locked out by an update; the report and the metric name them."""
    User.objects.filter(id=two.reviewer.id).update(is_superuser=True)
    with every_tenant():
        (row,) = forbidden_report()
    assert (row.held.username, row.held.pair.one, row.until) == ("rita", "administrator", "")
    assert roles(two, two.reviewer) == [TIER]


@pytest.mark.parametrize("role", [TIER, "owner:privacy", "auditor"])
def test_an_operator_is_given_no_role_that_decides(two: Cast, role: str) -> None:
    answer = propose(two, subject="amir", details={"role": role})
    assert answer.status_code == 403
    assert answer.json()["type"].endswith("/roles-forbidden")
    assert roles(two, two.second_operator) == ["operator"]
    assert violations() == ["roles_forbidden"]


def test_the_service_refuses_it_too_whoever_calls(two: Cast) -> None:
    with every_tenant(), pytest.raises(RolesForbidden):
        person_role_give(
            actor=SYSTEM, at=timezone.now(), user=two.operator, organization=two.organization, role="auditor"
        )


def test_a_person_is_not_created_with_forbidden_roles(two: Cast) -> None:
    answer = propose(two, kind="person.create", subject="nina", details={"roles": ["operator", TIER]})
    assert answer.status_code == 403


def test_an_exception_needs_two_people_and_ends_on_its_day(two: Cast) -> None:
    day = (timezone.now() + timedelta(days=30)).date()
    asked = propose(two, subject="norman", details={"role": "operator"})
    assert confirm(two, asked.json()["id"], by=two.second_operator).status_code == 200
    asked = propose(two, subject="norman", details={"role": TIER, "exception_until": day.isoformat()})
    assert asked.status_code == 201, asked.json()
    assert asked.json()["after"]["exception_until"] == day.isoformat()
    assert confirm(two, asked.json()["id"], by=two.operator).status_code == 403
    assert confirm(two, asked.json()["id"], by=two.second_operator).status_code == 200
    assert roles(two, two.nobody) == ["operator", TIER]
    with every_tenant():
        (row,) = forbidden_report()
        assert (row.held.username, row.until) == ("norman", day.isoformat())
        assert role_exceptions_end(at=timezone.now() + timedelta(days=29)) == 0
        assert role_exceptions_end(at=timezone.now() + timedelta(days=31)) == 1
        assert role_exceptions_end(at=timezone.now() + timedelta(days=31)) == 0
    assert roles(two, two.nobody) == ["operator"]


@pytest.mark.parametrize("day", ["2020-01-01", "2999-01-01", "soon"])
def test_an_exception_has_an_end_within_a_year(two: Cast, day: str) -> None:
    asked: Any = propose(two, subject="amir", details={"role": TIER, "exception_until": day})
    assert asked.status_code == 400


def test_who_has_forbidden_roles_without_an_exception_is_named(two: Cast) -> None:
    with every_tenant():
        group = two.organization.role_groups.get(role=TIER).group
        two.operator.groups.add(group)  # as somebody with the tables' rights could
        (row,) = forbidden_report()
    assert (row.held.username, row.until) == ("alice", "")
