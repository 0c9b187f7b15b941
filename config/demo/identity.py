"""The demo's organizations, people and service accounts."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from django.contrib.auth.hashers import make_password

from config.demo.secrets import DemoSecrets
from governance.contracts.rules.documents import OWNER_GROUPS
from governance.people.models import ServiceAccount, User
from governance.people.rules.roles import AUDITOR, OPERATOR, ApiScope
from governance.people.services.accounts import (
    service_account_create,
    service_account_reinstate,
    service_account_responsible_name,
)
from governance.people.services.people import person_create, person_role_give
from governance.tenancy.models import Organization
from governance.tenancy.services import organization_create, product_create
from reasoncodes.base.actors import SYSTEM

ADMIN = "admin"
PEOPLE: dict[str, tuple[str, ...]] = {
    "operator": (OPERATOR,),
    "operator2": (OPERATOR,),
    "reviewer": ("reviewer:customer_clinician", "reviewer:approvers", "reviewer:finance"),
    "reviewer2": ("reviewer:customer_clinician", "reviewer:approvers", "reviewer:finance"),
    "sa_qa": ("reviewer:sa_qa",),
    "auditor": (AUDITOR,),
    **{f"owner_{group.replace('-', '_')}": (f"owner:{group}",) for group in OWNER_GROUPS},
}
SERVICES: dict[str, tuple[str, ...]] = {
    "caller": (ApiScope.ATTEMPTS_CREATE, ApiScope.GOVERNANCE_READ),
    "executor": (ApiScope.ATTEMPTS_EXECUTE,),
    "reviewer_service": (ApiScope.REVIEWS_DECIDE,),
    "workflows": (
        ApiScope.ORCHESTRATOR_READ,
        ApiScope.ORCHESTRATOR_READ_INSTANCES,
        ApiScope.ORCHESTRATOR_WRITE,
        ApiScope.ORCHESTRATOR_PUBLISH,
        ApiScope.ORCHESTRATOR_INTERVENE,
    ),
    "governance": (ApiScope.GOVERNANCE_READ, ApiScope.GOVERNANCE_WRITE),
    "ledger": (ApiScope.LEDGER_READ,),
    "admin": tuple(ApiScope),
}


def organization_ensure(*, slug: str, name: str, at: datetime) -> Organization:
    found = Organization.objects.filter(slug=slug).first()
    if found is not None:
        return found
    organization = organization_create(actor=SYSTEM, at=at, slug=slug, name=name, regions=["US"])
    product_create(actor=SYSTEM, at=at, organization=organization, slug="dermatology", name="Dermatology")
    return organization


def people_ensure(*, organization: Organization, secrets: DemoSecrets, at: datetime) -> None:
    users = [_person(username, at) for username in (*PEOPLE, ADMIN)]
    _passwords(users, secrets)
    for user in users:
        for role in PEOPLE.get(user.username, ()):
            person_role_give(actor=SYSTEM, at=at, user=user, organization=organization, role=role)


def _person(username: str, at: datetime) -> User:
    found = User.objects.filter(username=username).first()
    user = found or person_create(actor=SYSTEM, at=at, username=username, is_staff=True)
    if user.is_superuser != (username == ADMIN):
        user.is_superuser = not user.is_superuser
        user.save(update_fields=["is_superuser"])
    return user


def _passwords(users: list[User], secrets: DemoSecrets) -> None:
    """Sets passwords whose stored hash is not the remembered one. No entry point can do this: people choose their
    passwords themselves, by a link."""
    # Hashes are compared as text: checking sixteen passwords would take seconds at every start.
    stale = [user for user in users if user.password != secrets.password_hash(user.username)]
    # Hashing releases the interpreter lock, so this uses all cores at the first start.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        hashes = list(pool.map(make_password, [secrets.password(user.username) for user in stale]))
    for user, hashed in zip(stale, hashes, strict=True):
        user.password = hashed
        user.save(update_fields=["password"])
        secrets.remember_password_hash(user.username, hashed)


def service_ensure(*, organization: Organization, slug: str, at: datetime) -> ServiceAccount:
    """The administrator answers for the demo's accounts: they decide on nothing, so every reviewer of the demo may
    release what the accounts ask for."""
    found = ServiceAccount.objects.filter(organization=organization, slug=slug).first()
    admin = User.objects.get(username=ADMIN)
    if found is None:
        return service_account_create(actor=SYSTEM, at=at, organization=organization, slug=slug, responsible=admin)
    if found.responsible_id is None:  # made by an earlier version, and suspended by its migration
        service_account_responsible_name(actor=SYSTEM, at=at, service_account_id=found.id, responsible=admin)
        found = service_account_reinstate(actor=SYSTEM, at=at, service_account_id=found.id)
    return found
