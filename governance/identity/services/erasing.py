"""What is erased with a person at their identity provider: the names that the provider has for them."""

from datetime import datetime

from governance.identity.models import ProviderPerson
from governance.retention.models import ErasureItem
from governance.retention.selectors.subjects import PERSON
from reasoncodes.base.actors import Actor
from reasoncodes.base.tenancy import every_tenant


def provider_person_erase(item: ErasureItem, actor: Actor, at: datetime) -> None:
    """In the transaction that erases the person."""
    if item.kind == PERSON.name:
        with every_tenant():
            ProviderPerson.objects.filter(user_id=item.subject_id).delete()
