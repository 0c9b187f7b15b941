"""Reason codes in the console. They are here and not in their own app, because the console's permissions live in this
app."""

import re
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from governance.console.admin.base import Act, ConsoleAdmin, adopt, console_actor
from reasoncodes.models import ReasonCode
from reasoncodes.selectors import USAGE_LIMIT, reason_code_is_override, reason_code_usage
from reasoncodes.services import (
    reason_code_create,
    reason_code_deactivate,
    reason_code_take_back,
    reason_code_update,
)

STEP_KIND = re.compile(r"[a-z][a-z0-9_]{1,63}")


def _reason_code_deactivate_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ReasonCode, data: dict[str, Any]
) -> str:
    reason_code_deactivate(actor=console_actor(request), at=timezone.now(), reason_code_id=obj.id)
    return "Deactivated. Nobody can choose it any more. Records that name it stay readable."


def _reason_code_activate_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ReasonCode, data: dict[str, Any]
) -> str:
    reason_code_update(actor=console_actor(request), at=timezone.now(), reason_code_id=obj.id, changes={"active": True})
    return "Active again."


def _reason_code_take_back_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ReasonCode, data: dict[str, Any]
) -> HttpResponse:
    reason_code_take_back(actor=console_actor(request), at=timezone.now(), reason_code_id=obj.id)
    messages.success(request, "Taken back. The system's wording counts again.")
    return redirect("admin:reasoncodes_reasoncode_changelist")


class ReasonCodeForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = ReasonCode
        fields = ["organization", "scope", "code", "label", "description", "requires_note", "applicable_step_kinds"]

    def clean_applicable_step_kinds(self) -> list[str] | None:
        """The column accepts any JSON, but only a list of step kinds makes sense."""
        value = self.cleaned_data["applicable_step_kinds"]
        if not value:
            return None
        if not isinstance(value, list) or not all(
            isinstance(kind, str) and STEP_KIND.fullmatch(kind) for kind in value
        ):
            raise forms.ValidationError('A list of step kinds, such as ["human_review"].')
        return value


@admin.register(ReasonCode)
class ReasonCodeAdmin(ConsoleAdmin):
    form = ReasonCodeForm
    addable = True
    editable = True
    list_display = ["code", "label", "scope", "owner", "requires_note", "active"]
    list_select_related = ["organization"]
    list_filter = ["scope", "active", "emitted"]
    search_fields = ["code", "label", "=id"]
    ordering = ["scope", "code"]
    acts = [
        Act(
            "deactivate",
            "Deactivate",
            "Nobody can choose this code any more. Records that name it stay readable.",
            _reason_code_deactivate_act,
            available=lambda obj: obj.active and not obj.emitted and obj.organization_id is not None,
            danger=True,
        ),
        Act(
            "activate",
            "Activate",
            "People can choose this code again.",
            _reason_code_activate_act,
            available=lambda obj: not obj.active and obj.organization_id is not None,
        ),
        Act(
            "take-back",
            "Take back",
            "Removes this override: the system's own wording of the code counts again for the organization.",
            _reason_code_take_back_act,
            available=lambda obj: obj.organization_id is not None and reason_code_is_override(row=obj),
            danger=True,
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ReasonCode]:
        return super().get_queryset(request).select_related("organization")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if "organization" in form.base_fields:
            # The column is nullable for the system's codes; a person can only add codes of an organization.
            form.base_fields["organization"].required = True
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        words = ["label", "description", "requires_note", "applicable_step_kinds"]
        return ["organization", "scope", "code", *words, *(["active", "emitted", "usage"] if obj else [])]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["organization", "scope", "code", "active", "emitted", "usage"] if obj else []

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The system's rows belong to the program. An organization overrides one with a row of its own."""
        if obj is not None and obj.organization_id is None:
            return False
        return super().has_change_permission(request, obj)

    @admin.display(description="Owner")
    def owner(self, obj: ReasonCode) -> str:
        return str(obj.organization) if obj.organization else "system"

    @admin.display(description="Used")
    def usage(self, obj: ReasonCode) -> str:
        count = reason_code_usage(organization_id=obj.organization_id, codes=[obj.code])[obj.code]
        return f"{count} times" if count < USAGE_LIMIT else f"{USAGE_LIMIT} times or more"

    def save_model(self, request: HttpRequest, obj: ReasonCode, form: Any, change: bool) -> None:
        at = timezone.now()
        if change:
            actor = console_actor(request)
            values = {name: form.cleaned_data[name] for name in form.changed_data}
            reason_code_update(actor=actor, at=at, reason_code_id=obj.id, changes=values)
            return
        actor = self.require_operator(request, obj.organization_id)  # type: ignore[arg-type]
        made = reason_code_create(
            actor=actor,
            at=at,
            organization_id=obj.organization_id,  # type: ignore[arg-type]
            scope=obj.scope,
            code=obj.code,
            label=obj.label,
            description=obj.description,
            requires_note=obj.requires_note,
            applicable_step_kinds=obj.applicable_step_kinds,
        )
        adopt(obj, made)
