"""A person with roles, in one transaction around the ordinary services."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from governance.people.models import User
from governance.people.services.people import person_create, person_role_give
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound


def person_with_roles(
    *, actor: Actor, at: datetime, organization: Organization, username: str, password: str, roles: Sequence[str]
) -> User:
    """Creates a person who can sign in to the console and has these roles."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    # One transaction: an error half-way would otherwise leave an account that can sign in without its roles.
    with transaction.atomic():
        user = person_create(actor=actor, at=at, username=username, password=password, is_staff=True)
        for role in roles:
            person_role_give(actor=actor, at=at, user=user, organization=organization, role=role)
    return user
