"""Getting started: from an empty installation to an attempt in the review queue. Which steps are done is read from the
rows."""

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from attempts.lifecycle.selectors.overview import Asked, asked
from config.console.start_forms import ROLE_SETS, AccountForm, CallForm, FirstPersonForm, StarterForm
from config.console.start_steps import REVIEW_PAGES, set_up_steps
from governance.authority.admin import shown_once, waits_for_second
from governance.authority.services.changes import Outcome, authority_act
from governance.authority.services.starting import contract_from_starter
from governance.console.admin.base import console_actor
from governance.console.selectors.lists import uuid_or_none
from governance.contracts.rules.starters import attempt_example, curl_line, starter
from governance.contracts.selectors import SetUp, organizations_newest, set_up
from governance.people.rules.roles import ApiScope
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError, WrongState

# The command, and with it the key, stays in a shell's history.
KEY_DAYS = 1


@dataclass(frozen=True, slots=True)
class Asking:
    """Who does a step, in which organization, and which steps are done."""

    request: HttpRequest
    actor: Actor
    organization: Organization
    found: SetUp


@require_safe
def start(request: HttpRequest) -> HttpResponse:
    organizations, chosen = _organizations(request)
    found = set_up(organization=chosen)
    said = asked(organization_id=chosen.id) if chosen else Asked(None, None, None)
    region = settings.DEPLOYMENT_REGION
    shown = set_up_steps(found, said, region=region, administrator=request.user.is_superuser)
    return _page(
        request,
        "admin/console/start.html",
        {
            "title": "Getting started",
            "organizations": organizations,
            "chosen": chosen,
            "steps": shown,
            "done": sum(step.done for step in shown),
            "next": next((step for step in shown if not step.done), None),
        },
    )


def start_step(request: HttpRequest, step: str) -> HttpResponse:
    """One form: GET shows it, POST does it."""
    if step not in FORMS:
        raise Http404
    _, chosen = _organizations(request)
    if chosen is None:
        return HttpResponseRedirect(reverse("console_start"))
    title, text, button, form_class, perform = FORMS[step]
    form = form_class(request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST" and form.is_valid():
        asking = Asking(request, console_actor(request), chosen, set_up(organization=chosen))
        try:
            return perform(asking, form.cleaned_data)
        except DomainError as refusal:
            status = refusal.status
            form.add_error(None, " ".join([refusal.detail, *(one.message for one in refusal.errors)]))
    context = {"title": title, "text": text, "button": button, "form": form, "chosen": chosen, "back": _here(chosen)}
    return _page(request, "admin/console/start_step.html", context, status=status)


def add_person(asking: Asking, data: dict[str, Any]) -> HttpResponse:
    roles = [role for name in data["roles"] for role in ROLE_SETS[name][1]]
    outcome = _act(
        asking,
        "person.create",
        subject=data["username"],
        details={"roles": roles, "email": data["email"]},
    )
    if outcome.applied is not None and outcome.once:
        return shown_once(asking.request, outcome, back=_here(asking.organization))
    return _said(asking, outcome, f"{data['username']} gets an invitation by mail.")


def _act(asking: Asking, kind: str, **more: Any) -> Outcome:
    return authority_act(actor=asking.actor, at=timezone.now(), organization=asking.organization, kind=kind, **more)


def _said(asking: Asking, outcome: Outcome, done: str) -> HttpResponse:
    """What happened, or that it waits for a second person."""
    return waits_for_second(asking.request, outcome) if outcome.applied is None else _done(asking, done)


def _add_account(asking: Asking, data: dict[str, Any]) -> HttpResponse:
    details = {"description": data["description"]}
    outcome = _act(asking, "service_account.create", subject=data["slug"], details=details)
    return _said(
        asking, outcome, f"The service account {data['slug']} is ready. It gets its key with the first request."
    )


def _add_contract(asking: Asking, data: dict[str, Any]) -> HttpResponse:
    made = contract_from_starter(
        actor=asking.actor,
        at=timezone.now(),
        organization=asking.organization,
        starter=starter(data["starter"]),
        slug=data["slug"],
    )
    said = f"{made.contract} is drafted with all ten documents. Now its owners have to approve them."
    if made.waiting is None:
        return _done(asking, said)
    # Until then every request under the contract is denied: its policy has no active version.
    messages.success(asking.request, f"{said} Its policy waits for a second person.")
    return waits_for_second(asking.request, Outcome(made.waiting))


def _first_call(asking: Asking, data: dict[str, Any]) -> HttpResponse:
    """The command contains a new key, so it is shown once."""
    contract, account = asking.found.contract, asking.found.account
    if contract is None or account is None or not asking.found.is_open:
        raise WrongState("You need an open contract and a service account first.")
    details = {"scopes": [ApiScope.ATTEMPTS_CREATE.value], "days": KEY_DAYS}
    outcome = _act(asking, "api_key.issue", subject=str(account.id), details=details)
    line = curl_line(
        base_url=asking.request.build_absolute_uri("/").rstrip("/"),
        slug=contract.slug,
        version=contract.version,
        secret=outcome.once,
        key=f"first-{token_hex(6)}",
        body=attempt_example(),
    )
    context = {"title": "The first request", "line": line, "contract": contract, "back": _here(asking.organization)}
    context |= {"review": REVIEW_PAGES, "waits": outcome.applied is None, "change": outcome.change}
    response = _page(asking.request, "admin/console/start_line.html", context)
    # The page has a key in clear text: no browser or proxy cache may keep it.
    response["Cache-Control"] = "no-store"
    return response


Perform = Callable[[Asking, dict[str, Any]], HttpResponse]
FORMS: dict[str, tuple[str, str, str, type[forms.Form], Perform]] = {
    "people": (
        "Add a person",
        "Nobody can approve a contract that they drafted, and nobody can release their own request. So you need at "
        "least one more person to own the ten areas, and a reviewer. In a trial this can be the same person. They get "
        "a link that works once, with which they choose their own password.",
        "Add the person",
        FirstPersonForm,
        add_person,
    ),
    "account": (
        "Add a service account",
        "Each service has its own account and calls Holdpoint with its own key. A service asks; it never decides. You "
        "are responsible for it: what it does counts as yours, so somebody else has to release what it asks for.",
        "Add the account",
        AccountForm,
        _add_account,
    ),
    "contract": (
        "A contract from a starter",
        "A contract says what services can ask for and what happens then. It starts with ten complete documents and "
        "a policy, which a second person has to confirm once the organization has two. It accepts no attempts until "
        "the owners of all ten areas have approved it.",
        "Draft it",
        StarterForm,
        _add_contract,
    ),
    "call": (
        "The first request",
        f"The next page shows one command for your shell, once. It contains a new key of your service account. The key "
        f"is valid for {KEY_DAYS} day and can only create attempts.",
        "Make the line",
        CallForm,
        _first_call,
    ),
}


def _organizations(request: HttpRequest) -> tuple[list[Organization], Organization | None]:
    """The organizations that the person operates, and the one that the page is about: the named one, else the
    newest."""
    actor = console_actor(request)
    if not actor.organization_ids and not request.user.is_superuser:
        raise PermissionDenied
    rows = organizations_newest(ids=actor.organization_ids)
    named: UUID | None = uuid_or_none(request.GET.get("organization", ""))
    if named is None:
        return rows, rows[0] if rows else None
    chosen = next((row for row in rows if row.id == named), None)
    if chosen is None:
        raise Http404
    return rows, chosen


def _here(organization: Organization) -> str:
    return f"{reverse('console_start')}?organization={organization.id}"


def _done(asking: Asking, said: str) -> HttpResponse:
    messages.success(asking.request, said)
    return HttpResponseRedirect(_here(asking.organization))


def _page(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return render(request, template, admin.site.each_context(request) | context, status=status)
