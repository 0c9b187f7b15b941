"""The people and keys of the permission tests: Alice operates her organization, Oscar another one, and so on.

Every entry point is tried by its owner, by a stranger from the other organization, and by somebody with the wrong role.
"""

import time
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from governance.contracts.rules.documents import AREAS
from governance.people.models import User
from governance.people.rules.roles import ApiScope
from governance.people.services.accounts import api_key_issue
from governance.people.services.people import person_role_give
from governance.tenancy.models import Organization, RoleGroup
from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
from reasoncodes.base.tenancy import every_tenant
from tests.factories import OrganizationFactory, PersonFactory, ServiceAccountFactory


class Cast:
    @cached_property
    def organization(self) -> Organization:
        return OrganizationFactory(slug="clinic", name="Clinic")

    @cached_property
    def other(self) -> Organization:
        return OrganizationFactory(slug="stranger", name="Stranger")

    def person(
        self, username: str, *roles: str, organization: Organization | None = None, exception: bool = False
    ) -> User:
        """A person with these roles in the organization (Clinic by default). `exception`: as if two people had allowed
        them a pair of roles that is forbidden."""
        user: User = User.objects.filter(username=username).first() or PersonFactory(username=username)
        with every_tenant():
            for role in roles:
                person_role_give(
                    actor=SYSTEM,
                    at=timezone.now(),
                    user=user,
                    organization=organization or self.organization,
                    role=role,
                    exception=exception,
                )
        return user

    @cached_property
    def operator(self) -> User:
        return self.person("alice", "operator")

    @cached_property
    def second_operator(self) -> User:
        """Amir can confirm what Alice proposes. With him the founding of the clinic has ended."""
        return self.person("amir", "operator")

    @cached_property
    def other_operator(self) -> User:
        return self.person("oscar", "operator", organization=self.other)

    @cached_property
    def auditor(self) -> User:
        return self.person("audrey", "auditor")

    @cached_property
    def reviewer(self) -> User:
        return self.person("rita", "reviewer:customer_clinician")

    @cached_property
    def owner(self) -> User:
        """Olga is in all nine owning groups: put there directly, because nearly every test needs it."""
        user = self.person("olga")
        with every_tenant():
            groups = RoleGroup.objects.filter(organization=self.organization, role__startswith="owner:")
            user.groups.set(groups.values_list("group_id", flat=True))
        return user

    @cached_property
    def second_owner(self) -> User:
        """Owen owns one area beside Olga: the ten approvals of a contract come from two people."""
        return self.person("owen", f"owner:{AREAS[-1].owner_group}")

    @cached_property
    def nobody(self) -> User:
        return self.person("norman")

    @cached_property
    def administrator(self) -> User:
        user = self.person("root")
        user.is_superuser = True
        user.save(update_fields=["is_superuser"])
        return user

    def key(self, *scopes: str, organization: Organization | None = None, responsible: User | None = None) -> str:
        """The clear text of a new key with these scopes (all scopes if none is named). Its organization's operator is
        responsible for the service, unless somebody else is named."""
        if responsible is None:
            responsible = self.operator if organization in {None, self.organization} else self.other_operator
        account = ServiceAccountFactory(organization=organization or self.organization, responsible=responsible)
        with every_tenant():
            return api_key_issue(
                actor=SYSTEM, at=timezone.now(), service_account=account, scopes=scopes or tuple(ApiScope)
            ).secret

    def api(self, *scopes: str, organization: Organization | None = None, responsible: User | None = None) -> APIClient:
        """A client that calls the API with a new key."""
        return self.with_key(self.key(*scopes, organization=organization, responsible=responsible))

    @staticmethod
    def with_key(secret: str) -> APIClient:
        client = APIClient(raise_request_exception=False)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
        return client

    @staticmethod
    def session(user: User) -> APIClient:
        """A client that calls the API as a signed-in person."""
        client = APIClient(raise_request_exception=False)
        client.force_login(user)
        return client

    @staticmethod
    def fresh(client: Any, *, at: float | None = None) -> Any:
        """The same client, as if its person had just proved who they are (or at that moment)."""
        session = client.session
        session["account_authentication_methods"] = [{"method": "password", "at": at or time.time()}]
        session["account_authentication_methods_user"] = session["_auth_user_id"]
        session.save()
        return client

    @staticmethod
    def console(user: User) -> Client:
        """A browser without JavaScript, signed in to the console."""
        client = Client(raise_request_exception=False)
        client.force_login(user)
        return client

    @staticmethod
    def actor(user: User, organizations: Iterable[Organization]) -> Actor:
        return Actor(ActorKind.PERSON, user.id, frozenset(o.id for o in organizations))
