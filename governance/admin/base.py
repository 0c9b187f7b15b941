"""What every console page shares: permissions from object permissions, and acts as forms that are posted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.functional import cached_property
from unfold.admin import ModelAdmin

from governance.models import Organization
from governance.roles import OPERATE, VIEW
from governance.selectors import organizations_where
from reasoncodes.actors import Actor, ActorKind
from reasoncodes.errors import DomainError
from reasoncodes.tenancy import every_tenant


def console_actor(request: HttpRequest, *, permission: str = OPERATE) -> Actor:
    """The signed-in person, acting where they have the permission. An installation administrator operates everywhere,
    but gets no reviewer's or owner's permission from that."""
    user = request.user
    ids = organizations_where(user=user, permission=permission)  # type: ignore[arg-type]
    if user.is_superuser and permission in {VIEW, OPERATE}:
        with every_tenant():
            ids = frozenset(Organization.objects.values_list("id", flat=True))
    return Actor(ActorKind.PERSON, user.pk, ids)


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts to 10,000 and no further: a list must not cost more because more is waiting."""

    LIMIT = 10_000

    @cached_property
    def count(self) -> int:
        return int(self.object_list.order_by()[: self.LIMIT].count())  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Act:
    """One thing an operator can do to a row: a page that says what will happen, and a form that is posted."""

    verb: str
    title: str
    explanation: str
    perform: Callable[[Any, HttpRequest, Any, dict[str, Any]], HttpResponse | str]
    form: type[forms.Form] = forms.Form
    permission: str = OPERATE
    available: Callable[[Any], bool] = lambda _: True
    danger: bool = False


class ConsoleAdmin(ModelAdmin):
    """Rows of the person's organizations only (the tenant scope does it); changes need the operator's permission."""

    acts: ClassVar[Sequence[Act]] = ()
    addable = False
    editable = False
    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50
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
        return bool(console_actor(request, permission=VIEW).organization_ids) or request.user.is_superuser

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.addable and self._operates(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.editable and self._operates(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def _operates(self, request: HttpRequest, obj: Any = None, *, permission: str = OPERATE) -> bool:
        actor = console_actor(request, permission=permission)
        if obj is None:
            return bool(actor.organization_ids) or request.user.is_superuser
        return actor.may_act_in(self.organization_id_of(obj)) or (
            request.user.is_superuser and permission in {OPERATE, VIEW}
        )

    def require_operator(self, request: HttpRequest, organization_id: UUID) -> Actor:
        actor = console_actor(request)
        if not actor.may_act_in(organization_id):
            raise PermissionDenied
        return actor

    # -- acts -------------------------------------------------------------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_act"
        return [
            path("<uuid:object_id>/act/<slug:verb>/", self.admin_site.admin_view(self.act_view), name=name),
            *super().get_urls(),
        ]

    def act_url(self, obj: Model, verb: str) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_act", args=[obj.pk, verb])

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        obj = self.get_object(request, object_id)
        links = [
            {"title": act.title, "url": self.act_url(obj, act.verb), "danger": act.danger}
            for act in self.acts
            if obj is not None and act.available(obj) and self._operates(request, obj, permission=act.permission)
        ]
        return super().change_view(request, object_id, form_url, (extra_context or {}) | {"act_links": links})

    def act_view(self, request: HttpRequest, object_id: UUID, verb: str) -> HttpResponse:
        """GET shows what will happen; only POST does it."""
        act = next((act for act in self.acts if act.verb == verb), None)
        obj = self.get_object(request, str(object_id))
        if act is None or obj is None:
            raise Http404
        if not self._operates(request, obj, permission=act.permission):
            raise PermissionDenied
        form = act.form(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            try:
                return self._finish(request, obj, act.perform(self, request, obj, form.cleaned_data))
            except DomainError as refusal:
                form.add_error(None, refusal.detail)
                for problem in refusal.errors:
                    form.add_error(None, f"{problem.pointer}: {problem.message}")
        return render(request, "admin/holdpoint/act.html", self._act_context(request, obj, act, form))

    def _finish(self, request: HttpRequest, obj: Model, outcome: HttpResponse | str) -> HttpResponse:
        if isinstance(outcome, HttpResponse):
            return outcome
        messages.success(request, outcome)
        return HttpResponseRedirect(
            reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[obj.pk])
        )

    def _act_context(self, request: HttpRequest, obj: Model, act: Act, form: forms.Form) -> dict[str, Any]:
        return {
            **self.admin_site.each_context(request),
            "title": act.title,
            "act": act,
            "form": form,
            "opts": self.opts,
            "original": obj,
            "back": reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[obj.pk]),
        }


def adopt(obj: Model, made: Model) -> None:
    """The admin holds an unsaved instance; a service made the row. From here on they are the same row."""
    obj.__dict__.update(made.__dict__)
