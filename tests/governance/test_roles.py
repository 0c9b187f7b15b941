"""Roles: each gives exactly its permissions, on its organization, from the next request on and not a moment longer."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone
from guardian.shortcuts import assign_perm, get_group_perms

from governance.ledger.models import LedgerEntry
from governance.people.models import User
from governance.people.rules.roles import (
    AUDIT,
    OPERATE,
    PERMISSION_FOR_SCOPE,
    PERMISSIONS_OF_ROLE,
    REVIEW,
    VIEW,
    ApiScope,
)
from governance.people.selectors.people import organizations_where
from governance.people.services.people import person_role_give, person_role_take
from governance.tenancy.models import Organization, RoleGroup
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import NotFound
from reasoncodes.base.tenancy import every_tenant, tenant_scope
from tests.cast import Cast
from tests.factories import TIERS

CODES, LEDGER = "/api/v1/reason-codes", "/api/v1/ledger/entries"


def every_permission() -> set[str]:
    return {codename for permissions in PERMISSIONS_OF_ROLE.values() for codename in permissions}


@pytest.mark.parametrize("role", [*sorted(PERMISSIONS_OF_ROLE), "reviewer:night_shift"])
def test_a_role_gives_its_permissions_on_its_organization_and_no_others(cast: Cast, role: str) -> None:
    person = cast.person("petra", role)
    expected = set(PERMISSIONS_OF_ROLE.get(role, (VIEW, REVIEW)))
    for permission in every_permission():
        found = organizations_where(user=person, permission=permission)
        assert found == ({cast.organization.id} if permission in expected else frozenset())
    with every_tenant():
        group = RoleGroup.objects.get(organization=cast.organization, role=role).group
        assert set(get_group_perms(group, cast.organization)) == expected


def test_no_role_gives_both_operating_and_deciding() -> None:
    """Who runs an organization does not release what is held in it, and the auditor changes nothing at all."""
    for role, permissions in PERMISSIONS_OF_ROLE.items():
        assert not {OPERATE, REVIEW} <= set(permissions), role
    assert set(PERMISSIONS_OF_ROLE["auditor"]) == {VIEW, AUDIT}


def test_a_superuser_gets_no_object_permission_from_that(cast: Cast) -> None:
    assert cast.administrator.is_superuser
    assert cast.organization
    for permission in every_permission():
        assert organizations_where(user=cast.administrator, permission=permission) == frozenset()
    for url in (CODES, LEDGER):
        assert cast.session(cast.administrator).get(url).status_code == 403


def test_a_permission_given_to_a_person_directly_counts_like_a_role_s(cast: Cast) -> None:
    assign_perm(OPERATE, cast.reviewer, cast.other)
    assign_perm(VIEW, cast.reviewer, cast.organization)  # which the role gives too
    assert organizations_where(user=cast.reviewer, permission=OPERATE) == {cast.other.id}
    assert organizations_where(user=cast.reviewer, permission=VIEW) == {cast.organization.id}
    assert organizations_where(user=cast.nobody, permission=VIEW) == frozenset()


def test_a_permission_on_the_model_instead_of_the_object_gives_nothing(cast: Cast) -> None:
    cast.nobody.user_permissions.add(*Permission.objects.filter(content_type__app_label="governance"))
    again = User.objects.get(id=cast.nobody.id)
    assert again.has_perm("governance.operate_organization")
    assert cast.organization
    assert organizations_where(user=again, permission=OPERATE) == frozenset()
    assert cast.session(again).get(CODES).status_code == 403


def test_a_role_that_was_taken_is_gone_at_the_next_request(cast: Cast) -> None:
    session, at = cast.session(cast.operator), timezone.now()
    body = {"scope": "halt", "code": "one", "label": "One"}
    assert session.post(CODES, body).status_code == 201
    for role, remaining in (("operator", 403),):
        with every_tenant():
            person_role_take(actor=SYSTEM, at=at, user=cast.operator, organization=cast.organization, role=role)
        assert session.post(CODES, body | {"code": "two"}).status_code == remaining
        assert session.get(CODES).status_code == remaining


def test_an_inactive_person_is_nobody(cast: Cast) -> None:
    session = cast.session(cast.operator)
    assert session.get(CODES).status_code == 200
    User.objects.filter(id=cast.operator.id).update(is_active=False)
    assert session.get(CODES).status_code == 401


def test_giving_and_taking_are_on_the_ledger_once_and_without_the_name(cast: Cast) -> None:
    person, at = cast.person("petra"), timezone.now()
    with every_tenant():
        for act in (person_role_give, person_role_give, person_role_take, person_role_take):
            act(actor=SYSTEM, at=at, user=person, organization=cast.organization, role="auditor")
        entries = list(LedgerEntry.objects.filter(action__startswith="person.role_").order_by("id"))
    assert [entry.action for entry in entries] == ["person.role_given", "person.role_taken"]
    assert entries[0].payload["role"] == "auditor"
    assert "petra" not in str([entry.payload for entry in entries])


def test_only_those_who_act_in_the_organization_give_its_roles(cast: Cast) -> None:
    at = timezone.now()
    for actor in (cast.actor(cast.other_operator, [cast.other]), cast.actor(cast.auditor, [])):
        with every_tenant(), pytest.raises(NotFound):
            person_role_give(actor=actor, at=at, user=cast.nobody, organization=cast.organization, role="operator")
        with every_tenant(), pytest.raises(NotFound):
            person_role_take(actor=actor, at=at, user=cast.operator, organization=cast.organization, role="operator")
    assert organizations_where(user=cast.nobody, permission=VIEW) == frozenset()
    assert organizations_where(user=cast.operator, permission=OPERATE) == {cast.organization.id}


def test_an_unknown_role_cannot_be_given(cast: Cast) -> None:
    with every_tenant(), pytest.raises(KeyError):
        person_role_give(
            actor=SYSTEM, at=timezone.now(), user=cast.nobody, organization=cast.organization, role="emperor"
        )


def test_every_scope_that_has_no_permission_is_for_services_alone(cast: Cast) -> None:
    assert set(ApiScope) - set(PERMISSION_FOR_SCOPE) == {
        ApiScope.ATTEMPTS_CREATE,
        ApiScope.ATTEMPTS_EXECUTE,
        ApiScope.ORCHESTRATOR_ADMIN,
    }


@pytest.mark.parametrize(
    ("who", "codes", "ledger"),
    [("operator", 200, 200), ("auditor", 200, 200), ("reviewer", 200, 403), ("nobody", 403, 403)],
)
def test_who_may_read_what(cast: Cast, who: str, codes: int, ledger: int) -> None:
    session: Any = cast.session(getattr(cast, who))
    assert (session.get(CODES).status_code, session.get(LEDGER).status_code) == (codes, ledger)


def test_every_organization_has_a_group_for_every_role(cast: Cast) -> None:
    own = {f"reviewer:{tier}" for tier in TIERS}  # which the tests' organizations have beside the first one
    with tenant_scope([cast.organization.id]):
        assert set(RoleGroup.objects.values_list("role", flat=True)) == set(PERMISSIONS_OF_ROLE) | own
        assert Organization.objects.count() == 1
