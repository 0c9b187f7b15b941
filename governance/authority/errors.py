"""Refusals about authority changes. `SecondPersonNeeded` is with the other violations."""

from reasoncodes.base.errors import DomainError


class FreshSignInNeeded(DomainError):
    """Your sign-in is too old for this.

    Whoever confirms a change of authority must have proved who they are within the last ten minutes. Sign in again, or
    confirm your password, code or passkey at `/accounts/reauthenticate/`, and then confirm the change.
    """

    code = "fresh-sign-in-needed"
    status = 403
    title = "Sign in again first"


class ProposalOutdated(DomainError):
    """What was proposed is no longer what would come into force.

    The draft, the person or the account changed after the proposal. Nothing was changed. Withdraw the proposal, look at
    what is there now, and propose again.
    """

    code = "proposal-outdated"
    status = 409
    title = "The proposal is outdated"
