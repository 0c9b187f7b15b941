"""What is stored of a document: the check that even a draft must pass, and the columns that repeat parts of it."""

from collections.abc import Mapping
from typing import Any

from governance.canonical import canonical_sha256
from governance.errors import MetadataBoundary
from reasoncodes.errors import FieldError, InvalidInput
from workflows.definitions.document import DEFAULT_WORKFLOW_TIMEOUT
from workflows.definitions.schema import MAX_NAME, MAX_WORKFLOW_SECONDS
from workflows.definitions.validate import draft_findings
from workflows.kinds.registry import kinds
from workflows.models import WorkflowDefinition
from workflows.states import Mode

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


def document_sha256(document: Mapping[str, Any]) -> str:
    """The address under which publishing stores it; revisions name it from the first draft on."""
    return canonical_sha256(snapshot_document(document))
