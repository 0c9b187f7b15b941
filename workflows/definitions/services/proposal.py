"""Publishing a definition as an act of two people: what is proposed, who cannot confirm it, and how it is done."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.authority.errors import ProposalOutdated
from governance.authority.hooks import Applied, Prepared
from governance.authority.models import AuthorityChange
from governance.authority.services.shapes import only, text_of
from governance.authorship.selectors import authors_of
from governance.authorship.states import WorkKind
from governance.boundary.services import text_check
from governance.ledger.rules.entry import canonical_sha256
from governance.people.rules.roles import ApiScope
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, ScopeMissing, WrongState
from reasoncodes.base.ids import UUID_TEXT
from workflows.definitions.errors import DefinitionInvalid
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.diff import changes_in_words, diff
from workflows.definitions.selectors import definition_active, definition_get, definition_lock
from workflows.definitions.services.contract import ContractPreview, PublishTerms, contract_preview, policy_check
from workflows.definitions.services.document import as_errors, document_findings, document_resolved
from workflows.definitions.services.publish import definition_publish
from workflows.definitions.states import DefinitionStatus

AUTHOR = "You wrote to this definition. Somebody else has to confirm it."
TERMS = ("policy_slug", "risk_tier", "review_owner")


@dataclass(frozen=True, slots=True)
class DefinitionPublish:
    """`subject`: the draft, by id. `details`: `policy_slug`, `risk_tier`, `review_owner` (each may be left out) and
    `reason`. The proposal names the content of the draft and the definition it replaces; if either changes, it is
    outdated."""

    excludes_sending = True

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        # The general entry point for proposals takes keys with another scope.
        if actor.kind is ActorKind.SERVICE and ApiScope.ORCHESTRATOR_PUBLISH not in actor.scopes:
            raise ScopeMissing
        only(details, *TERMS, "reason")
        terms = PublishTerms(**{name: text_of(details, name, longest=64, required=False) for name in TERMS})
        reason = text_of(details, "reason", longest=280, required=False)
        text_check(text=reason, pointer="/reason")
        definition = _draft(subject, organization)
        policy_check(organization=organization, terms=terms)
        preview = contract_preview(definition=definition, terms=terms)
        if preview.refusal:
            raise AlreadyExists(preview.refusal)
        active = definition_active(definition=definition)
        changes = diff(active.definition if active else {}, definition.definition)
        return Prepared(
            str(definition.id),
            {
                "definition": definition.slug,
                "version": definition.version,
                "sha256": _content(definition),
                "replaces": str(active.id) if active else None,
                "terms": asdict(terms),
                "reason": reason,
            },
            before=_shown(active),
            after=_shown(definition)
            | {"changes": changes_in_words(changes) if active else [], "contract": _contract(preview, terms)},
            # In doubt it loosens: any step, and any term of the contract, may let more pass.
            loosens=active is None
            or bool(terms.chosen())
            or preview.creates_policy
            or any(change["pointer"].startswith("/steps") for change in changes),
        )

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return dict.fromkeys(authors_of(kind=WorkKind.DEFINITION, subject_id=UUID(change.subject)), AUTHOR)

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        asked = change.details
        # Locked before it is compared: the draft must not change in between.
        definition = definition_lock(actor=actor, definition_id=UUID(change.subject))
        active = definition_active(definition=definition)
        if definition.state != DefinitionStatus.DRAFT or _content(definition) != asked["sha256"]:
            raise ProposalOutdated("The draft changed after the proposal.")
        if (str(active.id) if active else None) != asked["replaces"]:
            raise ProposalOutdated("Another definition was published or archived after the proposal.")
        published = definition_publish(
            actor=actor,
            at=at,
            definition_id=definition.id,
            terms=PublishTerms(**asked["terms"]),
            reason=asked["reason"],
        )
        ids = {"definition": str(published.definition.id), "contract": str(published.contract.id)}
        return Applied(ids, made=published)


def _draft(subject: str, organization: Organization) -> WorkflowDefinition:
    """The draft, if it can be published."""
    found = definition_get(definition_id=UUID(subject)) if UUID_TEXT.fullmatch(subject) else None
    if found is None or found.organization_id != organization.id:
        raise InvalidInput(errors=[FieldError("/subject", "is not the id of a definition of this organization")])
    if found.state != DefinitionStatus.DRAFT:
        raise WrongState(f"A definition that is {found.state} cannot be published.")
    findings = document_findings(organization_id=organization.id, document=found.definition)
    if findings:
        raise DefinitionInvalid(errors=as_errors(findings))
    return found


def _content(definition: WorkflowDefinition) -> str:
    # With the slug: it names the contract whose approvals the definition gets.
    # And with what its calls resolve to: a module whose effect changed meanwhile is not what was proposed.
    return canonical_sha256({"slug": definition.slug, "definition": document_resolved(definition)})


def _shown(definition: WorkflowDefinition | None) -> dict[str, Any]:
    if definition is None:
        return {"definition": None}
    return {"name": definition.name, "version": definition.version, "definition": definition.definition}


def _contract(preview: ContractPreview, terms: PublishTerms) -> dict[str, Any]:
    return {
        "contract": f"{preview.slug}/{preview.version}",
        "opens_at_once": not preview.missing,
        "areas_to_approve": list(preview.missing),
        "creates_policy": "workflows: every step passes" if preview.creates_policy else None,
        **terms.chosen(),
    }
