"""What a person chose to get by mail, and addresses that a mail server refused. No part of the record."""

from datetime import datetime

from attempts.models import MailChoice
from attempts.states import MailMode
from governance.models import User


def mail_choose(*, user: User, mode: MailMode) -> MailChoice:
    """Choosing anew also gives a refused address another chance."""
    choice, _ = MailChoice.objects.update_or_create(
        user=user, defaults={"mode": mode.value, "refused_address": "", "refused_at": None}
    )
    return choice


def address_refused(*, user: User, at: datetime) -> None:
    """Nothing more goes to this address until the person's address changes, or they choose anew."""
    MailChoice.objects.update_or_create(user=user, defaults={"refused_address": user.email, "refused_at": at})
