"""Errors of execution: a lease is lost, or cannot be granted."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind
from reasoncodes.base.errors import DomainError


class LeaseLost(RuleBroken):
    """You no longer have the lease: it expired, somebody took it over, or the attempt has ended.

    Stop your work on it. Holdpoint kept your report as late evidence; it changes nothing, and a person will find out
    what happened. If your work takes long, extend the lease with `/heartbeat` before `lease_expires_at`.
    """

    code = "lease-lost"
    status = 409
    title = "The lease is lost"
    default_reason_code = "lease_lost"
    violation = ViolationKind.STALE_LEASE


class NotLeasable(DomainError):
    """This attempt cannot be leased now.

    `reason_code` or `detail` says why: it is not released or not yet due, somebody else leases it, Holdpoint executes
    it itself, or a shutdown or a closed contract stops it. `/attempts/{id}/explain` shows what it waits for.
    """

    code = "not-leasable"
    status = 409
    title = "Not leasable now"
