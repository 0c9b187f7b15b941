"""factory-boy factories that call the services, so that what they create is on the ledger like everything else."""

from collections.abc import Callable
from typing import Any

import factory
from django.db.models import Model
from django.utils import timezone

from governance.people.models import ServiceAccount, User
from governance.people.services.accounts import service_account_create
from governance.people.services.people import person_create
from governance.people.services.role_groups import role_groups_create
from governance.tenancy.models import Organization, Product, RoleGroup
from governance.tenancy.services import organization_create, product_create
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant

TIERS = ("customer_clinician", "sa_qa")
SERVICES: dict[type[Model], Callable[..., Model]] = {
    Organization: organization_create,
    Product: product_create,
    ServiceAccount: service_account_create,
    User: person_create,
}


class ServiceFactory(factory.django.DjangoModelFactory):
    """Subclasses name the service that makes the row."""

    class Meta:
        abstract = True

    @classmethod
    def _create(cls, model_class: Any, *args: Any, **kwargs: Any) -> Any:
        with every_tenant():
            return SERVICES[model_class](actor=SYSTEM, at=timezone.now(), **kwargs)


class OrganizationFactory(ServiceFactory):
    """With the tiers that the tests' policies and definitions name, beside the one that every organization has."""

    slug = factory.Sequence(lambda n: f"organization-{n}")
    name = factory.LazyAttribute(lambda o: o.slug.title())
    regions = factory.LazyFunction(lambda: ["US"])

    class Meta:
        model = Organization

    @classmethod
    def _create(cls, model_class: Any, *args: Any, **kwargs: Any) -> Any:
        organization = super()._create(model_class, *args, **kwargs)
        with every_tenant():
            role_groups_create(organization=organization, roles=[f"reviewer:{tier}" for tier in TIERS])
        return organization


class ProductFactory(ServiceFactory):
    organization = factory.SubFactory(OrganizationFactory)
    slug = factory.Sequence(lambda n: f"product-{n}")
    name = factory.LazyAttribute(lambda o: o.slug.title())

    class Meta:
        model = Product


class PersonFactory(ServiceFactory):
    username = factory.Sequence(lambda n: f"person-{n}")
    password = "a long enough pass phrase"
    is_staff = True

    class Meta:
        model = User

    @classmethod
    def _create(cls, model_class: Any, *args: Any, **kwargs: Any) -> Any:
        """With a password, as if the person had accepted an invitation: no service sets one for somebody else."""
        password = kwargs.pop("password")
        user = super()._create(model_class, *args, **kwargs)
        user.set_password(password)
        user.save(update_fields=["password"])
        return user


def answerable(organization: Organization) -> User:
    """Ansel, who answers for the tests' service accounts and does nothing else. Made without the services, because
    tests count what is on the ledger. An auditor: the responsible person needs a role, and his decides nothing."""
    ansel, _ = User.objects.get_or_create(username="ansel", defaults={"password": "!", "is_active": True})
    with every_tenant():
        ansel.groups.add(RoleGroup.objects.get(organization=organization, role="auditor").group_id)
    return ansel


class ServiceAccountFactory(ServiceFactory):
    organization = factory.SubFactory(OrganizationFactory)
    slug = factory.Sequence(lambda n: f"service-{n}")
    responsible = factory.LazyAttribute(lambda o: answerable(o.organization))

    class Meta:
        model = ServiceAccount
