"""Set-up of the evidence tests: a story with a person, an execution and a cost; bundles of it; and their files."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.files.storage import storages
from django.utils import timezone

from governance.evidence.models import EvidenceBundle
from governance.evidence.services.build import evidence_build
from governance.evidence.services.request import evidence_request
from governance.evidence.states import EvidenceKind
from reasoncodes.base.tenancy import every_tenant
from sdk import holdpoint_verify as verifier
from tests.attempts.reviews.support import Clinic, do
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all
from tests.governed import open_contract

COST = {"provider": "acme", "model": "m-1", "units": 812, "amount": "0.004060", "currency": "USD"}


def released_and_done(cast: Cast) -> UUID:
    """Asked for, held, released by Rita, leased, done, with its cost."""
    review = Clinic(cast).hold()
    assert do(cast.session(cast.reviewer), review, "approve").status_code == 200
    executor, attempt_id = cast.api("attempts:execute"), review.attempt_id
    lease = executor.post(f"/api/v1/attempts/{attempt_id}/lease", {}, format="json").json()
    report = {"lease_token": lease["lease_token"], "response_metadata": {"status": 200}, "cost": COST}
    done = executor.post(f"/api/v1/attempts/{attempt_id}/complete", report, format="json")
    assert done.status_code == 200, done.content
    return UUID(str(attempt_id))


def allowed(cast: Cast) -> UUID:
    """Asked for and allowed; nothing else."""
    open_contract(cast)
    return UUID(post(cast.api("attempts:create"), body()).json()["id"])


def request(cast: Cast, subject_id: UUID, kind: EvidenceKind = EvidenceKind.ATTEMPT) -> EvidenceBundle:
    with every_tenant():
        actor = cast.actor(cast.operator, [cast.organization])
        return evidence_request(kind=kind, subject_id=subject_id, actor=actor, at=timezone.now())[0]


def build(bundle_id: UUID, *, storage: Any = None, at: datetime | None = None) -> EvidenceBundle:
    with every_tenant():
        now = timezone.now if at is None else lambda: at
        evidence_build(bundle_id=bundle_id, now=now, storage=storage or storages["evidence"])
    return fresh(bundle_id)


def fresh(bundle_id: UUID) -> EvidenceBundle:
    with every_tenant():
        return EvidenceBundle.objects.get(id=bundle_id)


def built(cast: Cast, subject_id: UUID, kind: EvidenceKind = EvidenceKind.ATTEMPT) -> EvidenceBundle:
    """Requested, collected, sealed, ready."""
    bundle = request(cast, subject_id, kind)
    build(bundle.id)
    seal_all()
    found = build(bundle.id)
    assert found.state == "ready", (found.state, found.progress, found.problem)
    return found


def stored(bundle: EvidenceBundle) -> bytes:
    with storages["evidence"].open(bundle.storage_name) as stream:
        return bytes(stream.read())


def files_of(data: bytes) -> dict[str, bytes]:
    return verifier.zip_read(data)[0]


def rows(data: bytes, name: str) -> Any:
    return verifier.read_canonical_json(files_of(data)[f"{name}.json"])
