"""What is erased with a person besides their reference: one-time links, with the addresses where they were used."""

from datetime import datetime

from governance.people.models import SignInLink
from governance.retention.models import ErasureItem
from governance.retention.selectors.subjects import PERSON
from reasoncodes.base.actors import Actor


def sign_in_links_erase(item: ErasureItem, actor: Actor, at: datetime) -> None:
    """In the transaction that erases the person."""
    if item.kind == PERSON.name:
        SignInLink.objects.filter(user_id=item.subject_id).delete()
