"""What would have happened: the last finished runs of a definition, with their recorded inputs and answers, under
another version of it. Reads only: the hold point is not asked, nothing is sent, nothing is stored."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from reasoncodes.base.errors import WrongState
from workflows.definitions.errors import DefinitionInvalid
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.document import Definition, read_definition
from workflows.definitions.rules.starting import input_problems
from workflows.definitions.selectors import definition_get
from workflows.definitions.services.document import as_errors, document_findings, snapshot_document
from workflows.engine.what_if import Recorded, RunStory, story_of, what_if
from workflows.events.models import WorkflowEvent
from workflows.events.states import EventOutcome
from workflows.kinds.registry import kind_table
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.rules import MIGRATED
from workflows.runs.selectors.finished import finished_runs
from workflows.runs.services.advance import answer_from_json, input_of
from workflows.runs.services.replay import state_blank
from workflows.runs.services.rows import state_of

MOST_RUNS = 200
REFUSED = "refused"  # the end of a run that would not have started


@dataclass(frozen=True, slots=True)
class Difference:
    """`differs`: end, reason, path or output. `unknown`: steps that no recorded run answered, so the story stops
    there."""

    instance: WorkflowInstance
    differs: list[str]
    was: RunStory
    would_be: RunStory


@dataclass(frozen=True, slots=True)
class WhatIf:
    runs: int
    same: int
    different: list[Difference]


def definition_what_if(*, definition_id: UUID, last: int) -> WhatIf:
    """`last`: so many finished runs of the definition's slug, the newest first."""
    definition = definition_get(definition_id=definition_id)
    if definition.is_template or definition.organization_id is None:
        raise WrongState("This is a template, and has no runs. Clone it, and ask about the clone.")
    findings = document_findings(organization_id=definition.organization_id, document=definition.definition)
    if findings:
        raise DefinitionInvalid(errors=as_errors(findings))
    runs = finished_runs(organization_id=definition.organization_id, slug=definition.slug, last=min(last, MOST_RUNS))
    found = [_compared(definition, instance) for instance in runs]
    different = [one for one in found if one.differs]
    return WhatIf(runs=len(found), same=len(found) - len(different), different=different)


def _compared(definition: WorkflowDefinition, instance: WorkflowInstance) -> Difference:
    rows = list(WorkflowStep.objects.filter(instance=instance).order_by("number"))
    was = story_of(state_of(instance, rows))
    # Under the id that the run had: `sample()` then draws what it drew.
    document: dict[str, Any] = snapshot_document(definition.definition)["definition"]
    would_be = _again(read_definition(document, definition_id=str(instance.definition_id)), instance, rows)
    return Difference(instance, would_be.differs_from(was), was, would_be)


def _again(definition: Definition, instance: WorkflowInstance, rows: list[WorkflowStep]) -> RunStory:
    given = instance.input or {}
    if definition.format > 1 and input_problems(definition, given):
        return RunStory(end=REFUSED, reason="invalid_input", path=(), output=None)
    names = {row.id: row.step_id for row in rows}
    events = WorkflowEvent.objects.filter(instance=instance, number__isnull=False).order_by("number")
    recorded = [found for event in events if (found := _recorded(event, names)) is not None]
    blank = state_blank(instance, definition=definition)
    return what_if(definition, kind_table(), blank, recorded)


def _recorded(event: WorkflowEvent, names: dict[UUID, str]) -> Recorded | None:
    counts = event.outcome == EventOutcome.ADVANCED and event.event_type != MIGRATED
    given = input_of(event) if counts else None
    if given is None:
        return None
    answers = [answer_from_json(said) for said in event.facts.get("gates", [])]
    about = names.get(event.correlation_id, "") if event.correlation_id else ""
    return Recorded(given, about, tuple((names.get(answer.step, ""), answer) for answer in answers))
