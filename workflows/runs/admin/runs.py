"""Runs in the console: the list, and one run with its picture, steps and timeline."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil
from unfold.decorators import display

from governance.console.admin.lists import choice_filter
from governance.console.selectors.lists import NEWEST, newest, uuid_or_none
from governance.evidence.admin import evidence_act
from governance.evidence.states import EvidenceKind
from workflows.definitions.selectors import definition_list
from workflows.definitions.states import Mode
from workflows.runs.admin import acts as run_acts
from workflows.runs.admin.acts import hint
from workflows.runs.admin.bulk import BulkPages
from workflows.runs.admin.story import DRIFT_WORDS, TimelineFacts, context_table, run_timeline
from workflows.runs.models import WorkflowInstance
from workflows.runs.selectors.console import halt_reasons, instance_entries, names_of, run_document
from workflows.runs.selectors.pictures import run_picture
from workflows.runs.selectors.run import (
    attempts_reviews,
    instance_drift,
    instance_events,
    instance_interventions,
    instance_steps,
    of_case,
    steps_attempts,
    steps_reviews,
)
from workflows.runs.services.advisory import next_step_of, steps_of
from workflows.runs.states import ENDED, InstanceStatus


def link(url: str, text: Any) -> SafeString:
    return format_html('<a class="text-primary-700 underline dark:text-primary-400" href="{}">{}</a>', url, text)


def run_link(instance_id: Any, nothing: str) -> SafeString | str:
    """To the page of a run; `nothing` when there is none."""
    if instance_id is None:
        return nothing
    return link(reverse("admin:workflows_workflowinstance_change", args=[instance_id]), instance_id)


LISTED = 300
LABELS = {
    "queued": "default",
    "running": "info",
    "waiting approval": "warning",
    "halted": "danger",
    "completed": "success",
    "cancelled": "default",
}


class RunDefinitionFilter(admin.SimpleListFilter):
    title = f"definition, of the newest {NEWEST:,}"
    parameter_name = "definition"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = definition_list().exclude(contract=None).order_by("-id")[:50]
        return [(str(row.id), f"{row.slug} v{row.version}") for row in rows]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        known = {value for value, _ in self.lookup_choices}
        return newest(queryset).filter(definition_id=self.value()) if self.value() in known else queryset


class HaltReasonFilter(admin.SimpleListFilter):
    title = "halt reason"
    parameter_name = "halt_reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(code, code) for code in halt_reasons()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Only halted runs have one, and their index finds them."""
        halted = queryset.filter(state=InstanceStatus.HALTED)
        return newest(halted).filter(halt_reason=self.value()) if self.value() else queryset


@admin.register(WorkflowInstance)
class WorkflowInstanceAdmin(BulkPages):
    list_display = ["case_shown", "status_shown", "at_step", "definition_shown", "mode", "halt_reason", "created_at"]
    list_filter = [
        choice_filter(
            "status", {state.value: state.value.replace("_", " ") for state in InstanceStatus}, field="state"
        ),
        HaltReasonFilter,
        choice_filter("mode", {mode.value: mode.value.replace("_", " ") for mode in Mode}, indexed=False),
        RunDefinitionFilter,
    ]
    hot = True
    search_fields = ["id", "case_id"]  # what is searched is in `matches`; this makes the box appear
    search_help_text = "The full id of a case or a run."
    ordering = ["-id"]
    fields = [
        "status_shown",
        "halt_shown",
        "case_id",
        "definition_shown",
        "contract_shown",
        "product",
        "mode",
        "created_at",
        "started_at",
        "deadline_shown",
        "completed_at",
        "superseded_shown",
        "snapshot_shown",
        "id",
    ]
    readonly_fields = fields
    list_before_template = "admin/workflows/run_list.html"
    change_form_outer_before_template = "admin/workflows/run_head.html"
    change_form_outer_after_template = "admin/workflows/run.html"
    acts = [*run_acts.ACTS, evidence_act(EvidenceKind.INSTANCE)]

    class Media:
        css = {"all": ["workflows/graph.css", "workflows/definitions.css", "workflows/runs.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowInstance]:
        rows = super().get_queryset(request).select_related("organization", "definition", "contract", "product")
        rows = rows.defer("definition__definition")
        if self.is_list(request):
            return rows.defer("context", "early").prefetch_related("current_steps")
        return rows

    def matches(self, term: str) -> Q | None:
        wanted = uuid_or_none(term)
        return None if wanted is None else Q(id=wanted) | of_case(wanted)

    @admin.display(description="Case")
    def case_shown(self, obj: WorkflowInstance) -> str:
        return str(obj.case_id)

    @display(description="Status", label=LABELS)
    def status_shown(self, obj: WorkflowInstance) -> str:
        return obj.state.replace("_", " ")

    @admin.display(description="At")
    def at_step(self, obj: WorkflowInstance) -> str:
        open_ones = [step.step_id for step in obj.current_steps.all()]
        return ", ".join(open_ones) or (obj.halt_step_id if obj.state == InstanceStatus.HALTED else "–")

    @admin.display(description="Definition")
    def definition_shown(self, obj: WorkflowInstance) -> SafeString:
        url = reverse("admin:workflows_workflowdefinition_change", args=[obj.definition_id])
        return link(url, f"{obj.definition.slug} v{obj.definition.version}")

    @admin.display(description="Contract")
    def contract_shown(self, obj: WorkflowInstance) -> SafeString | str:
        if obj.contract is None:
            return "none"
        url = reverse("admin:governance_contract_change", args=[obj.contract.pk])
        return format_html("{}, {}", link(url, str(obj.contract)), obj.contract.state)

    @admin.display(description="Halted because")
    def halt_shown(self, obj: WorkflowInstance) -> SafeString | str:
        if obj.state == InstanceStatus.CANCELLED:
            return format_html("cancelled: <code>{}</code>", obj.cancelled_reason)
        if obj.state != InstanceStatus.HALTED:
            return "not halted"
        return format_html("<code>{}</code> at {}", obj.halt_reason, obj.halt_step_id)

    @admin.display(description="Deadline")
    def deadline_shown(self, obj: WorkflowInstance) -> str:
        moment = f"{obj.deadline_at:%Y-%m-%d %H:%M} UTC"
        if obj.state in ENDED:
            return moment
        passed = obj.deadline_at <= timezone.now()
        return (
            f"{moment}, passed {timesince(obj.deadline_at)} ago"
            if passed
            else f"{moment}, in {timeuntil(obj.deadline_at)}"
        )

    @admin.display(description="Superseded by")
    def superseded_shown(self, obj: WorkflowInstance) -> SafeString | str:
        return run_link(obj.superseded_by_id, "nothing: this is the current run of the case")

    @admin.display(description="Snapshot SHA-256")
    def snapshot_shown(self, obj: WorkflowInstance) -> SafeString:
        return format_html('<code class="wf-hash">{}</code>', obj.definition_sha256)

    def page_context(self, request: HttpRequest, obj: WorkflowInstance) -> dict[str, Any]:
        steps, document = instance_steps(instance_id=obj.id), run_document(instance=obj)
        events = list(instance_events(instance_id=obj.id)[:LISTED])
        attempts = steps_attempts(steps=steps)
        advice = next_step_of(obj, steps)
        return {
            "picture": run_picture(obj, steps=steps, document=document, linked=True),
            "drift": [(one, DRIFT_WORDS[one.drift]) for one in instance_drift(instance_id=obj.id, limit=10)],
            "hint": hint(advice),
            "advice": advice,
            "context_table": context_table(obj.context),
            "steps": self._steps(obj, steps, events, attempts),
            "timeline": self._timeline(obj, steps, events, attempts),
            "listed": LISTED if len(events) == LISTED else 0,
        }

    @staticmethod
    def _steps(obj: WorkflowInstance, steps: Any, events: Any, attempts: Any) -> list[dict[str, Any]]:
        """Each try with the attempt that its request passed through, and the review that held or answered it."""
        holds, answers = attempts_reviews(attempt_ids=set(attempts)), steps_reviews(steps=steps, events=events)
        found = []
        for shown in steps_of(obj, steps):
            row = shown.row
            attempt = attempts.get(row.governed_attempt) if row else None
            held = holds[attempt.id].id if attempt and attempt.id in holds else None
            review = held or (answers.get(row.id) if row else None)
            found.append({"shown": shown, "row": row, "attempt": attempt, "review": review})
        return found

    @staticmethod
    def _timeline(obj: WorkflowInstance, steps: Any, events: Any, attempts: Any) -> Any:
        entries = instance_entries(instance_id=obj.id)
        names = names_of(refs={(entry.actor_kind, entry.actor_ref) for entry in entries})
        interventions = list(instance_interventions(instance_id=obj.id)[:LISTED])
        return run_timeline(TimelineFacts(events, steps, interventions, attempts, entries, names))
