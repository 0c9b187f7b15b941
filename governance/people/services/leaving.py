"""What ends with a person's access besides roles and sign-in: claims, delegations, sessions, and the service accounts
that they answer for."""

from datetime import datetime
from uuid import UUID

from governance.people.hooks import work_releases
from governance.people.models import ServiceAccount, User
from governance.people.selectors.people import RESPONSIBLE_LEFT
from governance.people.selectors.sign_in import sessions_of
from governance.people.services.accounts import service_account_suspend
from reasoncodes.base.actors import SYSTEM, Actor
from reasoncodes.base.tenancy import every_tenant


def work_release(*, actor: Actor, at: datetime, user_id: UUID) -> dict[str, int]:
    """Gives back claims and ends delegations. Call it before the person's row is locked: a vote locks the review first
    and the person then, and the other order would make the two wait for each other."""
    released: dict[str, int] = {}
    # In all organizations: nobody works on in one of them for a person who has left.
    with every_tenant():
        for release in work_releases():
            for what, count in release(actor=actor, at=at, user_id=user_id).items():
                released[what] = released.get(what, 0) + count
    return released


def accounts_suspend(*, actor: Actor, at: datetime, user: User) -> list[ServiceAccount]:
    """Suspends the service accounts whose responsible person this is: from now on nobody answers for what they do.
    An operator names another person and reinstates them."""
    with every_tenant():
        found = ServiceAccount.objects.filter(responsible=user, status=ServiceAccount.Status.ACTIVE).order_by("id")
        return [
            service_account_suspend(
                # The person may answer for an account of an organization in which the actor has no say.
                actor=actor if actor.may_act_in(account.organization_id) else SYSTEM,
                at=at,
                service_account_id=account.id,
                reason_code=RESPONSIBLE_LEFT,
            )
            for account in found
        ]


def sessions_end(*, user: User) -> int:
    """All of them, at once."""
    sessions = sessions_of(user=user)
    if not user.has_usable_password():
        # Sessions are signed with the password's hash: a new one ends those, too, that are not in the list.
        user.set_unusable_password()
        user.save(update_fields=["password"])
    for session in sessions:
        session.end()
    return len(sessions)
