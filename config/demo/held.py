"""A few different held requests, so that somebody who opens /review/ first has something to decide."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.conf import settings

from attempts.intake.services.door import Intake, intake_knock, intake_pass
from attempts.intake.services.intake import attempt_create
from attempts.reviews.models import Review
from attempts.reviews.states import ReviewStatus
from governance.tenancy.models import Organization
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.base.trace import trace_or_new

PREFIX = "demo-held-"
# Contract, operation, target, risk tier, fields written.
HELD: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    ("hold", "case.update", "case-1041", "low", ("status",)),
    ("hold", "case.update", "case-1042", "low", ("status", "assignee")),
    ("hold", "letter.send", "letter-2207", "medium", ("recipient", "template")),
    ("hold", "prescription.renew", "rx-0318", "high", ("dose", "valid_until")),
    ("two_person", "record.merge", "record-0077", "high", ("identifier",)),
)


def held_ensure(
    *, organization: Organization, key: str, contracts: Mapping[str, Mapping[str, Any]], base_url: str, at: datetime
) -> None:
    """Does nothing while a request of an earlier run still waits."""
    with every_tenant():
        open_ones = Review.objects.filter(organization=organization, status=ReviewStatus.REQUESTED, expires_at__gt=at)
        if open_ones.filter(attempt__idempotency_key__startswith=PREFIX).exists():
            return
    for contract, operation, target, risk, fields in HELD:
        action = {"operation": operation, "target_ref": target, "risk_tier": risk, "fields": list(fields)}
        action |= {"payload_ref": f"payload-{target}", "payload_sha256": "0" * 64}
        body = {"patient_context_ref": f"ctx-{target}", "action": action, "metadata": {"source": "demo"}}
        _ask(contracts[contract], key, body, base_url=base_url, at=at)


def _ask(contract: Mapping[str, Any], secret: str, body: dict[str, Any], *, base_url: str, at: datetime) -> None:
    slug, version, key = str(contract["slug"]), str(contract["version"]), f"{PREFIX}{uuid4()}"
    try:
        arrival = intake_knock(secret=secret, workflow_slug=slug, contract_version=version, key=key, at=at)
        intake = Intake(
            credential=arrival.credential,
            facts=intake_pass(credential=arrival.credential, facts=arrival.facts),
            route=f"POST {slug}/{version}",
            key=key,
            body=body,
            trace=trace_or_new(),
            at=at,
            deployment_region=settings.DEPLOYMENT_REGION,
            base_url=base_url,
            headers=frozenset({"idempotency-key", "x-request-id"}),
            known=arrival.also,
        )
        attempt_create(intake=intake)
    # The demo works without them: throttles may be unavailable, or somebody who tries things may have closed the
    # contract.
    except DomainError:
        return
