"""Set-up of the execution tests: contracts that call the counting target, attempts under them, time that passes."""

from typing import Any
from uuid import UUID

from django.db import connection

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.slots import slots_release
from governance.contracts.models import Contract
from governance.contracts.rules.documents import default_documents
from governance.ledger.models import LedgerEntry
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governed import open_contract

ROUTE = "clinic/close-case"
RETRIES = {"automatic_retries": "when_safe", "max_attempts": 4}


def documents(**changes: dict[str, Any]) -> dict[str, Any]:
    """The safe defaults without small caps."""
    found = default_documents()
    found["concurrency_and_locks"]["limits"] |= {"per_context": None, "per_workflow": None, "per_tenant": None}
    for limit in found["throttles_and_misuse"]["limits"]:
        limit["limit"] = 100_000
    found["throttles_and_misuse"]["misuse"] |= {"strikes": 100, "window_seconds": 60}
    found["failure_quarantine"]["incident_required"] = False
    for area, change in changes.items():
        found[area] |= change
    return found


def contract(cast: Cast, *, adapter: str = "http", effect: str = "once", **kwargs: Any) -> Contract:
    changes = kwargs.pop("changes", {})
    if effect != "once":
        changes = {"retry_and_replay": RETRIES} | changes
    return open_contract(cast, adapter=adapter, effect=effect, documents=documents(**changes), **kwargs)


def ask(client: Any, number: int = 1, *, slug: str = "close-case", **changes: Any) -> Any:
    """One request for an action; `number` makes key, context and target."""
    action = {
        "connector": changes.pop("connector", "http"),
        "operation": "case.close",
        "target_ref": f"case-{number:04}",
        "risk_tier": "low",
        "payload_ref": f"payload-{number:04}",
        "payload_sha256": "ab" * 32,
        "fields": ["status"],
    }
    body = {"patient_context_ref": f"ctx-{number:04}", "runtime_mode": "active", "action": action} | changes
    return client.post(
        f"/api/v1/execution/{slug}/1/attempts", body, format="json", HTTP_IDEMPOTENCY_KEY=f"key-{number:08}"
    )


def asked(client: Any, number: int = 1, **changes: Any) -> UUID:
    answer = ask(client, number, **changes)
    assert answer.status_code == 201, answer.content
    return UUID(answer.json()["id"])


def attempt(attempt_id: UUID) -> Attempt:
    with every_tenant():
        return Attempt.objects.get(id=attempt_id)


def change(attempt_id: UUID, assignment: str) -> None:
    """What only time or another process changes."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE attempts_attempt SET {assignment} WHERE id = %s", [attempt_id])  # noqa: S608


def lease_runs_out(attempt_id: UUID) -> None:
    change(attempt_id, "lease_expires_at = clock_timestamp() - interval '1 second'")


def retry_becomes_due(attempt_id: UUID) -> None:
    change(attempt_id, "next_eligible_at = clock_timestamp() - interval '1 second'")


def actions_of(attempt_id: UUID) -> list[str]:
    with every_tenant():
        rows = LedgerEntry.objects.filter(subject_id=attempt_id).order_by("id")
        return [move.action for row in rows for move in row.moves]


def capacity(organization: Organization, **fields: int) -> None:
    with every_tenant():
        Organization.objects.filter(id=organization.id).update(**fields)


def other_attempts(cast: Cast, ids: list[UUID]) -> list[UUID]:
    """The same attempts as if the other organization had asked."""
    other: Organization = cast.other
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE attempts_attempt DISABLE TRIGGER legal_moves")
        cursor.execute("UPDATE attempts_attempt SET organization_id = %s WHERE id = ANY(%s)", [other.id, ids])
        cursor.execute("ALTER TABLE attempts_attempt ENABLE ALWAYS TRIGGER legal_moves")
    return ids


def retry_of(first: UUID, *, like: UUID) -> UUID:
    """A retry of `first` as its quarantine case makes it; everything else as in `like`, which it replaces."""
    with every_tenant():
        row = Attempt.objects.get(id=like)
        row.id, row.retry_of_id = uuid7(), first
        row._state.adding = True
        row.save(force_insert=True)
        slots_release(attempt_id=like)
    change(like, "next_eligible_at = NULL")
    return row.id
