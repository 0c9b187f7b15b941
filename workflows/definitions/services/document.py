"""A definition's document: the check that even a draft must pass, its columns, its hash, and its findings."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from governance.boundary.errors import MetadataBoundary
from governance.contracts.states import Effect
from governance.ledger.rules.entry import canonical_sha256
from governance.policies.selectors import reviewer_tiers
from reasoncodes.base.errors import FieldError, InvalidInput
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_codes_active
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.calls import call_findings, call_steps, document_pinned
from workflows.definitions.rules.contract_terms import effect_of
from workflows.definitions.rules.document import (
    DEFAULT_WORKFLOW_TIMEOUT,
    MAX_NAME,
    MAX_WORKFLOW_SECONDS,
    read_definition,
)
from workflows.definitions.rules.findings import DefinitionFinding
from workflows.definitions.rules.validate import draft_findings, validate
from workflows.definitions.selectors import definition_get
from workflows.definitions.states import Mode
from workflows.kinds.registry import kind_table, kinds
from workflows.modules.selectors import modules_offered

FORMAT = "holdpoint-definition-v1"
# Fields of the document that a request may give separately, and that the row has as columns too.
SETTINGS = ("name", "default_mode", "workflow_timeout_seconds")


def document_check(document: Any) -> dict[str, Any]:
    """What even a draft must be: a JSON object of bounded size without personal data and secrets."""
    findings = draft_findings(document, kinds=kinds())
    errors = [FieldError(f"/definition{f.pointer}", f.message, rule=f.rule) for f in findings]
    if any(finding.rule == "text_boundary" for finding in findings):
        raise MetadataBoundary(errors=errors)
    if errors:
        raise InvalidInput(errors=errors)
    return dict(document)


def document_with(document: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that are given beside the document are written into it: the document is what counts."""
    return dict(document) | {name: settings[name] for name in SETTINGS if settings.get(name) is not None}


def document_set(definition: WorkflowDefinition, document: dict[str, Any]) -> None:
    """Set the document and the columns that repeat parts of it. An unusable value of a draft becomes the default."""
    name, mode, seconds = (document.get(field) for field in SETTINGS)
    definition.definition = document
    definition.name = name[:MAX_NAME] if isinstance(name, str) and name.strip() else definition.slug
    definition.default_mode = Mode(mode) if mode in list(Mode) else Mode.ACTIVE
    # In Python a bool is an int: `true` in the document would otherwise become one second.
    usable = isinstance(seconds, int) and not isinstance(seconds, bool) and 1 <= seconds <= MAX_WORKFLOW_SECONDS
    definition.workflow_timeout_seconds = seconds if usable and seconds else DEFAULT_WORKFLOW_TIMEOUT


def snapshot_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """The frozen copy that a run follows, as it is stored under its hash."""
    return {"format": FORMAT, "definition": dict(document)}


def definition_sha256(document: Mapping[str, Any]) -> str:
    """The hash under which publishing stores the document. Revisions name it from the first draft on."""
    return canonical_sha256(snapshot_document(document))


def definition_validate(*, definition_id: UUID, document: Any = None) -> list[DefinitionFinding]:
    """The findings about the stored document, or about the given one."""
    definition = definition_get(definition_id=definition_id)
    judged = definition.definition if document is None else document
    return document_findings(organization_id=definition.organization_id, document=judged)


def document_findings(*, organization_id: UUID | None, document: Any) -> list[DefinitionFinding]:
    """All findings. Without an organization (templates) the system's own codes count; tiers are judged when an
    organization publishes its copy."""
    tiers = reviewer_tiers(organization_id=organization_id) if organization_id else _tiers_named(document)
    found = validate(
        document,
        kinds=kinds(),
        halt_codes=reason_codes_active(organization_id=organization_id, scope=Scope.HALT),
        step_failure_codes=reason_codes_active(organization_id=organization_id, scope=Scope.STEP_FAILURE),
        tiers=frozenset(tiers),
    )
    offered = modules_offered(organization_id=organization_id) if call_steps(document) else {}
    found += call_findings(document, offered)
    # Only for a valid document: the check parses it, and would fail on anything else.
    return found or list(_contract_findings(document_pinned(document, offered)))


def document_resolved(definition: WorkflowDefinition) -> dict[str, Any]:
    """The document with what its calls of modules resolve to now. Publication stores it like this, and judges effects
    by it; the draft stays as it was written."""
    document: dict[str, Any] = definition.definition
    if not call_steps(document):
        return document
    return document_pinned(document, modules_offered(organization_id=definition.organization_id))


def _tiers_named(document: Any) -> Iterator[str]:
    """Every tier that a step of the document names, whatever else the document is."""
    steps = document.get("steps") if isinstance(document, dict) else None
    for step in steps.values() if isinstance(steps, dict) else ():
        params = step.get("params") if isinstance(step, dict) else None
        known = kind_table().get(str(step["kind"])) if isinstance(params, dict) and "kind" in step else None
        tier = params.get(known.human_tier) if known is not None and isinstance(params, dict) else None
        if isinstance(tier, str):
            yield tier


def _contract_findings(document: dict[str, Any]) -> Iterator[DefinitionFinding]:
    """Retries that the contract would not allow."""
    # The contract has the strictest effect of all steps. If that is `once`, no step is retried; without this finding a
    # requested retry would silently never happen.
    definition = read_definition(document, definition_id="")
    if effect_of(definition, kind_table()) is not Effect.ONCE:
        return
    for step in definition.steps.values():
        known = definition.kind(step.id, kind_table())
        # A call that only reads opens no attempt, so the contract says nothing about it.
        reads = known is not None and known.bind is not None and not known.is_governed
        if step.max_retries > 0 and not reads:
            message = "Another step has effect once, so the contract allows no automatic retry. Set max_retries to 0."
            yield DefinitionFinding("contract_forbids_retries", f"/steps/{step.id}/max_retries", message, "0")


def as_errors(findings: list[DefinitionFinding]) -> list[FieldError]:
    return [FieldError(f.pointer, f.message, rule=f.rule, suggestion=f.suggestion) for f in findings]
