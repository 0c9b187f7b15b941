"""Refusals around evidence bundles."""

from collections.abc import Mapping
from typing import ClassVar

from reasoncodes.base.errors import DomainError


class EvidenceNotReady(DomainError):
    """The evidence bundle is not built yet.

    Holdpoint builds it within seconds, as soon as everything in it is sealed. `GET` the bundle's address until its
    `state` is `ready` or `failed`; `progress` says what it waits for.
    """

    code = "evidence-not-ready"
    status = 409
    title = "The bundle is not ready"
    default_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "2"}


class EvidenceFailed(DomainError):
    """The evidence bundle could not be built, so there is nothing to download.

    The bundle's `problem` says why. Send `POST` again to build a new bundle.
    """

    code = "evidence-failed"
    status = 409
    title = "The bundle could not be built"


class EvidenceErased(DomainError):
    """Something in this evidence bundle was erased by order, so the bundle was erased too.

    Send `POST` again to build a new bundle. It contains what is still there and says what was erased. People who
    downloaded the old bundle still have their copies; the read audit shows who they are.
    """

    code = "evidence-erased"
    status = 410
    title = "The bundle was erased"


class EvidenceAltered(DomainError):
    """The stored evidence bundle was changed or removed after it was built, so it cannot be downloaded.

    Its SHA-256 is on the ledger and does not match the stored file. Holdpoint has recorded this too. Send `POST` again
    to build a new bundle from the record. Tell an operator, who has to find out what happened to the storage.
    """

    code = "evidence-altered"
    status = 500
    title = "The stored bundle was altered"


class EvidenceStorageUnavailable(DomainError):
    """The storage of evidence bundles does not answer.

    Nothing is lost: Holdpoint can rebuild the bundle from the record at any time. While it builds a bundle it tries the
    storage several times; after that the bundle is `failed`, and `POST` makes a new one. An operator should check
    `HOLDPOINT_EVIDENCE_STORAGE`.
    """

    code = "evidence-storage-unavailable"
    status = 503
    title = "Evidence storage unavailable"
    default_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "30"}


class EvidenceRefused(DomainError):
    """A row in the database differs from what the ledger says about it, so no evidence bundle was built.

    `differences` names the table, the id and the field, what the ledger says and what the row says. The refusal is on
    the ledger. Somebody changed the row past Holdpoint: tell an operator. `manage.py verify_ledger` shows whether the
    ledger itself is whole. Bundles that were built before the change are still valid. After the row was restored, send
    `POST` again.
    """

    code = "evidence-refused"
    status = 409
    title = "The record differs from the ledger"


class EvidenceInconsistent(DomainError):
    """The collected evidence does not verify, so no bundle was built.

    A row, a snapshot or a ledger entry does not match what the ledger says about it. Tell an operator. `manage.py
    verify_ledger` and `manage.py replay_decision` show the place.
    """

    code = "evidence-inconsistent"
    status = 500
    title = "The record does not verify"
