"""Sign-in by a provider: who it is, by provider and subject alone; which roles they have, by the mapping."""

import pytest
from django.test import Client
from django.utils import timezone

from governance.identity.errors import ProviderOverreach, ProviderSignInRefused
from governance.identity.models import IdentityProvider, ProviderPerson
from governance.identity.services.people import person_link
from governance.people.models import User
from governance.people.services.people import person_deactivate, person_role_give
from governance.tenancy.models import RoleGroup
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import AlreadyExists, Refused
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.identity.support import QA, TIER, actions, change, connect, roles, sign_in


@pytest.fixture
def provider(cast: Cast) -> IdentityProvider:
    return connect(cast)


def violations() -> list[str]:
    with every_tenant():
        return list(GovernanceViolation.objects.values_list("kind", flat=True))


def test_a_first_sign_in_with_a_mapped_group_makes_a_person_without_a_password(provider: IdentityProvider) -> None:
    user = sign_in(provider, "sub-1", "reviewers", preferred_username="rita@clinic.example")
    assert user.username == "clinic-login:rita@clinic.example"
    assert not user.has_usable_password()
    assert not user.is_staff
    assert roles(user, provider) == [TIER]
    assert actions(provider) == ["person.created", "identity_provider.person_added", "person.role_given"]
    assert sign_in(provider, "sub-1", "reviewers").id == user.id


def test_without_a_mapped_group_or_without_the_setting_nobody_is_made(cast: Cast, provider: IdentityProvider) -> None:
    with pytest.raises(ProviderSignInRefused):
        sign_in(provider, "sub-1", "gardeners")
    provider = change(cast, provider, create_on_first_sign_in=False)
    with pytest.raises(ProviderSignInRefused):
        sign_in(provider, "sub-1", "reviewers")
    with every_tenant():
        assert not ProviderPerson.objects.exists()


def test_roles_follow_the_claims_of_each_sign_in(provider: IdentityProvider) -> None:
    user = sign_in(provider, "sub-1", "reviewers", "qa")
    assert roles(user, provider) == [TIER, QA]
    assert not User.objects.get(id=user.id).is_staff
    sign_in(provider, "sub-1", "auditors")
    assert roles(user, provider) == ["auditor"]
    assert User.objects.get(id=user.id).is_staff
    with pytest.raises(ProviderSignInRefused):
        sign_in(provider, "sub-1")
    assert roles(user, provider) == []  # the sign-in is refused, and the roles are gone all the same
    assert "person.left_groups" in actions(provider)


def test_a_role_that_people_gave_is_not_the_mappings_to_take(cast: Cast, provider: IdentityProvider) -> None:
    user = sign_in(provider, "sub-1", "reviewers")
    with every_tenant():
        person_role_give(actor=SYSTEM, at=timezone.now(), user=user, organization=provider.organization, role=QA)
    sign_in(provider, "sub-1", "qa")
    sign_in(provider, "sub-1")
    assert roles(user, provider) == [QA]


def test_a_mapping_that_no_longer_gives_a_role_takes_it_at_once(cast: Cast, provider: IdentityProvider) -> None:
    user = sign_in(provider, "sub-1", "reviewers", "qa")
    change(cast, provider, mapping={"qa": [QA]})
    assert roles(user, provider) == [QA]


def test_groups_that_lead_to_a_forbidden_pair_give_neither_role(provider: IdentityProvider) -> None:
    user = sign_in(provider, "sub-1", "reviewers")
    with pytest.raises(ProviderSignInRefused):
        sign_in(provider, "sub-1", "reviewers", "auditors")
    assert roles(user, provider) == []


def test_the_same_mail_address_and_name_is_somebody_else(cast: Cast, provider: IdentityProvider) -> None:
    rita = cast.reviewer
    rita.email = "rita@clinic.example"
    rita.save(update_fields=["email"])
    user = sign_in(provider, "sub-1", "reviewers", preferred_username="rita", email="rita@clinic.example")
    assert user.id != rita.id


def test_the_same_subject_at_another_provider_is_somebody_else(cast: Cast, provider: IdentityProvider) -> None:
    other = connect(cast, "stranger-login", cast.other)
    mine, theirs = sign_in(provider, "sub-1", "reviewers"), sign_in(other, "sub-1", "reviewers")
    assert mine.id != theirs.id
    assert roles(mine, other) == []


def test_two_subjects_with_one_name_are_two_people(provider: IdentityProvider) -> None:
    one = sign_in(provider, "sub-1", "reviewers", preferred_username="rita")
    two = sign_in(provider, "sub-2", "reviewers", preferred_username="rita")
    assert one.id != two.id


def test_somebody_with_a_role_elsewhere_is_not_signed_in_and_the_try_is_on_record(
    cast: Cast, provider: IdentityProvider
) -> None:
    user = sign_in(provider, "sub-1", "reviewers")
    with pytest.raises(Refused):
        cast.person(user.username, "auditor", organization=cast.other)
    with every_tenant():
        user.groups.add(RoleGroup.objects.get(organization=cast.other, role="auditor").group)
    with pytest.raises(ProviderOverreach):
        sign_in(provider, "sub-1", "reviewers")
    assert violations() == ["cross_tenant"]


def test_an_administrator_of_the_installation_is_never_signed_in(cast: Cast, provider: IdentityProvider) -> None:
    user = sign_in(provider, "sub-1", "reviewers")
    User.objects.filter(id=user.id).update(is_superuser=True)
    with pytest.raises(ProviderOverreach):
        sign_in(provider, "sub-1", "reviewers")


def test_whose_access_an_operator_ended_does_not_come_back_by_signing_in(
    cast: Cast, provider: IdentityProvider
) -> None:
    user = sign_in(provider, "sub-1", "reviewers")
    with every_tenant():
        person_deactivate(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            user_id=user.id,
            reason_code="person_left",
        )
    with pytest.raises(ProviderSignInRefused):
        sign_in(provider, "sub-1", "reviewers")
    assert roles(user, provider) == []


def test_linking_is_for_people_of_this_organization_alone_and_once(cast: Cast, provider: IdentityProvider) -> None:
    def link(user: User, subject: str) -> ProviderPerson:
        actor = cast.actor(user, [cast.organization])
        with every_tenant():
            return person_link(actor=actor, at=timezone.now(), provider=provider, user=user, subject=subject)

    link(cast.reviewer, "sub-rita")
    assert sign_in(provider, "sub-rita").id == cast.reviewer.id  # the role that people gave is enough
    with pytest.raises(AlreadyExists):
        link(cast.auditor, "sub-rita")
    for stranger in (cast.other_operator, cast.administrator):
        with pytest.raises(ProviderOverreach):
            link(stranger, "sub-else")


def test_people_of_a_provider_cannot_use_a_password_and_others_only_where_it_is_not_required(
    cast: Cast, provider: IdentityProvider
) -> None:
    def sign_in_by_password(user: User) -> int:
        user.set_password("correct horse battery")
        user.save(update_fields=["password"])
        answer = Client().post("/accounts/login/", {"login": user.username, "password": "correct horse battery"})
        return int(answer.status_code)

    made = sign_in(provider, "sub-1", "reviewers")
    assert sign_in_by_password(made) == 403
    assert sign_in_by_password(cast.reviewer) == 302
    change(cast, provider, required=True)
    assert sign_in_by_password(cast.reviewer) == 403
    assert sign_in_by_password(cast.administrator) == 302  # the way in when the provider is away
    assert sign_in_by_password(cast.other_operator) == 302
    both = cast.person("bea", TIER)
    cast.person("bea", TIER, organization=cast.other)
    assert sign_in_by_password(both) == 302  # one organization cannot shut another one's people out
