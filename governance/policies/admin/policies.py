"""Policies in the console: drafts with live validation, and publishing with a view of what changes. Simulation is in
`simulation.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from governance.authority.admin import waits_for_second
from governance.authority.services.changes import authority_act
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import (
    ConsoleForm,
    Difference,
    JsonTextError,
    JsonTextField,
    document_differences,
    json_parse,
)
from governance.console.selectors.pages import organization_choices
from governance.policies.admin.simulation import SimulationPages
from governance.policies.models import Policy
from governance.policies.rules.problems import PolicyProblem
from governance.policies.selectors import policy_list
from governance.policies.services import policy_archive, policy_change, policy_create, policy_problems


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One difference between two versions. `kind` is added, removed, changed or moved; moved means the same content in
    another order relative to the rules that stay."""

    kind: str
    rule_id: str
    rule: dict[str, Any]
    fields: tuple[Difference, ...] = ()


def rules_diff(before: Sequence[Any], after: Sequence[Any]) -> list[RuleChange]:
    """The differences between two lists of rules. Rules are matched by id. Order matters, because the first rule that
    matches decides."""
    old, new = _by_id(before), _by_id(after)
    stay_before = [rule_id for rule_id in old if rule_id in new]
    stay_after = [rule_id for rule_id in new if rule_id in old]
    found = [RuleChange("removed", rule_id, rule) for rule_id, rule in old.items() if rule_id not in new]
    for rule_id, rule in new.items():
        if rule_id not in old:
            found.append(RuleChange("added", rule_id, rule))
        elif rule != old[rule_id]:
            found.append(RuleChange("changed", rule_id, rule, tuple(document_differences(old[rule_id], rule))))
        elif stay_before.index(rule_id) != stay_after.index(rule_id):
            found.append(RuleChange("moved", rule_id, rule))
    return found


def _by_id(rules: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The rules by id. A draft may have entries that are not rules; the validation reports them."""
    return {str(rule["id"]): rule for rule in rules if isinstance(rule, dict) and "id" in rule}


SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
STATE_LABELS = {"draft": "info", "active": "success", "archived": "default"}
READING_ORDER = ("id", "description", "when", "verdict", "reason_code", "tier", "buckets")
STARTER = [
    {"id": "low-risk", "when": 'action.risk_tier == "low"', "verdict": "allow"},
    {
        "id": "rest",
        "when": "true",
        "verdict": "needs_approval",
        "tier": "approvers",
        "approvals_required": 1,
        "expires_in_seconds": 86400,
    },
]


def _rules_as_written(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rules with their fields in reading order: id first, condition before verdict."""
    # jsonb does not keep the order of keys.
    return [
        {name: rule[name] for name in (*READING_ORDER, *sorted(set(rule) - set(READING_ORDER))) if name in rule}
        for rule in rules
    ]


class PolicyForm(ConsoleForm):
    title = forms.CharField(max_length=120, widget=UnfoldAdminTextInputWidget)
    rules = JsonTextField(
        label="Rules (JSON)",
        rows=22,
        sort=False,
        help_text=(
            "A list of rules. The first rule whose condition is true decides. If no rule matches, the attempt is "
            "denied."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        where = f"?organization={self.obj.organization_id}" if self.obj else ""
        self.fields["rules"].widget.attrs["data-validate"] = reverse("admin:governance_policy_validate") + where

    def clean_rules(self) -> list[dict[str, Any]]:
        """A draft may have invalid rules, but it must be a list of objects: other code relies on that."""
        rules = self.cleaned_data["rules"]
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise forms.ValidationError("A list of rules, each an object with id, when and verdict.")
        return rules


class NewPolicyForm(PolicyForm):
    organization: Any = forms.ModelChoiceField(queryset=None, empty_label=None, widget=UnfoldAdminSelectWidget)
    slug = forms.RegexField(
        SLUG,
        widget=UnfoldAdminTextInputWidget,
        help_text="Contracts refer to the policy by this slug. If the slug exists, this becomes its next version.",
    )
    field_order = ["organization", "slug", "title", "rules"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ids = console_actor(self.request).organization_ids if self.request else ()
        organization: Any = self.fields["organization"]
        organization.queryset = organization_choices(ids=ids)


def _policy_create_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]
) -> HttpResponse:
    actor = model_admin.require_operator(request, data["organization"].id)
    policy = policy_create(actor=actor, at=timezone.now(), **data)
    return model_admin.done(request, policy, "Draft created. It decides nothing until you publish it.")


def _policy_edit_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Policy, data: dict[str, Any]) -> str:
    policy_change(actor=console_actor(request), at=timezone.now(), policy_id=obj.id, changes=data)
    return "Saved."


def _policy_publish_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: Policy, data: dict[str, Any]
) -> HttpResponse | str:
    outcome = authority_act(
        actor=console_actor(request),
        at=timezone.now(),
        organization=obj.organization,
        kind="policy.publish",
        subject=str(obj.id),
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    return "Published. It decides from the next request on."


def _policy_archive_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Policy, data: dict[str, Any]) -> str:
    policy_archive(actor=console_actor(request), at=timezone.now(), policy_id=obj.id)
    return "Archived."


def _policy_new_version_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: Policy, data: dict[str, Any]
) -> HttpResponse:
    made = policy_create(
        actor=console_actor(request),
        at=timezone.now(),
        organization=obj.organization,
        slug=obj.slug,
        title=obj.title,
        rules=obj.rules,
    )
    return model_admin.done(request, made, f"Version {made.version} is a draft with the same rules.")


def problems_of(policy: Policy) -> tuple[PolicyProblem, ...]:
    return policy_problems(organization_id=policy.organization_id, rules=policy.rules)


def _policy_publish_context(request: HttpRequest, obj: Policy) -> dict[str, Any]:
    active = policy_list(slug=obj.slug, state="active").filter(organization_id=obj.organization_id).first()
    problems = problems_of(obj)
    return {
        "active": active,
        "changes": rules_diff(active.rules if active else [], obj.rules),
        "faults": problems,
        "blocked": bool(problems),
    }


ACTS = [
    Act(
        "edit",
        "Edit rules",
        "You can save a draft with errors, but you cannot publish it.",
        _policy_edit_act,
        PolicyForm,
        button="Save",
        available=lambda obj: obj.state == "draft",
        template="admin/holdpoint/editor.html",
        initial=lambda obj: {"title": obj.title, "rules": _rules_as_written(obj.rules)},
    ),
    Act(
        "publish",
        "Publish",
        "A second person has to confirm this, unless the organization is still being founded. Then this version "
        "decides from the next request on, and the version that is active now is archived. A published version never "
        "changes.",
        _policy_publish_act,
        available=lambda obj: obj.state == "draft",
        template="admin/holdpoint/policy_publish.html",
        context=_policy_publish_context,
    ),
    Act(
        "new-version",
        "New version",
        "Creates a draft with the same rules. This version does not change.",
        _policy_new_version_act,
        available=lambda obj: obj.state != "draft",
    ),
    Act(
        "archive",
        "Archive",
        "This version no longer decides. If no version is active, every attempt under this policy is denied.",
        _policy_archive_act,
        available=lambda obj: obj.state != "archived",
        danger=True,
    ),
]


@admin.register(Policy)
class PolicyAdmin(SimulationPages):
    addable = True
    list_display = ["__str__", "title", "state_shown", "rule_count", "published_at", "organization"]
    list_filter = ["state"]
    search_fields = ["slug", "title", "=id"]
    fields = ["organization", "slug", "version", "title", "state_shown", "published_at", "snapshot_sha256"]
    readonly_fields = fields
    change_form_outer_after_template = "admin/holdpoint/policy.html"
    add_act = Act(
        "add",
        "Draft a policy",
        "A policy is a list of rules. The first rule that matches decides. The draft decides nothing until you "
        "publish it.",
        _policy_create_act,
        NewPolicyForm,
        template="admin/holdpoint/editor.html",
        initial=lambda _: {"rules": STARTER},
    )
    acts = ACTS

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.validate_view)
        return [path("validate/", view, name=self.url_name("validate")), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Policy]:
        return super().get_queryset(request).select_related("organization")

    @display(description="State", label=STATE_LABELS)
    def state_shown(self, obj: Policy) -> str:
        return str(obj.state)

    @admin.display(description="Rules")
    def rule_count(self, obj: Policy) -> int:
        return len(obj.rules)

    def page_context(self, request: HttpRequest, obj: Policy) -> dict[str, Any]:
        return {"rules": obj.rules, "faults": problems_of(obj) if obj.state == "draft" else ()}

    def validate_view(self, request: HttpRequest) -> HttpResponse:
        """Live validation of the rules for the chosen organization. Saves nothing."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            organization_id = UUID(request.GET.get("organization") or request.POST.get("organization", ""))
        except ValueError:
            raise PermissionDenied from None
        self.require_operator(request, organization_id)
        try:
            rules = json_parse(request.POST.get("rules", ""))
        except JsonTextError as error:
            return JsonResponse({"problems": [{"pointer": "", "rule": "json", "message": str(error)}]})
        found = policy_problems(organization_id=organization_id, rules=rules)
        return JsonResponse({"problems": [{"pointer": p.pointer, "rule": p.rule, "message": p.message} for p in found]})
