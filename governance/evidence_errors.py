"""Refusals around evidence bundles."""

from collections.abc import Mapping
from typing import ClassVar

from reasoncodes.errors import DomainError


class EvidenceNotReady(DomainError):
    """The evidence bundle is not built yet.

    Building follows the request within seconds, as soon as everything in it is sealed. `GET` the bundle's address: its
    `state` becomes `ready` or `failed`, and `progress` says what it waits for.
    """

    code = "evidence-not-ready"
    status = 409
    title = "The bundle is not ready"
    default_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "2"}


class EvidenceFailed(DomainError):
    """The evidence bundle could not be built, so there is nothing to download.

    `problem` of the bundle says why. Ask for the evidence again with `POST`: that makes a new bundle.
    """

    code = "evidence-failed"
    status = 409
    title = "The bundle could not be built"


class EvidenceErased(DomainError):
    """Something in this evidence bundle was erased by order, so the bundle was erased with it.

    Ask for the evidence again with `POST`: the new bundle holds what is still there and says what was erased. Copies
    that were handed out before are with those who asked for them; the read audit says who that was.
    """

    code = "evidence-erased"
    status = 410
    title = "The bundle was erased"


class EvidenceAltered(DomainError):
    """The stored evidence bundle is no longer what was built, so it is not handed out.

    Its SHA-256 is on the ledger, and the stored file has another one or is gone. That is on record too. Ask for the
    evidence again with `POST`: a new bundle is made from the record itself. An operator finds out what happened to the
    storage.
    """

    code = "evidence-altered"
    status = 500
    title = "The stored bundle was altered"


class EvidenceStorageUnavailable(DomainError):
    """The storage of evidence bundles does not answer.

    Nothing is lost: the bundle can be built again from the record at any time. While one is being built the storage is
    tried several times; after that the bundle is `failed`, and `POST` makes a new one. An operator looks at
    `HOLDPOINT_EVIDENCE_STORAGE`.
    """

    code = "evidence-storage-unavailable"
    status = 503
    title = "Evidence storage unavailable"
    default_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "30"}


class EvidenceInconsistent(DomainError):
    """What was collected does not verify, so no bundle was made of it.

    A row, a snapshot or a ledger entry is not what the ledger says about it. `manage.py verify_ledger` and
    `manage.py replay_decision` name the place; an operator decides what follows.
    """

    code = "evidence-inconsistent"
    status = 500
    title = "The record does not verify"
