"""Words that these tests share: what a refusal was, what is on record, and an intake body."""

from typing import Any

from governance.ledger.models import LedgerEntry
from governance.tenancy.models import Organization
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant

INTAKE = "/api/v1/execution/close-case/1/attempts"
RATIONALE = {"rationale": "Looked at it", "evidence_ref": "doc-4711"}


def problem(answer: Any) -> tuple[int, str]:
    """Status and problem type of a refusal."""
    assert answer["Content-Type"] == "application/problem+json", (answer.status_code, answer.content)
    return answer.status_code, answer.json()["type"].rsplit("/", 1)[1]


def actions(subject_id: Any) -> list[str]:
    """What the ledger says about a subject, oldest first."""
    with every_tenant():
        rows = LedgerEntry.objects.filter(subject_id=subject_id).order_by("id")
        return [move.action for row in rows for move in row.moves]


def violations(organization: Organization | None = None) -> list[str]:
    """Kinds of the violations on record, oldest first; each has its ledger entry."""
    with every_tenant():
        rows = GovernanceViolation.objects.order_by("id")
        entries = LedgerEntry.objects.filter(action="violation.recorded")
        assert entries.count() == rows.count()
        if organization is not None:
            rows = rows.filter(organization=organization)
        return list(rows.values_list("kind", flat=True))


def intake(client: Any, *, key: str = "key-00000001", url: str = INTAKE, **changes: Any) -> Any:
    """Ask for an action; a different patient context each time unless told otherwise, so that no cap is hit."""
    action = {
        "connector": "external",
        "operation": "case.close",
        "target_ref": "case-0001",
        "risk_tier": "low",
        "payload_ref": "payload-0001",
        "payload_sha256": "ab" * 32,
        "fields": ["status"],
    } | changes.pop("action", {})
    body = {"patient_context_ref": f"ctx-{key}", "runtime_mode": "shadow", "action": action, "metadata": {}} | changes
    return client.post(url, body, format="json", HTTP_IDEMPOTENCY_KEY=key)
