"""The demo's organizations, people and service accounts."""

from datetime import datetime

from config.demo.secrets import DemoSecrets
from governance.documents import OWNER_GROUPS
from governance.models import Organization, ServiceAccount, User
from governance.roles import AUDITOR, OPERATOR, ApiScope
from governance.services.organization import organization_create, product_create
from governance.services.person import person_create
from governance.services.role import person_role_give
from governance.services.service_account import service_account_create
from reasoncodes.actors import SYSTEM

PEOPLE: dict[str, tuple[str, ...]] = {
    "operator": (OPERATOR,),
    "operator2": (OPERATOR,),
    "reviewer": ("reviewer:customer_clinician",),
    "reviewer2": ("reviewer:customer_clinician",),
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


def person_ensure(*, username: str, secrets: DemoSecrets, at: datetime, superuser: bool = False) -> User:
    """The stored hash is compared with the remembered one: checking sixteen passwords would take seconds."""
    user = User.objects.filter(username=username).first()
    if user is None:
        user = person_create(actor=SYSTEM, at=at, username=username, is_staff=True)
    if user.password != secrets.password_hash(username) or user.is_superuser != superuser:
        user.set_password(secrets.password(username))
        user.is_superuser = superuser
        user.save(update_fields=["password", "is_superuser"])
        secrets.remember_password_hash(username, user.password)
    return user


def people_ensure(*, organization: Organization, secrets: DemoSecrets, at: datetime) -> None:
    for username, roles in PEOPLE.items():
        user = person_ensure(username=username, secrets=secrets, at=at)
        for role in roles:
            person_role_give(actor=SYSTEM, at=at, user=user, organization=organization, role=role)
    person_ensure(username="admin", secrets=secrets, at=at, superuser=True)


def service_ensure(*, organization: Organization, slug: str, at: datetime) -> ServiceAccount:
    found = ServiceAccount.objects.filter(organization=organization, slug=slug).first()
    return found or service_account_create(actor=SYSTEM, at=at, organization=organization, slug=slug)
