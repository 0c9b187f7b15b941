"""What a run gives to an evidence bundle: itself, its steps, events and interventions, and all its attempts."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.evidence import (
    attempts_lock,
    attempts_record,
    attempts_rows,
    decisions_of,
    one,
    reviews_lock,
    rows_shown,
)
from attempts.reviews.models import Review
from governance.enforcement.models import snapshot_load
from governance.evidence.hooks import FIRST, EndedSubject
from governance.evidence.models import EvidenceBundle
from governance.evidence.rules import BundleSubject, Material, canonical_plain
from governance.evidence.states import EvidenceKind
from governance.ledger.rules.entry import canonical_sha256
from workflows.definitions.rules.document import TERMINAL
from workflows.definitions.rules.picture import layout
from workflows.definitions.rules.svg import svg
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance, WorkflowIntervention, WorkflowStep
from workflows.runs.selectors.run import instance_get, instance_lock
from workflows.runs.states import ENDED, InstanceStatus

# Columns are listed one by one: a new column must not enter evidence bundles by itself.
INSTANCE = [
    "id",
    "organization_id",
    "product_id",
    "case_id",
    "definition_id",
    "contract_id",
    "definition_sha256",
    "mode",
    "state",
    "halt_reason",
    "halt_step_id",
    "cancelled_reason",
    "superseded_by_id",
    "events",
    "emitted",
    "writes",
    "created_at",
    "started_at",
    "deadline_at",
    "completed_at",
]
STEP = [
    "id",
    "number",
    "step_id",
    "step_kind",
    "scope",
    "state",
    "attempt",
    "retries",
    "outcome",
    "started_at",
    "completed_at",
    "timeout_at",
    "governed_attempt",
]
EVENT = [
    "id",
    "number",
    "event_id",
    "event_type",
    "source",
    "case_id",
    "correlation_id",
    "outcome",
    "drift",
    "redrives_id",
    "at",
    "received_at",
]
INTERVENTION = ["id", "action", "actor_kind", "actor_ref", "reason_code", "bulk_id", "before_state", "after_state"]
STYLE = Path(__file__).resolve().parents[3] / "static" / "workflows" / "graph.css"
# The report has no switch of its own: it follows the reader's system, and paper is light.
DARK = '.dark .wf-graph, [data-theme="dark"] .wf-graph {'


class InstanceCollector:
    def organization(self, *, subject_id: UUID) -> UUID:
        return instance_get(instance_id=subject_id).organization_id

    def record(self, *, subject_id: UUID) -> frozenset[UUID]:
        steps = _steps(subject_id)
        governed = [step.governed_attempt for step in steps if step.governed_attempt]
        attempts = list(Attempt.objects.filter(id__in=governed))
        reviews = list(Review.objects.filter(attempt_id__in=governed))
        reviews += list(Review.objects.filter(origin_step__in=[step.id for step in steps]))
        return attempts_record(attempts=attempts, reviews=reviews) | {subject_id}

    def ended(self, *, subject_id: UUID) -> EndedSubject | None:
        instance = instance_get(instance_id=subject_id)
        return EndedSubject(instance.id, instance.contract_id, "") if instance.state in ENDED else None

    def ended_without(
        self, *, between: tuple[datetime, datetime], contracts: Sequence[UUID], limit: int, after: UUID = FIRST
    ) -> list[EndedSubject]:
        made = EvidenceBundle.objects.filter(subject_id=OuterRef("id"))
        rows = WorkflowInstance.objects.filter(
            id__gt=after, contract_id__in=contracts, completed_at__range=between, state__in=ENDED, erased_at=None
        )
        found = rows.filter(~Exists(made)).order_by("id").values_list("id", "contract_id")[:limit]
        return [EndedSubject(*row, "") for row in found]

    def collect(self, *, subject_id: UUID) -> Material:
        """Everything that an evidence bundle about a run contains."""
        # Locked, so that the rows are of one moment. Lock order: run, attempts, reviews, as everywhere; otherwise this
        # could deadlock with an advance or a vote.
        instance = instance_lock(instance_id=subject_id)
        steps = _steps(subject_id)
        governed = sorted({step.governed_attempt for step in steps if step.governed_attempt})
        attempts = attempts_lock(attempt_ids=governed)
        reviews = reviews_lock(attempt_ids=governed, steps=[step.id for step in steps])
        definition = instance.definition
        about = _shown(one(instance, INSTANCE)) | {"definition": f"{definition.slug} version {definition.version}"}
        return Material(
            subject=BundleSubject(EvidenceKind.INSTANCE, instance.id, f"run of case {instance.case_id}"),
            organization_id=instance.organization_id,
            record=attempts_record(attempts=attempts, reviews=reviews) | {instance.id},
            decisions=decisions_of(attempts=attempts),
            instance=[about],
            steps=[_shown(row) for row in rows_shown(steps, STEP)],
            events=[_event(event) for event in _events(subject_id)],
            interventions=_interventions(subject_id),
            snapshots=(instance.definition_sha256,),
            picture=_picture(instance, steps),
            picture_style=picture_style(),
            **attempts_rows(attempts=attempts, reviews=reviews),
        )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """With the key `status`, as bundles have always had it; the column is `state`."""
    return {"status" if name == "state" else name: value for name, value in row.items()}


def _steps(instance_id: UUID) -> list[WorkflowStep]:
    return list(WorkflowStep.objects.filter(instance_id=instance_id).order_by("number"))


def _events(instance_id: UUID) -> Any:
    return WorkflowEvent.objects.filter(instance_id=instance_id).order_by("id")


def _event(event: WorkflowEvent) -> dict[str, Any]:
    """Metadata, and hashes of the content: what modules sent never enters a bundle."""
    return one(event, EVENT) | {
        "envelope_sha256": canonical_sha256(canonical_plain(event.envelope)),
        "facts_sha256": canonical_sha256(canonical_plain(event.facts)),
    }


def _interventions(instance_id: UUID) -> list[dict[str, Any]]:
    rows = WorkflowIntervention.objects.filter(instance_id=instance_id).select_related("note").order_by("id")
    return [
        one(row, INTERVENTION)
        | {"at": canonical_plain(row.created_at), "note_sha256": row.note.sha256 if row.note else ""}
        for row in rows
    ]


def _picture(instance: WorkflowInstance, steps: list[WorkflowStep]) -> str:
    document = snapshot_load(instance.definition_sha256)["definition"]
    found = {step.step_id: step.state for step in steps}
    if instance.state == InstanceStatus.COMPLETED:
        found = dict.fromkeys(document.get("steps", {}), "skipped") | found | {TERMINAL: "completed"}
    links = {step.step_id: f"#step-{step.step_id}" for step in steps}
    return svg(layout(document), title=f"The run of case {instance.case_id}", statuses=found, links=links)


def picture_style() -> str:
    """The picture's style sheet. Dark colours follow the reader's system."""
    text = STYLE.read_text()
    begin = text.index(DARK)
    end = text.index("}", begin) + 1
    dark = text[begin:end].replace(DARK, ".wf-graph {")
    return f"{text[:begin]}@media screen and (prefers-color-scheme: dark) {{ {dark} }}{text[end:]}"
