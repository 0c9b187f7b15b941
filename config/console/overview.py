"""The console's front page: live figures, each with a bounded cost, and only of what the person may see."""

from datetime import datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from attempts.lifecycle.selectors.limits import holds_that_worry
from attempts.lifecycle.selectors.overview import (
    denials_lately,
    holds_by_age,
    quarantine_by_category,
    quarantine_escalated,
)
from attempts.proposals.selectors import proposal_list
from config.stuck import stuck
from governance.console.admin.base import console_actor
from governance.console.admin.charts import Series, bars, columns
from governance.console.selectors.pages import (
    COUNT_LIMIT,
    areas_waiting,
    contracts_by_state,
    roles_of,
    shutdowns_covering,
)
from governance.enforcement.selectors import intake_by_verdict
from governance.people.rules.roles import AUDIT, VIEW
from governance.people.selectors.people import accounts_orphaned, key_ends, organizations_where
from governance.sealing.selectors.tree import sealer_lag
from governance.violations.selectors import violation_list
from workflows.runs.selectors.console import events_unmatched, halts_by_reason, outbox_waiting, runs_by_status
from workflows.webhooks.selectors import endpoints_in_trouble

VERDICTS = (
    Series("allow", "allowed", "good"),
    Series("needs_approval", "held", "warn"),
    Series("deny", "denied", "bad"),
)
# Seconds. The relay runs every two: an event that has waited longer than this needs a look.
LAG_WORRIES = 30


def _listing_url(view: str, **query: str) -> str:
    return f"{reverse(f'admin:{view}_changelist')}?{urlencode(query)}"


def figures(request: HttpRequest, *, at: datetime) -> dict[str, Any]:
    """Everything on the page that changes by itself."""
    runs = runs_by_status()
    return {
        "limit": COUNT_LIMIT,
        "operates": bool(console_actor(request).organization_ids) or request.user.is_superuser,
        "shutdowns": list(shutdowns_covering()[:10]),
        "proposals": list(proposal_list(is_open=True)[:10]),
        "orphaned_accounts": list(accounts_orphaned()[:10]),
        "runs": [
            (status, count, _listing_url("workflows_workflowinstance", status=status)) for status, count in runs.items()
        ],
        "unmatched": events_unmatched(),
        **_intake(at),
        **_waiting(at),
        **_trouble(),
        **_lags(at),
        **_stuck(request, at),
    }


def _intake(at: datetime) -> dict[str, Any]:
    intake = intake_by_verdict(at=at)
    labels = [f"{hour:%H}:00" for hour, _ in intake.hours]
    values = [counts for _, counts in intake.hours]
    drawn = columns(title="Decisions per hour, by verdict", labels=labels, values=values, series=VERDICTS)
    totals = intake.totals
    return {
        "intake_chart": mark_safe(drawn),  # noqa: S308  # our own SVG, made from numbers
        "intake_rows": [
            (label, [counts[one.name] for one in VERDICTS]) for label, counts in zip(labels, values, strict=True)
        ],
        "intake_series": VERDICTS,
        "intake_totals": [
            (one, totals[one.name], _listing_url("governance_enforcementdecision", verdict=one.name))
            for one in VERDICTS
        ],
        "decisions": totals,
        "decision_total": sum(totals.values()),
        "intake_capped": intake.capped,
    }


def _waiting(at: datetime) -> dict[str, Any]:
    holds, denials = holds_by_age(at=at), denials_lately(at=at)
    return {
        "holds": holds,
        "holds_worry": holds_that_worry(),
        "hold_bars": bars(holds.by_age) if holds.total else [],
        "denial_bars": bars(denials.by_reason),
        "throttled_bars": bars(denials.throttled),
        "denials_capped": denials.capped,
    }


def _trouble() -> dict[str, Any]:
    halts, cases = halts_by_reason(), quarantine_by_category()
    reasons = {code: _listing_url("workflows_workflowinstance", halt_reason=code) for code, _ in halts}
    categories = {name: _listing_url("attempts_quarantinecase", category=name) for name, _ in cases}
    return {
        "halt_bars": bars(halts, urls=reasons),
        "quarantine_bars": bars(cases, urls=categories),
        "quarantine_escalated": quarantine_escalated(),
    }


def _stuck(request: HttpRequest, at: datetime) -> dict[str, Any]:
    """Of the organizations that the person may see; the installation's administrators see all."""
    user: Any = request.user
    mine = None if user.is_superuser else organizations_where(user=user, permission=VIEW)
    found = stuck(at=at, organizations=mine)
    return {"stuck": [(name, one.count, _lag_words(one.oldest_s)) for name, one in found.items() if one.count]}


def _lags(at: datetime) -> dict[str, Any]:
    outbox, sealer, ends = outbox_waiting(at=at), sealer_lag(at=at), key_ends(at=at)
    return {
        "outbox": outbox,
        "outbox_lag": _lag_words(outbox.lag_seconds),
        "outbox_late": outbox.waiting and outbox.lag_seconds > LAG_WORRIES,
        "sealer_lag": _lag_words(sealer),
        "sealer_late": sealer > settings.SEALER_LAG_LIMIT_SECONDS,
        "webhooks_in_trouble": endpoints_in_trouble(),
        "keys_ending": ends.within[max(ends.within)],
        "keys_endless": ends.endless,
    }


def _lag_words(seconds: float) -> str:
    """Coarse words, so that a lag which grew by a second does not change the page (and its ETag)."""
    steps = ((5, "under 5 s"), (15, "under 15 s"), (60, "under a minute"))
    return next((words for limit, words in steps if seconds < limit), f"{seconds / 60:,.0f} min")


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Called by unfold for the front page."""
    user: Any = request.user
    where = {permission: organizations_where(user=user, permission=permission) for permission in (VIEW, AUDIT)}
    audited = violation_list()
    if not user.is_superuser:
        audited = audited.filter(organization_id__in=where[AUDIT])
    roles, contracts = roles_of(user_id=user.pk).values(), contracts_by_state()
    return (
        context
        | figures(request, at=timezone.now())
        | {
            "title": "Overview",
            "organizations": bool(where[VIEW]) or user.is_superuser,
            "audits": bool(where[AUDIT]) or user.is_superuser,
            "owns": any(role.startswith("owner:") for found in roles for role in found),
            "contracts": contracts,
            "contract_total": sum(contracts.values()),
            "waiting": areas_waiting(user_id=user.pk),
            "violations": list(audited[:5]),
        }
    )


@require_safe
def overview_figures(request: HttpRequest) -> HttpResponse:
    """The live part as a fragment; 304 while nothing has changed."""
    text = render_to_string("admin/console/figures.html", figures(request, at=timezone.now()), request=request)
    # The page polls. A 304 costs no transfer and no redrawing.
    tag = f'"{sha256(text.encode()).hexdigest()[:32]}"'
    answer = HttpResponse(status=304) if request.headers.get("If-None-Match") == tag else HttpResponse(text)
    answer["ETag"] = tag
    answer["Cache-Control"] = "private, no-cache"
    return answer
