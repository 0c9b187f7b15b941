"""What is stored of a document: the check that even a draft must pass, and the columns that repeat parts of it."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from governance.boundary.errors import MetadataBoundary
from governance.contracts.states import Effect
from governance.ledger.rules.entry import canonical_sha256
from governance.people.rules.roles import REVIEWER_TIERS
from governance.policies.selectors import reviewer_tiers
from reasoncodes.base.errors import FieldError, InvalidInput
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_codes_active
from workflows.definitions.models import WorkflowDefinition
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

FORMAT = "holdpoint-definition-v1"
# Fields of the document that a request may give beside it, and the row repeats.
SETTINGS = ("name", "default_mode", "workflow_timeout_seconds")


def document_check(document: Any) -> dict[str, Any]:
    """A draft may have faults, but it is a JSON object of bounded size without people and secrets in it."""
    findings = draft_findings(document, kinds=kinds())
    errors = [FieldError(f"/definition{f.pointer}", f.message, rule=f.rule) for f in findings]
    if any(finding.rule == "text_boundary" for finding in findings):
        raise MetadataBoundary(errors=errors)
    if errors:
        raise InvalidInput(errors=errors)
    return dict(document)


def document_with(document: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The document is the truth: what is given beside it is written into it."""
    return dict(document) | {name: settings[name] for name in SETTINGS if settings.get(name) is not None}


def document_set(definition: WorkflowDefinition, document: dict[str, Any]) -> None:
    """The row's columns repeat the document; where a draft's is not usable they hold the default."""
    name, mode, seconds = (document.get(field) for field in SETTINGS)
    definition.definition = document
    definition.name = name[:MAX_NAME] if isinstance(name, str) and name.strip() else definition.slug
    definition.default_mode = Mode(mode) if mode in list(Mode) else Mode.ACTIVE
    usable = isinstance(seconds, int) and not isinstance(seconds, bool) and 1 <= seconds <= MAX_WORKFLOW_SECONDS
    definition.workflow_timeout_seconds = seconds if usable and seconds else DEFAULT_WORKFLOW_TIMEOUT


def snapshot_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """What an instance follows, as it is stored under its hash."""
    return {"format": FORMAT, "definition": dict(document)}


def definition_sha256(document: Mapping[str, Any]) -> str:
    """The address under which publishing stores it; revisions name it from the first draft on."""
    return canonical_sha256(snapshot_document(document))


def definition_validate(*, definition_id: UUID, document: Any = None) -> list[DefinitionFinding]:
    """Of the stored document, or of one that somebody is still writing."""
    definition = definition_get(definition_id=definition_id)
    judged = definition.definition if document is None else document
    return document_findings(organization_id=definition.organization_id, document=judged)


def document_findings(*, organization_id: UUID | None, document: Any) -> list[DefinitionFinding]:
    """Without an organization (templates) the system's own codes and tiers count."""
    tiers = reviewer_tiers(organization_id=organization_id) if organization_id else REVIEWER_TIERS
    found = validate(
        document,
        kinds=kinds(),
        halt_codes=reason_codes_active(organization_id=organization_id, scope=Scope.HALT),
        step_failure_codes=reason_codes_active(organization_id=organization_id, scope=Scope.STEP_FAILURE),
        tiers=frozenset(tiers),
    )
    return found or list(_contract_findings(document))


def _contract_findings(document: dict[str, Any]) -> Iterator[DefinitionFinding]:
    """The contract has the strictest effect of all steps. If that is `once` it promises no retry to any, and one
    that is asked for would quietly never happen."""
    definition = read_definition(document, definition_id="")
    if effect_of(definition, kind_table()) is not Effect.ONCE:
        return
    for step in definition.steps.values():
        if step.max_retries > 0:
            message = "Another step has effect once, so the contract allows no automatic retry. Set max_retries to 0."
            yield DefinitionFinding("contract_forbids_retries", f"/steps/{step.id}/max_retries", message, "0")


def as_errors(findings: list[DefinitionFinding]) -> list[FieldError]:
    return [FieldError(f.pointer, f.message, rule=f.rule, suggestion=f.suggestion) for f in findings]
