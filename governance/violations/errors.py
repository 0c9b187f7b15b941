"""Refusals that are recorded as violations, because they break a rule of the record."""

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from governance.violations.states import ViolationKind
from reasoncodes.base.errors import DomainError, NotFound


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
