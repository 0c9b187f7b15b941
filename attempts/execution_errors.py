"""Refusals of execution: leases that are lost or not given."""

from governance.errors import RuleBroken
from governance.states import ViolationKind
from reasoncodes.errors import DomainError


class LeaseLost(RuleBroken):
    """The lease is not yours any more: it ran out, was taken over, or the attempt has ended.

    Stop what you are doing. What you reported was kept as late evidence, and changes nothing; a person finds out what
    happened. Extend a lease with `/heartbeat` before `lease_expires_at` if your work takes longer.
    """

    code = "lease-lost"
    status = 409
    title = "The lease is lost"
    default_reason_code = "lease_lost"
    violation = ViolationKind.STALE_LEASE


class NotLeasable(DomainError):
    """This attempt cannot be leased now.

    `reason_code` or `detail` says why: it is not released, not yet due, leased by somebody else, executed by Holdpoint
    itself, or a shutdown or a closed contract holds it back. `/attempts/{id}/explain` shows what it waits for.
    """

    code = "not-leasable"
    status = 409
    title = "Not leasable now"
