"""Words and symbols of the review pages. Colour is never the only sign: a shape and a word say the same."""

import re
from collections.abc import Mapping
from typing import Any

from django import template
from django.http import QueryDict

from governance.boundary.rules.forms import shown_value

register = template.Library()
RISK_SHAPES = {"low": "●", "medium": "◆", "high": "▲"}
EFFECT_WORDS = {
    "none": "Changes nothing: it reads or checks.",
    "idempotent": "Safe to repeat: the receiver takes the same key once.",
    "once": "Happens at most once, and is never repeated automatically.",
}
STATUS_SIGNS = {
    "approved": "✓",
    "confirmed": "✓",
    "overridden": "✓",
    "decided": "✓",
    "rejected": "✕",
    "expired": "⏱",
    "canceled": "–",
}
STATE_WORDS = {
    "approved-for-execution": "released, not executed yet",
    "completed": "executed",
    "failed-quarantined": "failed, in quarantine",
    "preflight-denied": "not executed",
    "review-required": "waiting",
}


@register.filter
def risk_shape(risk: str) -> str:
    return RISK_SHAPES.get(risk, "■")


@register.filter
def effect_words(effect: str) -> str:
    return EFFECT_WORDS.get(effect, effect)


@register.filter
def status_sign(status: str) -> str:
    return STATUS_SIGNS.get(status, "•")


@register.filter
def state_words(state: str) -> str:
    return STATE_WORDS.get(state, state)


@register.filter
def plain(code: str) -> str:
    """A code such as `second_line` as words."""
    return str(code).replace("_", " ").replace("-", " ")


@register.filter
def about(review: Any) -> str:
    """What a review is about, in one line."""
    if review.attempt is not None:
        return f"{review.attempt.operation or 'action'} on {review.attempt.target_ref or 'no target'}"
    return f"{review.label or 'Judge a case'}: {review.subject_ref}"


@register.filter
def places(bucket: dict[str, Any]) -> list[bool]:
    """The approvals of a tier as a list of seats, filled ones first."""
    return [number < bucket["approvals"] for number in range(bucket["approvals_required"])]


@register.filter
def claim_lives(review: Any, now: Any) -> bool:
    return bool(review.claimed_by_id and review.claimed_until and review.claimed_until > now)


@register.filter
def of_row(covered: dict[Any, list[Any]], row: Any) -> list[Any]:
    """For whom the reader stands in, for one row of the queue."""
    return covered.get(row.id, [])


@register.filter
def may_delegate(tiers: list[Any]) -> bool:
    """Whether one of the tiers can be delegated to somebody now."""
    return any(one.people and not one.taken for one in tiers)


@register.filter
def to_whom(one: Any, username: str) -> str:
    """The value of one choice: organization, tier and person."""
    return f"{one.organization.id}|{one.tier}|{username}"


@register.filter
def end_words(row: Any) -> str:
    """How a delegation ended, in words."""
    who = f"ended by {row.ended_by.username}" if row.ended_by else ""
    words = {
        "role_taken": "ended because one of you lost the tier",
        "deactivated": "ended because one of you lost access",
        "upgrade": "ended when Holdpoint was upgraded",
    }
    return words.get(row.end_cause, who or "ended by itself")


@register.filter
def under_name(found: Any, name: str) -> str:
    """What a mapping says under a name that the template has in a variable; empty if it says nothing."""
    return str(found.get(name, "")) if isinstance(found, Mapping) else ""


@register.filter
def entered(posted: Any, name: str) -> list[str]:
    """What was entered into a field of a task's form before it was refused."""
    return posted.getlist(f"form.{name}") if isinstance(posted, QueryDict) else []


@register.filter
def plain_number(value: Any) -> str:
    """A number as an input takes it, without separators of thousands."""
    return str(value)


@register.filter
def value_words(value: Any) -> str:
    return shown_value(value)


@register.filter
def advice_words(refusal: Any) -> str:
    """What to do, without the sentences that are for programs: those name operations and fields."""
    advice: str = refusal.advice()
    sentences = re.split(r"(?<=[.!?])\s+", advice.replace("\n", " "))
    return " ".join(one for one in sentences if "`" not in one)
