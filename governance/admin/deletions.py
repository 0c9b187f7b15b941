"""Deletion requests in the console: who is asked about, what stands in the way, and a second person's decision."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.admin.base import Act, ConsoleAdmin, console_actor
from governance.admin.forms import ReasonForm, hash_text
from governance.admin.retention_forms import DeletionForm, RefusalForm
from governance.models import DeletionRequest
from governance.roles import AUDIT
from governance.selectors import people_behind
from governance.selectors.retention import deletion_list
from governance.services.deletion import deletion_accept, deletion_blockers, deletion_refuse, deletion_request
from governance.states import DeletionState

LABELS = {"requested": "info", "overdue": "danger", "accepted": "warning", "refused": "default", "done": "success"}


def ask(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]) -> HttpResponse:
    organization, person = data["organization"], data["person"]
    row = deletion_request(
        actor=model_admin.require_operator(request, organization.id),
        at=timezone.now(),
        organization=organization,
        context_ref=data["context_ref"],
        person_id=person.id if person else None,
    )
    return model_admin.done(request, row, "Requested. Another person has to decide.")


def accept(model_admin: ConsoleAdmin, request: HttpRequest, obj: DeletionRequest, data: dict[str, Any]) -> str:
    deletion_accept(actor=console_actor(request), at=timezone.now(), deletion_id=obj.id, **data)
    return "Accepted. The erasure is ordered and runs in the background."


def refuse(model_admin: ConsoleAdmin, request: HttpRequest, obj: DeletionRequest, data: dict[str, Any]) -> str:
    deletion_refuse(actor=console_actor(request), at=timezone.now(), deletion_id=obj.id, **data)
    return "Refused. The reason is on record."


def blocked(request: HttpRequest, obj: DeletionRequest) -> dict[str, Any]:
    """What the page of the decision shows: how much would go, and what is in the way."""
    free, found = deletion_blockers(request=obj, at=timezone.now())
    return {"free": len(free), "found": found}


def is_open(obj: DeletionRequest) -> bool:
    return obj.state == DeletionState.REQUESTED


@admin.register(DeletionRequest)
class DeletionRequestAdmin(ConsoleAdmin):
    view_permission = AUDIT
    addable = True
    list_display = ["whom", "state_shown", "requested_at", "due_at", "reason_code", "finished_at", "organization"]
    list_filter = ["state", "about"]
    search_fields = ["=id", "=commitment"]
    ordering = ["-id"]
    fields = [
        "whom",
        "state_shown",
        "commitment_shown",
        "organization",
        "asked_by",
        "requested_at",
        "due_at",
        "decided_by",
        "decided_at",
        "reason_code",
        "note",
        "order",
        "finished_at",
    ]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/deletion_list.html"
    add_act = Act(
        "request",
        "Ask for a deletion",
        "Requests the deletion of a context reference or a person. Another person has to decide by the due date of "
        "the regional profile.",
        ask,
        DeletionForm,
    )
    acts = [
        Act(
            "accept",
            "Accept",
            "Orders the erasure. Payloads and references are erased, and the reference's salt is destroyed. Proofs "
            "stay valid.",
            accept,
            ReasonForm,
            available=is_open,
            danger=True,
            template="admin/holdpoint/deletion_decide.html",
            context=blocked,
        ),
        Act(
            "refuse",
            "Refuse",
            "Refuses the request with a lawful reason. The reason stays on record.",
            refuse,
            RefusalForm,
            available=is_open,
            template="admin/holdpoint/deletion_decide.html",
            context=blocked,
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[DeletionRequest]:
        return deletion_list().filter(organization_id__in=console_actor(request, permission=AUDIT).organization_ids)

    @admin.display(description="About")
    def whom(self, obj: Any) -> str:
        known = obj.person if obj.about == "person" else obj.reference
        return f"{obj.about} {known}" if known else f"a {obj.about} (reference erased)"

    @display(description="State", label=LABELS)
    def state_shown(self, obj: DeletionRequest) -> str:
        return "overdue" if is_open(obj) and obj.due_at <= timezone.now() else str(obj.state)

    @admin.display(description="Commitment")
    def commitment_shown(self, obj: DeletionRequest) -> SafeString:
        return hash_text(obj.commitment)

    @admin.display(description="Asked for by")
    def asked_by(self, obj: DeletionRequest) -> str:
        return people_behind(commitments={obj.requested_by_ref}).get(obj.requested_by_ref, obj.requested_by_kind)

    @admin.display(description="Decided by")
    def decided_by(self, obj: DeletionRequest) -> str:
        return people_behind(commitments={obj.decided_by_ref}).get(obj.decided_by_ref, "–")
