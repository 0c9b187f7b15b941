"""Legal holds in the console: place one with a reason; a second person releases it."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.decorators import display

from governance.admin.base import Act, ConsoleAdmin, console_actor
from governance.admin.forms import ReasonForm
from governance.admin.retention_forms import SCOPE_WORDS, HoldForm
from governance.models import LegalHold
from governance.roles import AUDIT
from governance.selectors import people_behind
from governance.selectors.retention import legal_hold_list
from governance.services.legal_hold import legal_hold_place, legal_hold_release
from governance.states import HoldScope


def place(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]) -> HttpResponse:
    organization = data.pop("organization")
    hold = legal_hold_place(
        actor=model_admin.require_operator(request, organization.id),
        at=timezone.now(),
        organization_id=organization.id,
        **data | {"scope": HoldScope(data["scope"])},
    )
    return model_admin.done(
        request, hold, "Placed. Nothing that it covers can be erased until a second person releases it."
    )


def release(model_admin: ConsoleAdmin, request: HttpRequest, obj: LegalHold, data: dict[str, Any]) -> str:
    legal_hold_release(actor=console_actor(request), at=timezone.now(), hold_id=obj.id, **data)
    return "Released. What it covered can be erased again, by order."


@admin.register(LegalHold)
class LegalHoldAdmin(ConsoleAdmin):
    view_permission = AUDIT
    addable = True
    list_display = ["what", "target_shown", "state_shown", "reason_code", "placed_at", "released_at", "organization"]
    list_filter = ["state", "scope"]
    search_fields = ["=id", "=target", "authority_ref"]
    ordering = ["-id"]
    fields = [
        "what",
        "target_shown",
        "state_shown",
        "reason_code",
        "authority_ref",
        "note",
        "placed_by",
        "placed_at",
        "release_reason_code",
        "release_note",
        "released_by",
        "released_at",
        "organization",
    ]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/legal_hold_list.html"
    add_act = Act(
        "place",
        "Place a legal hold",
        "From now on, nothing that the legal hold covers is purged or deleted. The hold does not expire: a second "
        "person has to release it.",
        place,
        HoldForm,
    )
    acts = [
        Act(
            "release",
            "Release",
            "Ends the legal hold. The person who placed it cannot release it.",
            release,
            ReasonForm,
            available=lambda obj: obj.state == "active",
            danger=True,
        )
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[LegalHold]:
        ids = console_actor(request, permission=AUDIT).organization_ids
        return legal_hold_list().filter(organization_id__in=ids)

    @admin.display(description="What it keeps")
    def what(self, obj: LegalHold) -> str:
        return SCOPE_WORDS[HoldScope(obj.scope)]

    @admin.display(description="Which")
    def target_shown(self, obj: Any) -> str:
        if obj.scope == HoldScope.PERSON:
            return obj.person or "a person (reference erased)"
        if obj.scope == HoldScope.CONTEXT:
            return obj.reference or "a context (reference erased)"
        return obj.target or "everything"

    @display(description="State", label={"active": "danger", "released": "default"})
    def state_shown(self, obj: LegalHold) -> str:
        return str(obj.state)

    @admin.display(description="Placed by")
    def placed_by(self, obj: LegalHold) -> str:
        return people_behind(commitments={obj.placed_by_ref}).get(obj.placed_by_ref, obj.placed_by_kind)

    @admin.display(description="Released by")
    def released_by(self, obj: LegalHold) -> str:
        return people_behind(commitments={obj.released_by_ref}).get(obj.released_by_ref, "–")
