"""Shutdowns in the console: choose what to stop, see a preview, engage with a reason; release, or confirm the loss that
caused deny mode."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import NOTE_LENGTH, ConsoleForm, ReasonForm, SuggestInput, intervention_choices
from governance.console.selectors.pages import organization_choices
from governance.contracts.selectors import contract_list
from governance.contracts.states import AdapterName
from governance.integrity.states import RECORD_DIFFERS
from governance.people.rules.roles import DECIDE_READINESS, OPERATE
from governance.people.selectors.people import people_behind
from governance.regions.rules import load_profiles
from governance.sealing.configured import known_keys, witnesses_configured
from governance.sealing.services.epoch import epoch_begin
from governance.sealing.states import LEDGER_INCONSISTENT
from governance.shutdown.models import Shutdown
from governance.shutdown.selectors import shutdown_preview
from governance.shutdown.services import INSTALLATION_WIDE, shutdown_break_glass, shutdown_engage, shutdown_release
from governance.shutdown.states import ShutdownScope, ShutdownState
from reasoncodes.base.errors import DomainError

SCOPE_WORDS = {
    ShutdownScope.CONTRACT: "One contract",
    ShutdownScope.CONNECTOR: "One connector of an organization",
    ShutdownScope.ORGANIZATION: "One whole organization",
    ShutdownScope.REGION: "One region, every organization in it",
    ShutdownScope.GLOBAL: "Everything, everywhere",
}
STATE_LABELS = {"engaged": "danger", "released": "default", "engaged (drill)": "info", "released (drill)": "default"}
TARGET_FIELD = {
    ShutdownScope.CONTRACT: "contract",
    ShutdownScope.CONNECTOR: "connector",
    ShutdownScope.REGION: "region",
}


class TargetForm(ConsoleForm):
    """First step, sent with GET: it changes nothing, and its address can be bookmarked for an emergency."""

    scope = forms.ChoiceField(label="What to stop", choices=[], widget=UnfoldAdminSelectWidget)
    organization: Any = forms.ModelChoiceField(
        queryset=None, required=False, empty_label=None, widget=UnfoldAdminSelectWidget
    )
    contract = forms.CharField(
        required=False,
        max_length=140,
        widget=SuggestInput,
        help_text=(
            "The contract's slug to stop all versions, or slug/version to stop one. Only for the scope “One contract”."
        ),
    )
    connector = forms.ChoiceField(
        required=False,
        choices=[("", "Choose"), *((name.value, name.value) for name in AdapterName)],
        widget=UnfoldAdminSelectWidget,
    )
    region = forms.ChoiceField(required=False, choices=[], widget=UnfoldAdminSelectWidget)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        wide = bool(self.request and self.request.user.is_superuser)
        fields: Any = self.fields
        fields["scope"].choices = [
            (scope.value, words) for scope, words in SCOPE_WORDS.items() if wide or scope not in INSTALLATION_WIDE
        ]
        ids = console_actor(self.request).organization_ids if self.request else ()
        fields["organization"].queryset = organization_choices(ids=ids)
        rows = contract_list(state="open").values_list("slug", "version")[:200]
        names = {slug for slug, _ in rows} | {f"{slug}/{version}" for slug, version in rows}
        fields["contract"].widget.suggestions = sorted(names)
        if wide:
            codes = [(code, code) for code in load_profiles().codes]
            fields["region"].choices = [("", "Choose"), *codes]
        else:
            del fields["region"]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if "scope" not in data:
            return data
        scope = data["scope"] = ShutdownScope(data["scope"])
        field = TARGET_FIELD.get(scope)
        if field and not data.get(field):
            self.add_error(field, "Choose one for this scope.")
        if scope in INSTALLATION_WIDE:
            data["organization"] = None
        elif not data.get("organization"):
            self.add_error("organization", "Choose one for this scope.")
        data["target"] = data.get(field, "") if field else ""
        return data


class EngageForm(forms.Form):
    """Second step, sent with POST: it engages the shutdown."""

    reason_code = forms.ChoiceField(label="Reason", choices=[], widget=UnfoldAdminSelectWidget)
    note = forms.CharField(
        required=False,
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="Up to 280 characters. Do not enter names, patient data or secrets: Holdpoint checks the text.",
    )
    drill = forms.BooleanField(
        required=False,
        label="This is a drill",
        widget=UnfoldBooleanWidget,
        help_text="The drill is shown and recorded, but nothing is stopped.",
    )

    def __init__(self, *args: Any, organization_id: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["reason_code"]
        field.choices = intervention_choices(organization_id)


class ReleaseForm(forms.Form):
    note = forms.CharField(
        required=False,
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text=(
            "What you checked before you released it. Up to 280 characters. Do not enter names, patient data or "
            "secrets: Holdpoint checks the text."
        ),
    )


def _shutdown_release_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Shutdown, data: dict[str, Any]) -> str:
    shutdown_release(
        actor=console_actor(request),
        at=timezone.now(),
        shutdown_id=obj.id,
        note=data["note"],
        installation=request.user.is_superuser,
    )
    return "Released. Attempts are accepted again from the next request on."


def _break_glass_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Shutdown, data: dict[str, Any]) -> str:
    actor = console_actor(request, permission=DECIDE_READINESS)
    ended = shutdown_break_glass(actor=actor, at=timezone.now(), shutdown_id=obj.id, note=data["note"])
    if ended.state == ShutdownState.RELEASED:
        return "Released by two owners. Attempts are accepted again from the next request on."
    return "Recorded. An owner of another group has to do the same within a day; then the shutdown ends."


def _release_context(request: HttpRequest, obj: Shutdown) -> dict[str, Any]:
    engaged_by = people_behind(commitments={obj.engaged_by_ref}).get(obj.engaged_by_ref, "")
    same = not obj.drill and engaged_by == request.user.get_username()
    return {"warning": "You engaged this shutdown. A second person has to release it." if same else ""}


def _is_denial(obj: Shutdown) -> bool:
    """Whether the program engaged it because of the record. It is not released like others."""
    return _is_loss(obj) or (obj.target == RECORD_DIFFERS and obj.reason_code == RECORD_DIFFERS)


def _is_loss(obj: Shutdown) -> bool:
    """Whether a witness keeps what the record has not: it ends by confirming the loss."""
    return obj.scope == ShutdownScope.GLOBAL and obj.target == LEDGER_INCONSISTENT


def _findings_words(obj: Shutdown) -> str:
    return " ".join(str(found["words"]) for found in obj.preview.get("findings", [])[:5])


def _shutdown_confirm_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Shutdown, data: dict[str, Any]) -> str:
    epoch = epoch_begin(
        actor=console_actor(request),
        at=timezone.now(),
        witnesses=witnesses_configured(),
        keys=known_keys(),
        installation=request.user.is_superuser,
        **data,
    )
    lost = f"Entries {epoch.kept} to {epoch.lost_to - 1} are on record as lost. " if epoch.lost_to > epoch.kept else ""
    return f"{lost}Epoch {epoch.number} has begun. Attempts are accepted again from the next request on."


@admin.register(Shutdown)
class ShutdownAdmin(ConsoleAdmin):
    addable = True
    list_display = ["what", "state_shown", "reason_code", "stopped", "engaged_at", "released_at", "organization"]
    list_filter = ["state", "scope", "drill"]
    search_fields = ["target", "=id"]
    fields = ["what", "state_shown", "organization", "reason_code", "note", "stopped", "engaged_by", "engaged_at"]
    fields += ["found", "released_by", "released_at", "release_note"]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/shutdown_list.html"
    acts = [
        Act(
            "release",
            "Release",
            "Attempts in its scope are accepted again from the next request on. The person who engaged the shutdown "
            "cannot release it.",
            _shutdown_release_act,
            ReleaseForm,
            available=lambda obj: obj.state == "engaged" and not _is_denial(obj),
            context=_release_context,
        ),
        Act(
            "break-glass",
            "Break the glass",
            "Only for a shutdown that nobody is left to release, because the one administrator or operator engaged it. "
            "Two owners of different groups do this, each for themselves, within a day. Both stand on the ledger.",
            _break_glass_act,
            ReleaseForm,
            permission=DECIDE_READINESS,
            available=lambda obj: obj.state == "engaged" and not obj.drill and not _is_denial(obj),
        ),
        Act(
            "confirm",
            "Confirm the loss and go on",
            "The record does not match what its witnesses hold: it was restored from a backup, truncated, or "
            "changed. Find out which before you confirm. Confirming records the lost range and begins a new epoch, "
            "in which all earlier leases are void. Attempts are accepted again from the next request on. You cannot "
            "undo this.",
            _shutdown_confirm_act,
            ReasonForm,
            available=lambda obj: obj.state == "engaged" and _is_loss(obj),
            context=lambda request, obj: {"warning": _findings_words(obj)},
            danger=True,
            button="Confirm the loss",
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Shutdown]:
        return super().get_queryset(request).select_related("organization", "note", "release_note")

    def _operates(self, request: HttpRequest, obj: Any = None, *, permission: str = OPERATE) -> bool:
        # A global shutdown has no organization. The service looks for what an owner needs.
        wide = obj is not None and obj.organization_id is None and permission == DECIDE_READINESS
        return super()._operates(request, None if wide else obj, permission=permission)

    @admin.display(description="What")
    def what(self, obj: Shutdown) -> str:
        target = "" if obj.scope == ShutdownScope.ORGANIZATION else obj.target
        return f"{obj.scope} {target}".strip()

    @display(description="State", label=STATE_LABELS)
    def state_shown(self, obj: Shutdown) -> str:
        return f"{obj.state} (drill)" if obj.drill else str(obj.state)

    @admin.display(description="Open contracts in its scope when engaged")
    def stopped(self, obj: Shutdown) -> str:
        named = ", ".join(obj.preview.get("named", [])[:5])
        count = obj.preview.get("contracts", 0)
        return f"{count} ({named})" if named else str(count)

    @admin.display(description="What was found", empty_value="-")
    def found(self, obj: Shutdown) -> str | None:
        return _findings_words(obj) or None

    @admin.display(description="Engaged by")
    def engaged_by(self, obj: Shutdown) -> str:
        known = people_behind(commitments={obj.engaged_by_ref})
        return known.get(obj.engaged_by_ref, f"{obj.engaged_by_kind} {obj.engaged_by_ref[:12]}")

    @admin.display(description="Released by")
    def released_by(self, obj: Shutdown) -> str:
        if not obj.released_at:
            return "nobody yet"
        known = people_behind(commitments={obj.released_by_ref})
        return known.get(obj.released_by_ref, "the person who started the drill" if obj.drill else "erased")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Two steps: the choice in the address, then the reason in a form."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        target = TargetForm(request.GET or None, request=request)
        if not target.is_valid():
            status = 400 if request.method == "POST" else 200
            return self._page(request, {"form": target, "step": 1}, status=status)
        chosen = target.cleaned_data
        organization_id = chosen["organization"].id if chosen["organization"] else None
        posted = request.POST if request.method == "POST" else None
        form = EngageForm(posted, organization_id=organization_id)
        where = {"scope": chosen["scope"], "organization_id": organization_id, "target": chosen["target"]}
        if request.method == "POST" and form.is_valid():
            try:
                return self._engage(request, where, form.cleaned_data)
            except DomainError as refusal:
                form.add_error(None, refusal.detail)
                return self._second(request, form, chosen, where, refusal.errors, status=refusal.status)
        return self._second(request, form, chosen, where)

    def _engage(self, request: HttpRequest, where: dict[str, Any], data: dict[str, Any]) -> HttpResponse:
        wide = request.user.is_superuser
        shutdown = shutdown_engage(actor=console_actor(request), at=timezone.now(), installation=wide, **where, **data)
        said = "Drill recorded. Nothing is stopped." if shutdown.drill else "Engaged from the next request on."
        messages.success(request, said)
        return HttpResponseRedirect(self.page_url("change", shutdown.id))

    def _second(
        self,
        request: HttpRequest,
        form: forms.Form,
        chosen: dict[str, Any],
        where: dict[str, Any],
        problems: Any = (),
        status: int = 200,
    ) -> HttpResponse:
        preview = shutdown_preview(**where)
        more = preview["contracts"] - len(preview["named"])
        words = SCOPE_WORDS[chosen["scope"]]
        context = {"step": 2, "form": form, "chosen": chosen, "words": words, "preview": preview, "more": more}
        return self._page(request, context | {"problems": problems}, status=status)

    def _page(self, request: HttpRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        shared = {**self.admin_site.each_context(request), "title": "Engage a shutdown", "opts": self.opts}
        back = {"back": self.page_url("changelist")}
        return render(request, "admin/holdpoint/shutdown_engage.html", shared | back | context, status=status)
