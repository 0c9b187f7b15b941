"""What every console page shares: permissions from object permissions, the read audit, and acts as forms that are
posted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils import timezone

from governance.console.admin.forms import ConsoleForm
from governance.console.admin.lists import ListPages
from governance.console.selectors.pages import organization_ids
from governance.people.rules.roles import AUDIT, OPERATE, VIEW
from governance.people.selectors.people import organizations_where
from governance.sealing.services.read_audit import read_recorded
from governance.sealing.states import ReadDoor
from governance.violations.errors import RuleBroken
from governance.violations.services import violation_record
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import DomainError, FieldError

ADMINISTRATORS = frozenset({VIEW, OPERATE, AUDIT})
"""What an administrator of the installation has everywhere. Not a reviewer's or an owner's permission: they
would decide in organizations that never gave them a role."""


def console_actor(request: HttpRequest, *, permission: str = OPERATE) -> Actor:
    """The signed-in person, acting where they have the permission."""
    # Once per request and permission: the side bar alone asks for every model. What is cached here decides what a page
    # shows; services check roles again inside their transactions where a decision depends on it.
    known: dict[str, Actor] = request.__dict__.setdefault("console_actors", {})
    if permission not in known:
        user: Any = request.user
        # The sign-in page asks too, without a person.
        ids = organizations_where(user=user, permission=permission) if user.is_authenticated else frozenset()
        if user.is_superuser and permission in ADMINISTRATORS:
            ids = organization_ids()
        known[permission] = Actor(ActorKind.PERSON, user.pk, ids)
    return known[permission]


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that an operator can do to a row: a page that says what will happen, and a form that is posted."""

    verb: str
    title: str
    explanation: str
    perform: Callable[[Any, HttpRequest, Any, dict[str, Any]], HttpResponse | str]
    form: type[forms.Form] = forms.Form
    permission: str = OPERATE
    available: Callable[[Any], bool] = lambda _: True
    danger: bool = False
    button: str = ""
    """The text of the button, if it is not the title."""
    template: str = "admin/holdpoint/act.html"
    initial: Callable[[Any], dict[str, Any]] = lambda _: {}
    context: Callable[[HttpRequest, Any], dict[str, Any]] = lambda request, obj: {}
    """What the page shows besides the explanation. With `blocked` there is no button."""


class ConsoleAdmin(ListPages):
    """Shows only rows of the person's organizations, because the tenant scope filters every query. Changes need the
    operator's permission."""

    acts: ClassVar[Sequence[Act]] = ()
    add_act: ClassVar[Act | None] = None
    """Adding as an act: refusals are shown beside the form's fields, and one service creates the row."""
    view_permission = VIEW
    read_subject: ClassVar[str] = ""
    """The name of such a row in the read audit. Empty: opening the page is not recorded."""
    addable = False
    editable = False
    list_per_page = 30
    compressed_fields = True
    warn_unsaved_form = True
    list_filter_submit = True
    change_form_before_template = "admin/holdpoint/acts.html"

    def organization_id_of(self, obj: Any) -> UUID | None:
        return obj.organization_id

    # -- permissions ------------------------------------------------------------------------------------------------
    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.is_superuser or bool(
            console_actor(request, permission=self.view_permission).organization_ids
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.addable and self._operates(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.editable and self._operates(request, obj)

    # Nothing is deleted in the console: records are erased by order, everything else is deactivated or revoked.
    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def _operates(self, request: HttpRequest, obj: Any = None, *, permission: str = OPERATE) -> bool:
        actor = console_actor(request, permission=permission)
        if obj is None:
            return bool(actor.organization_ids) or request.user.is_superuser
        return actor.may_act_in(self.organization_id_of(obj)) or (
            request.user.is_superuser and permission in ADMINISTRATORS
        )

    def require_operator(self, request: HttpRequest, organization_id: UUID) -> Actor:
        actor = console_actor(request)
        if not actor.may_act_in(organization_id):
            raise PermissionDenied
        return actor

    def object_or_404(self, request: HttpRequest, object_id: UUID) -> Any:
        """A row that the person may see. Somebody else's is 404, as if it did not exist."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        obj = self.get_object(request, str(object_id))
        if obj is None:
            raise Http404
        return obj

    # -- addresses --------------------------------------------------------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        act = self.admin_site.admin_view(self.act_view)
        return [path("<uuid:object_id>/act/<slug:verb>/", act, name=self.url_name("act")), *super().get_urls()]

    def act_url(self, obj: Model, verb: str) -> str:
        return self.page_url("act", obj.pk, verb)

    # -- the page of one row ----------------------------------------------------------------------------------------
    def page_links(self, request: HttpRequest, obj: Any) -> list[dict[str, Any]]:
        """Further pages of this row (`title` and `url`), for everybody who may see it."""
        return []

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """What the row's page shows besides its fields."""
        return {}

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        obj = self.get_object(request, object_id)
        context = extra_context or {}
        if obj is not None and self.has_view_permission(request, obj):
            # Before rendering: if the reading cannot be recorded, the person does not see the row.
            self.record_reading(request, obj)
            context |= {"act_links": self._links(request, obj)} | self.page_context(request, obj)
        return super().change_view(request, object_id, form_url, context)

    def record_reading(self, request: HttpRequest, obj: Any) -> None:
        if self.read_subject:
            read_recorded(
                actor=console_actor(request, permission=self.view_permission),
                organization_id=obj.organization_id,
                subject_kind=self.read_subject,
                subject_id=obj.pk,
                purpose="console",
                at=timezone.now(),
                door=ReadDoor.CONSOLE,
            )

    def _links(self, request: HttpRequest, obj: Any) -> list[dict[str, Any]]:
        return self.page_links(request, obj) + [
            {"title": act.title, "url": self.act_url(obj, act.verb), "danger": act.danger}
            for act in self.acts
            if act.available(obj) and self._operates(request, obj, permission=act.permission)
        ]

    # -- acts -------------------------------------------------------------------------------------------------------
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if self.add_act is None:
            return super().add_view(request, form_url, extra_context)
        if not self.has_add_permission(request):
            raise PermissionDenied
        return self.form_page(request, self.add_act, None)

    def act_view(self, request: HttpRequest, object_id: UUID, verb: str) -> HttpResponse:
        """GET shows what will happen; only POST does it."""
        act = next((act for act in self.acts if act.verb == verb), None)
        obj = self.object_or_404(request, object_id)
        if act is None:
            raise Http404
        # Hiding the button is not enough: somebody can post to the address directly.
        if not self._operates(request, obj, permission=act.permission):
            raise PermissionDenied
        return self.form_page(request, act, obj)

    def form_page(self, request: HttpRequest, act: Act, obj: Any) -> HttpResponse:
        form, status = self._form(act, request, obj), 200
        problems: Sequence[FieldError] = ()
        if request.method == "POST" and form.is_valid():
            try:
                return self._finish(request, obj, act.perform(self, request, obj, form.cleaned_data))
            # A refusal keeps what the person typed and shows the reason. Other errors are bugs and stay errors.
            except DomainError as refusal:
                # Services below the room of violations cannot record what they refuse. Recorded once, wherever it is.
                if isinstance(refusal, RuleBroken):
                    violation_record(actor=console_actor(request), at=timezone.now(), broken=refusal)
                status, problems = refusal.status, refusal.errors
                form.add_error(None, refusal.detail)
        context = self._act_context(request, obj, act, form, problems) | act.context(request, obj)
        return render(request, act.template, context, status=status)

    @staticmethod
    def _form(act: Act, request: HttpRequest, obj: Any) -> forms.Form:
        more = {"obj": obj, "request": request} if issubclass(act.form, ConsoleForm) else {}
        data = request.POST if request.method == "POST" else None
        return act.form(data, initial=act.initial(obj), **more)

    def done(self, request: HttpRequest, obj: Model, message: str) -> HttpResponse:
        """Redirects to the row's page with a message that says what happened."""
        messages.success(request, message)
        return HttpResponseRedirect(self.page_url("change", obj.pk))

    def _finish(self, request: HttpRequest, obj: Model, outcome: HttpResponse | str) -> HttpResponse:
        return outcome if isinstance(outcome, HttpResponse) else self.done(request, obj, outcome)

    def _act_context(
        self, request: HttpRequest, obj: Model | None, act: Act, form: forms.Form, problems: Sequence[FieldError]
    ) -> dict[str, Any]:
        return {
            **self.admin_site.each_context(request),
            "title": act.title,
            "act": act,
            "form": form,
            "problems": problems,
            "opts": self.opts,
            "original": obj,
            "back": self.page_url("change", obj.pk) if obj else self.page_url("changelist"),
        }


def adopt(obj: Model, made: Model) -> None:
    """Makes the admin's unsaved instance the row that a service created. The admin goes on to use its own instance, for
    the redirect and the message."""
    obj.__dict__.update(made.__dict__)
