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
    """There is no such thing, or it belongs to somebody else."""

    violation = ViolationKind.CROSS_TENANT

    @classmethod
    def summary(cls) -> str:
        return NotFound.summary()


class RecordImmutable(RuleBroken):
    """This is part of the record. The record is append-only.

    A wrong outcome is followed by a new record, never corrected in place; a contract or policy that has left its draft
    gets a new version. The attempt to change it is itself on record.
    """

    code = "record-immutable"
    status = 409
    title = "The record cannot be changed"
    violation = ViolationKind.RECORD_MUTATION


class NotAnOwner(RuleBroken):
    """Only a member of the group that owns this area may decide on it.

    The readiness board names the owning group of each area. Ask an operator for the role if you should be in it.
    """

    code = "not-an-owner"
    status = 403
    title = "Not an owner of this area"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class OwnWork(RuleBroken):
    """Nobody approves what they wrote or asked for themselves.

    Ask another member of the owning group.
    """

    code = "own-work"
    status = 403
    title = "Your own work"
    violation = ViolationKind.OWN_WORK_APPROVED


class SecondPersonNeeded(RuleBroken):
    """A shutdown is released by somebody else than whoever engaged it.

    The same goes for legal holds, and for deciding on a deletion that one asked for. Ask a second operator to look at
    it; for holds a contract may also demand that one of the two is from global-compliance.
    """

    code = "second-person-needed"
    status = 403
    title = "A second person is needed"
    violation = ViolationKind.SECOND_PERSON_MISSING


class LedgerOutsideTransaction(RuntimeError):
    """A ledger entry must commit or roll back together with what it describes."""


class KeyLimitReached(DomainError):
    """This service account already has two live API keys.

    Two are enough to rotate without an interruption. Revoke one first.
    """

    code = "key-limit-reached"
    status = 409
    title = "Too many live keys"


class ReadinessIncomplete(DomainError):
    """Not all ten readiness areas of this contract are approved, so it cannot be opened.

    `errors` lists the areas that are missing and who owns them. Each owner decides on the readiness board.
    """

    code = "readiness-incomplete"
    status = 409
    title = "Readiness is incomplete"


class DocumentInvalid(DomainError):
    """A policy document of the contract does not fit its schema or another document.

    `errors` lists every place. The fields and their safe defaults are in docs/policy-documents.md.
    """

    code = "document-invalid"
    status = 400
    title = "Policy document not valid"


class PolicyInvalid(DomainError):
    """A rule of the policy cannot be read.

    `errors` lists every place, for conditions with line, column and a caret under the spot. The language is
    described in docs/conditions.md.
    """

    code = "policy-invalid"
    status = 400
    title = "Policy not valid"


class MetadataBoundary(DomainError):
    """The text or metadata holds something that must not enter the record.

    `errors` names the place and the rule, never the value. Keep the content in your own system and send a reference.
    """

    code = "metadata-boundary"
    status = 422
    title = "Outside the metadata boundary"
    default_reason_code = "metadata_boundary"


class NotSealedYet(DomainError):
    """The entry is on the record and not yet under a signed head.

    Sealing follows the record within seconds. Ask again; if it lasts, look at `sealer` under `/health/ready`.
    """

    code = "not-sealed-yet"
    status = 409
    title = "Not sealed yet"
    default_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "2"}


class ErasureBlocked(DomainError):
    """Something stands in the way of this erasure: a legal hold, retention, an open quarantine case, unfinished work.

    `errors` names each with a count. A hold beats everything until a second person releases it; quarantine never ages
    out. Refuse the request with the reason that applies, or wait.
    """

    code = "erasure-blocked"
    status = 409
    title = "Erasure is blocked"


class ExportNotReady(DomainError):
    """The archive of this export is not there yet.

    It is built in the background; `state`, `done` and `total` say how far it is. Ask again after `Retry-After`.
    """

    code = "export-not-ready"
    status = 409
    title = "Export is not ready"
    default_headers = {"Retry-After": "5"}


class ExportGone(DomainError):
    """The archive of this export has expired and was removed.

    Its SHA-256 stays on the ledger. Ask for a new export.
    """

    code = "export-gone"
    status = 410
    title = "Export has expired"
