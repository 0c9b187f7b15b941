"""Refusals of this app. Those that break a rule of the record are violations and are recorded as such."""

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from governance.states import ViolationKind
from reasoncodes.errors import DomainError, NotFound


class RuleBroken(DomainError):
    """Base of the refusals that are themselves put on record. `recorded` keeps them from being counted twice.

    `misuse_rule` is that of the contract it happened under, where one is known: how many of them suspend a service.
    """

    violation: ClassVar[ViolationKind]

    def __init__(
        self,
        detail: str = "",
        *,
        subject_type: str = "",
        subject_id: UUID | None = None,
        organization_id: UUID | None = None,
        misuse_rule: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(detail, **kwargs)
        self.misuse_rule = misuse_rule
        self.subject_type = subject_type
        self.subject_id = subject_id
        self.organization_id = organization_id
        self.recorded = False


class CrossTenant(RuleBroken, NotFound):
    """This does not exist, or it belongs to another organization."""

    violation = ViolationKind.CROSS_TENANT

    @classmethod
    def summary(cls) -> str:
        return NotFound.summary()


class RecordImmutable(RuleBroken):
    """This is part of the record, and the record is append-only.

    You cannot correct a recorded outcome in place: record a new one after it. To change a contract or policy that is no
    longer a draft, make a new version. Holdpoint has recorded that somebody tried to change this.
    """

    code = "record-immutable"
    status = 409
    title = "The record cannot be changed"
    violation = ViolationKind.RECORD_MUTATION


class NotAnOwner(RuleBroken):
    """Only a member of the group that owns this area can decide on it.

    The readiness board shows which group owns each area. If you should be in that group, ask an operator for the role.
    """

    code = "not-an-owner"
    status = 403
    title = "Not an owner of this area"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class OwnWork(RuleBroken):
    """You cannot approve what you wrote or requested yourself.

    Ask another member of the owning group or reviewer tier to decide.
    """

    code = "own-work"
    status = 403
    title = "Your own work"
    violation = ViolationKind.OWN_WORK_APPROVED


class SecondPersonNeeded(RuleBroken):
    """A second person has to do this: whoever started it cannot also finish it.

    Somebody else has to release the shutdown or the legal hold, or decide on the deletion request. Ask a second
    operator. For legal holds, a contract may also require that one of the two people is from global-compliance.
    """

    code = "second-person-needed"
    status = 403
    title = "A second person is needed"
    violation = ViolationKind.SECOND_PERSON_MISSING


class LedgerOutsideTransaction(RuntimeError):
    """A ledger entry must commit or roll back together with what it describes."""


class KeyLimitReached(DomainError):
    """This service account already has two live API keys.

    Two keys are enough to rotate without an interruption. Revoke one of them, then issue the new key.
    """

    code = "key-limit-reached"
    status = 409
    title = "Too many live keys"


class ReadinessIncomplete(DomainError):
    """This contract cannot be opened: not all ten readiness areas are approved.

    `errors` lists the missing areas and who owns them. Ask each owner to decide on the readiness board, then open the
    contract.
    """

    code = "readiness-incomplete"
    status = 409
    title = "Readiness is incomplete"


class DocumentInvalid(DomainError):
    """A policy document of the contract does not match its schema, or contradicts another document.

    `errors` lists every place that is wrong. Correct them and save again. docs/policy-documents.md describes the fields
    and their safe defaults.
    """

    code = "document-invalid"
    status = 400
    title = "Policy document not valid"


class PolicyInvalid(DomainError):
    """At least one rule of the policy is not valid.

    `errors` lists every place that is wrong. For conditions it shows the line and column, with a caret under the spot.
    Correct the rules and send them again. docs/conditions.md describes the language.
    """

    code = "policy-invalid"
    status = 400
    title = "Policy not valid"


class MetadataBoundary(DomainError):
    """The text or metadata contains something that must not enter the record.

    `errors` names the place and the rule, never the value. Remove the value and send again. Keep the content in your
    own system and send a reference to it.
    """

    code = "metadata-boundary"
    status = 422
    title = "Outside the metadata boundary"
    default_reason_code = "metadata_boundary"


class NotSealedYet(DomainError):
    """The entry is on the record, but no signed head covers it yet.

    Entries are usually sealed within seconds. Ask again after `Retry-After`. If this does not end, check `sealer` under
    `/health/ready`.
    """

    code = "not-sealed-yet"
    status = 409
    title = "Not sealed yet"
    default_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "2"}


class ErasureBlocked(DomainError):
    """This erasure is blocked by a legal hold, retention, an open quarantine case or unfinished work.

    `errors` names each obstacle with a count. A legal hold blocks erasure until a second person releases it. An open
    quarantine case blocks it until somebody resolves the case. Refuse the request with the reason that applies, or
    wait.
    """

    code = "erasure-blocked"
    status = 409
    title = "Erasure is blocked"


class ExportNotReady(DomainError):
    """The archive of this export is not built yet.

    Holdpoint builds it in the background. `state`, `done` and `total` show the progress. Ask again after `Retry-After`.
    """

    code = "export-not-ready"
    status = 409
    title = "Export is not ready"
    default_headers = {"Retry-After": "5"}


class ExportGone(DomainError):
    """The archive of this export has expired and was removed.

    Its SHA-256 stays on the ledger. Request a new export if you still need the data.
    """

    code = "export-gone"
    status = 410
    title = "Export has expired"
