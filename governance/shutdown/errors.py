"""Refusals of shutdowns."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind


class GlassUnbroken(RuleBroken):
    """Somebody else can still release this shutdown, so break-glass is not open.

    Break-glass is for the case that nobody is left: the only administrator or operator engaged the shutdown themselves.
    Ask another administrator of the installation, or another operator of the organization, to release it. If they have
    left, end their access first.
    """

    code = "break-glass-closed"
    status = 403
    title = "Break-glass is not open"
    violation = ViolationKind.SECOND_PERSON_MISSING
