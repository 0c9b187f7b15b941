"""The dry run: everything that keeps a document from being published in an organization. Stores nothing."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from governance.roles import REVIEWER_TIERS
from governance.selectors import reviewer_tiers
from governance.states import Effect
from reasoncodes.codes import Scope
from reasoncodes.errors import FieldError
from reasoncodes.selectors import reason_codes_active
from workflows.contract_terms import effect_of
from workflows.definitions.document import read_definition
from workflows.definitions.findings import Finding
from workflows.definitions.validate import validate
from workflows.kinds.registry import kinds, table
from workflows.selectors.definition import definition_get


def definition_validate(*, definition_id: UUID, document: Any = None) -> list[Finding]:
    """Of the stored document, or of one that somebody is still writing."""
    definition = definition_get(definition_id=definition_id)
    judged = definition.definition if document is None else document
    return document_findings(organization_id=definition.organization_id, document=judged)


def document_findings(*, organization_id: UUID | None, document: Any) -> list[Finding]:
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


def _contract_findings(document: dict[str, Any]) -> Iterator[Finding]:
    """The contract has the strictest effect of all steps. If that is `once` it promises no retry to any, and one
    that is asked for would quietly never happen."""
    definition = read_definition(document, definition_id="")
    if effect_of(definition, table()) is not Effect.ONCE:
        return
    for step in definition.steps.values():
        if step.max_retries > 0:
            message = "Another step has effect once, so the contract allows no automatic retry. Set max_retries to 0."
            yield Finding("contract_forbids_retries", f"/steps/{step.id}/max_retries", message, "0")


def as_errors(findings: list[Finding]) -> list[FieldError]:
    return [FieldError(f.pointer, f.message, rule=f.rule, suggestion=f.suggestion) for f in findings]
