"""Starts the run that `run.requested` asks for: of the definition that it names, with its input, once per business
key."""

from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.starting import input_problems
from workflows.events.errors import EventInvalid
from workflows.events.models import WorkflowEvent
from workflows.kinds.base import ShapeProblem
from workflows.runs.errors import RunExists
from workflows.runs.models import WorkflowInstance
from workflows.runs.selectors.locked import definition_read
from workflows.runs.selectors.start import request_facts
from workflows.runs.services.start import instance_begin, instance_build, start_ignored, trigger


def case_named(envelope: dict[str, Any]) -> dict[str, Any]:
    """The envelope with its case. Where the sender names none, it is made of organization, definition and business
    key, so that every run under one key is about the same case."""
    payload = envelope["payload"]
    slug, key = payload.get("definition_slug"), payload.get("business_key")
    if "case_id" in envelope or not isinstance(slug, str) or not isinstance(key, str):
        return envelope
    return envelope | {"case_id": str(uuid5(UUID(envelope["org_id"]), f"{slug}/{key}"))}


def run_request(
    *, envelope: dict[str, Any], actor: Actor, at: datetime, region: str, redrives: UUID | None = None
) -> WorkflowEvent | None:
    """In the caller's transaction. None: an event with this id was received before. While a run goes on under the key,
    the same request again is logged as ignored, and names that run; one with another input is refused."""
    payload = envelope["payload"]
    given = payload.get("input", {})
    logged = trigger(envelope, at=at, redrives=redrives)
    facts = request_facts(
        organization_id=UUID(envelope["org_id"]),
        product_id=UUID(envelope["product_id"]),
        slug=payload["definition_slug"],
        business_key=payload["business_key"],
        event_id=logged.event_id,
    )
    if facts.known:
        return None
    if facts.definition is None:
        raise _invalid([ShapeProblem("/payload/definition_slug", NO_DEFINITION, "no_active_definition")])
    if facts.running is not None:
        return _running_already(WorkflowInstance.objects.get(id=facts.running), given, envelope, at, redrives)
    input_or_refuse(facts.definition, given)
    instance = instance_build(definition=facts.definition, envelope=envelope, at=at)
    instance.locked_arrival = facts.arrival
    return instance_begin(
        instance=instance, logged=logged, actor=actor, at=at, region=region, under_way=facts.under_way
    )


NO_DEFINITION = "names no definition that is active for this product; GET /api/v1/workflow-definitions lists them"


def input_or_refuse(definition: WorkflowDefinition, given: Any) -> None:
    """By the schema of the frozen copy that the run would follow. Nothing of an input that does not fit is stored."""
    if problems := input_problems(definition_read(definition), given, base="/payload/input"):
        raise _invalid(problems)


def _running_already(
    instance: WorkflowInstance, given: Any, envelope: dict[str, Any], at: datetime, redrives: UUID | None
) -> WorkflowEvent:
    if (instance.input or {}) != given:
        raise RunExists(extensions={"instance_id": str(instance.id)})
    return start_ignored(instance, trigger(envelope, at=at, redrives=redrives), at)


def _invalid(problems: list[ShapeProblem]) -> EventInvalid:
    return EventInvalid(errors=[FieldError(one.pointer, one.message, rule=one.rule) for one in problems])
