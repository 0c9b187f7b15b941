"""Organizations, products and reviewer tiers in the console. Only an administrator of the installation adds
organizations."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from governance.authority.admin import waits_for_second
from governance.authority.services.acts_content import organization_settle
from governance.authority.services.changes import authority_act
from governance.console.admin.base import Act, ConsoleAdmin, adopt, console_actor
from governance.people.configured import second_factor_roles
from governance.people.rules.sign_in import KINDS_OF_AN_ORGANIZATION, ROLE_KINDS
from governance.people.selectors.sign_in import sign_in_rules_of
from governance.people.services.role_groups import review_tier_change, review_tier_create
from governance.regions.rules import load_profiles
from governance.tenancy.models import Organization, Product, ReviewerTier
from governance.tenancy.services import organization_create, product_change, product_create

REGIONS = [
    (profile.code, f"{profile.code} — {profile.name}") for profile in load_profiles().profiles if profile.seed_region
]


class OrganizationForm(forms.ModelForm):  # type: ignore[type-arg]
    regions = forms.MultipleChoiceField(
        choices=REGIONS,
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Regions of record. If you choose none, every attempt is denied.",
    )

    class Meta:
        model = Organization
        fields = [
            "slug",
            "name",
            "regions",
            "status",
            "capacity_units",
            "max_concurrency",
            "max_open_holds",
            "max_runs_per_min",
            "max_writes_per_run",
        ]


class SignInRulesForm(forms.Form):
    second_factor_roles = forms.MultipleChoiceField(
        label="Who needs a second factor",
        choices=[(kind, ROLE_KINDS[kind]) for kind in KINDS_OF_AN_ORGANIZATION],
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="A passkey or an authenticator app. Until somebody has one, they can only set it up.",
    )


def _sign_in_rules_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: Organization, data: dict[str, Any]
) -> HttpResponse | str:
    outcome = authority_act(
        actor=console_actor(request),
        at=timezone.now(),
        organization=obj,
        kind="sign_in_rules.change",
        details={"second_factor_roles": data["second_factor_roles"]},
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    return "Changed. It takes effect with the next request of each person."


def _everywhere(request: HttpRequest, obj: Organization) -> dict[str, Any]:
    required = ", ".join(ROLE_KINDS[kind] for kind in ROLE_KINDS if kind in second_factor_roles())
    return {"warning": f"The installation already requires it of: {required}."} if required else {}


@admin.register(Organization)
class OrganizationAdmin(ConsoleAdmin):
    form = OrganizationForm
    addable = True
    editable = True
    acts = [
        Act(
            "sign-in-rules",
            "Sign-in rules",
            "Choose which roles of this organization need a second factor. It adds to what the installation requires. "
            "Another person confirms it.",
            _sign_in_rules_act,
            SignInRulesForm,
            button="Change the rules",
            initial=lambda obj: {"second_factor_roles": sign_in_rules_of(organization_id=obj.id)},
            context=_everywhere,
        )
    ]
    list_display = ["name", "slug", "regions_shown", "status", "capacity_units", "created_at"]
    list_filter = ["status"]
    search_fields = ["slug", "name", "=id"]

    def organization_id_of(self, obj: Any) -> UUID | None:
        return obj.id

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["slug"] if obj else []

    @admin.display(description="Regions")
    def regions_shown(self, obj: Organization) -> str:
        return ", ".join(obj.regions) or "none: all attempts denied"

    def save_model(self, request: HttpRequest, obj: Organization, form: Any, change: bool) -> None:
        actor, at = console_actor(request), timezone.now()
        # The slug is in callers' addresses and in names of groups, so the service does not accept it as a change.
        values = {name: form.cleaned_data[name] for name in form.changed_data if name not in {"slug"}}
        if change:
            if values:
                outcome = organization_settle(actor=actor, at=at, organization_id=obj.id, changes=values)
                if outcome is not None and outcome.applied is None:
                    request.__dict__["proposed"] = (outcome, len(outcome.change.details) < len(values))
            return
        for name in ("name", "regions"):
            values.pop(name, None)
        made = organization_create(
            actor=actor, at=at, slug=obj.slug, name=obj.name, regions=obj.regions, settings=values
        )
        adopt(obj, made)

    def response_change(self, request: HttpRequest, obj: Organization) -> HttpResponse:
        """Says which part waits. The page's own message would say that everything was changed."""
        if "proposed" not in request.__dict__:
            return super().response_change(request, obj)
        outcome, partly = request.__dict__["proposed"]
        if partly:
            messages.success(request, "What takes something away is in force. What widens is not yet.")
        return waits_for_second(request, outcome)


@admin.register(Product)
class ProductAdmin(ConsoleAdmin):
    addable = True
    editable = True
    list_display = ["name", "slug", "organization", "created_at"]
    list_select_related = ["organization"]
    search_fields = ["slug", "name", "=id"]
    fields = ["organization", "slug", "name"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["organization", "slug"] if obj else []

    def save_model(self, request: HttpRequest, obj: Product, form: Any, change: bool) -> None:
        if change:
            product_change(actor=console_actor(request), at=timezone.now(), product_id=obj.id, name=obj.name)
            return
        actor = self.require_operator(request, obj.organization_id)
        adopt(
            obj,
            product_create(actor=actor, at=timezone.now(), organization=obj.organization, slug=obj.slug, name=obj.name),
        )


def _tier_activity(active: bool, told: str) -> Any:
    def perform(model_admin: ConsoleAdmin, request: HttpRequest, obj: ReviewerTier, data: dict[str, Any]) -> str:
        review_tier_change(actor=console_actor(request), at=timezone.now(), tier_id=obj.id, changes={"active": active})
        return told

    return perform


@admin.register(ReviewerTier)
class ReviewerTierAdmin(ConsoleAdmin):
    addable = True
    editable = True
    list_display = ["label", "slug", "organization", "active", "created_at"]
    list_select_related = ["organization"]
    list_filter = ["active"]
    search_fields = ["slug", "label", "=id"]
    fields = ["organization", "slug", "label", "description", "active"]
    acts = [
        Act(
            "deactivate",
            "Deactivate",
            "Nothing new may be asked of this tier, and nobody can be given it. Reviews that wait go on.",
            _tier_activity(False, "Deactivated. Reviews that wait are still decided by the people who have it."),
            available=lambda obj: obj.active,
            danger=True,
        ),
        Act(
            "activate",
            "Activate",
            "Policies and definitions may name this tier again.",
            _tier_activity(True, "Active again."),
            available=lambda obj: not obj.active,
        ),
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["organization", "slug", "active"] if obj else ["active"]

    def save_model(self, request: HttpRequest, obj: ReviewerTier, form: Any, change: bool) -> None:
        at = timezone.now()
        if change:
            values = {name: form.cleaned_data[name] for name in form.changed_data}
            review_tier_change(actor=console_actor(request), at=at, tier_id=obj.id, changes=values)
            return
        actor = self.require_operator(request, obj.organization_id)
        words = {"slug": obj.slug, "label": obj.label, "description": obj.description}
        adopt(obj, review_tier_create(actor=actor, at=at, organization=obj.organization, **words))
