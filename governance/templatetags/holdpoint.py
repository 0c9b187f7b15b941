"""Tags and filters for the console's templates."""

from typing import Any

from django import template

from governance.console.selectors.pages import shutdowns_covering
from governance.integrity.selectors.standing import faults_count
from governance.people.rules.roles import OPERATE
from governance.people.selectors.people import founding_open, organizations_where

register = template.Library()
SHOWN = 5
TONES = {
    "approved": "good",
    "approve": "good",
    "open": "good",
    "active": "good",
    "allow": "good",
    "pending": "plain",
    "draft": "info",
    "stale": "warn",
    "suspended": "warn",
    "held": "warn",
    "needs_approval": "warn",
    "moved": "info",
    "changed": "warn",
    "added": "good",
    "removed": "bad",
    "rejected": "bad",
    "reject": "bad",
    "revoked": "bad",
    "revoke": "bad",
    "deny": "bad",
    "engaged": "bad",
    "completed": "good",
    "done": "good",
    "delivered": "good",
    "running": "info",
    "in_progress": "info",
    "waiting_approval": "warn",
    "halted": "bad",
    "failed": "bad",
    "timed_out": "bad",
    "refused": "bad",
}


@register.simple_tag(takes_context=True)
def engaged_shutdowns(context: dict[str, Any]) -> list[Any]:
    """For the banner on every page."""
    user = getattr(context.get("request"), "user", None)
    # One query for each page; it uses a partial index that is empty while no shutdown is engaged.
    return list(shutdowns_covering()[:SHOWN]) if user is not None and user.is_authenticated else []


@register.simple_tag(takes_context=True)
def record_faults(context: dict[str, Any]) -> int:
    """For the banner on every page: how many faults of the record nobody has accepted."""
    user = getattr(context.get("request"), "user", None)
    return faults_count() if user is not None and user.is_authenticated else 0


@register.simple_tag(takes_context=True)
def organizations_founding(context: dict[str, Any]) -> list[Any]:
    """For the banner on every page: the organizations in which one person still acts alone."""
    user = getattr(context.get("request"), "user", None)
    if user is None or not user.is_authenticated:
        return []
    operates = None if user.is_superuser else organizations_where(user=user, permission=OPERATE)
    return list(founding_open(organization_ids=operates)[:SHOWN])


@register.filter
def tone(word: str) -> str:
    """The colour of a badge. The word itself is always shown too."""
    return TONES.get(str(word), "plain")


@register.filter
def shutdown_name(shutdown: Any) -> str:
    """What the shutdown stops, in words."""
    match shutdown.scope:
        case "global":
            return "Everything, everywhere"
        case "region":
            return f"Region {shutdown.target}"
        case "organization":
            return f"Organization {shutdown.organization.name}"
        case scope:
            return f"{scope.capitalize()} {shutdown.target} of {shutdown.organization.name}"


@register.filter
def multiline(text: str) -> bool:
    """True for a condition's error message: it has a caret below the error, so its lines must not be wrapped."""
    return "\n" in text


@register.filter
def counted(number: Any, limit: Any = None) -> str:
    """The number with thousands separators, and a plus where counting stopped."""
    return f"{number:,}+" if limit is not None and number >= limit else f"{number:,}"
