"""Rows that somebody changed past Holdpoint, as the tables' owner with the triggers off: no bundle is built from them,
the refusal names the row, and a bundle from before is still valid."""

from uuid import UUID

import pytest
from django.db import connection

from governance.evidence.models import EvidenceBundle
from governance.evidence.states import EvidenceKind
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from sdk import holdpoint_verify as verifier
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governance.evidence.support import build, built, fresh, released_and_done, request, stored
from tests.governance.ledger.sealing import KEY, seal_all
from tests.tampering import triggers_off
from tests.workflows.run_support import in_status
from tests.workflows.running import Running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]
# What is done to which table, and the table and field that must be named.
ATTEMPT: dict[str, tuple[str, str, str, str]] = {
    "target": (
        "attempts_attempt",
        "UPDATE attempts_attempt SET target_ref = 'case-9999'",
        "attempts_attempt",
        "target_ref",
    ),
    "operation": (
        *("attempts_attempt", "UPDATE attempts_attempt SET operation = 'case.delete'"),
        *("attempts_attempt", "operation"),
    ),
    "state": (
        *("attempts_attempt", "UPDATE attempts_attempt SET state = 'preflight-denied', reason_code = 'other'"),
        *("attempts_attempt", "state"),
    ),
    "decision relinked": (
        "attempts_attempt",
        "UPDATE attempts_attempt SET decision_id = (SELECT id FROM governance_enforcementdecision d "
        "WHERE d.id <> decision_id LIMIT 1)",
        *("attempts_attempt", "decision_id"),
    ),
    "decision deleted": (
        *(
            "governance_enforcementdecision",
            "UPDATE attempts_attempt SET decision_id = "
            "(SELECT max(id::text)::uuid FROM governance_enforcementdecision); "
            "UPDATE attempts_review SET decision_id = NULL; UPDATE attempts_dispatchintent SET decision_id = NULL; "
            "DELETE FROM governance_enforcementdecision d WHERE NOT EXISTS "
            "(SELECT FROM attempts_attempt a WHERE a.decision_id = d.id)",
        ),
        *("governance_enforcementdecision", ""),
    ),
    "decision's verdict": (
        *("governance_enforcementdecision", "UPDATE governance_enforcementdecision SET verdict = 'allow'"),
        *("governance_enforcementdecision", "verdict"),
    ),
    "transition rewritten": (
        "attempts_attempttransition",
        "UPDATE attempts_attempttransition SET actor_ref = repeat('a', 64) WHERE actor_kind = 'person'",
        *("attempts_attempttransition", "actor_ref"),
    ),
    "transition deleted": (
        "attempts_attempttransition",
        "DELETE FROM attempts_attempttransition WHERE actor_kind = 'person'",
        *("attempts_attempttransition", ""),
    ),
    "receipt deleted": ("attempts_receipt", "DELETE FROM attempts_receipt", "attempts_receipt", ""),
    "receipt's answer": (
        *("attempts_receipt", "UPDATE attempts_receipt SET response_metadata = '{\"status\": 500}'"),
        *("attempts_receipt", ""),
    ),
    "receipt's cost": (
        "attempts_receipt",
        "UPDATE attempts_receipt SET cost = jsonb_set(cost, '{amount}', '\"0.01\"')",
        *("attempts_receipt", ""),
    ),
    "intent's executor": (
        *("attempts_dispatchintent", "UPDATE attempts_dispatchintent SET executor_ref = 'service:somebody'"),
        *("attempts_dispatchintent", "executor_ref"),
    ),
    "vote's person": (
        *("attempts_reviewvote", "UPDATE attempts_reviewvote SET voter_ref = repeat('b', 64)"),
        *("attempts_reviewvote", "voter_ref"),
    ),
    "review's people": (
        *("attempts_review", 'UPDATE attempts_review SET excluded = \'[{"ref": "x", "reason": "y"}]\''),
        *("attempts_review", ""),
    ),
    "payload without an order": (
        *("governance_ledgerentry", "UPDATE governance_ledgerentry SET payload = NULL WHERE action = 'review.voted'"),
        *("governance_ledgerentry", "payload"),
    ),
    "entry's payload": (
        "governance_ledgerentry",
        "UPDATE governance_ledgerentry SET payload = jsonb_set(payload, '{verdict}', '\"reject\"') "
        "WHERE action = 'review.voted'",
        *("governance_ledgerentry", "payload"),
    ),
}
RUN: dict[str, tuple[str, str, str, str]] = {
    "step outcome": (
        *(
            "workflows_workflowstep",
            "UPDATE workflows_workflowstep SET outcome = 'on_fail' WHERE step_id = 'image_check'",
        ),
        *("workflows_workflowstep", "outcome"),
    ),
    "step's output": (
        "workflows_workflowstep",
        "UPDATE workflows_workflowstep SET output = '{\"confidence\": 1}' WHERE step_id = 'ai_review'",
        *("workflows_workflowstep", ""),
    ),
    "event payload": (
        "workflows_workflowevent",
        "UPDATE workflows_workflowevent SET envelope = jsonb_set(envelope, '{payload}', '{}') WHERE number = 3",
        *("workflows_workflowevent", ""),
    ),
    "event deleted": (
        *("workflows_workflowevent", "DELETE FROM workflows_workflowevent WHERE number = 2"),
        *("workflows_workflowevent", ""),
    ),
    "run's state": (
        *("workflows_workflowinstance", "UPDATE workflows_workflowinstance SET state = 'cancelled'"),
        *("workflows_workflowinstance", "status"),
    ),
}


def forge(table: str, statement: str) -> None:
    """As the owner of the tables, with all triggers off that refuse, bind or count."""
    tables = {table, "attempts_attempt", "attempts_review", "attempts_dispatchintent"}
    with triggers_off(*tables), connection.cursor() as cursor:
        cursor.execute(statement)
        assert cursor.rowcount >= 1


def refused(cast: Cast, subject: UUID, kind: EvidenceKind, case: tuple[str, str, str, str]) -> EvidenceBundle:
    before = built(cast, subject, kind)
    table, statement, named, field = case
    forge(table, statement)
    with every_tenant():
        EvidenceBundle.objects.filter(id=before.id).update(altered_at=before.built_at)  # so that a new one is built
    bundle = request(cast, subject, kind)
    found = build(bundle.id)
    assert (found.state, found.problem) == ("refused", "evidence-refused"), (found.state, found.progress)
    assert found.draft is None
    places = {(one["table"], one["field"]) for one in found.differences}
    assert (named, field) in places, found.differences
    assert all(one["id"] for one in found.differences), found.differences
    assert verifier.verify(stored(before), public_key=KEY.verifier).result == "authentic"
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=bundle.id, action="evidence.refused")
    assert {"table", "id", "field"} == set(entry.payload["differences"][0])
    seal_all()
    assert build(bundle.id).state == "refused"
    return fresh(bundle.id)


@pytest.mark.parametrize("case", ATTEMPT.values(), ids=ATTEMPT)
def test_a_bundle_of_an_attempt_is_not_built_from_a_forged_row(cast: Cast, case: tuple[str, str, str, str]) -> None:
    attempt_id = released_and_done(cast)
    if "decision_id" in case[1]:
        answer = post(cast.api("attempts:create"), body(), key="key-00000002")
        assert answer.status_code == 202, answer.content
    refused(cast, attempt_id, EvidenceKind.ATTEMPT, case)


@pytest.mark.parametrize("case", RUN.values(), ids=RUN)
def test_a_bundle_of_a_run_is_not_built_from_a_forged_row(cast: Cast, case: tuple[str, str, str, str]) -> None:
    refused(cast, in_status(Running(cast), "completed").id, EvidenceKind.INSTANCE, case)


def test_the_doors_say_what_differs_without_the_values(cast: Cast) -> None:
    bundle = refused(cast, released_and_done(cast), EvidenceKind.ATTEMPT, ATTEMPT["target"])
    reader = cast.api("ledger:read")
    shown = reader.get(f"/api/v1/evidence/{bundle.id}").json()
    named = next(one for one in shown["differences"] if one["field"] == "target_ref")
    assert (shown["state"], named["table"], named["id"]) == ("refused", "attempts_attempt", str(bundle.subject_id))
    assert named["ledger"].startswith("sha256 ")
    assert named["ledger"] != named["row"]
    answer = reader.get(f"/api/v1/evidence/{bundle.id}/download")
    assert (answer.status_code, answer.json()["type"].rsplit("/")[-1]) == (409, "evidence-refused")
    page = cast.session(cast.auditor).get(f"/admin/governance/evidencebundle/{bundle.id}/change/").content.decode()
    assert "the record differs from the ledger" in page
    assert "target_ref" in page
    assert "case-9999" not in page + answer.content.decode()


def test_when_the_row_is_restored_a_new_bundle_is_built(cast: Cast) -> None:
    attempt_id = released_and_done(cast)
    refused(cast, attempt_id, EvidenceKind.ATTEMPT, ATTEMPT["target"])
    forge("attempts_attempt", "UPDATE attempts_attempt SET target_ref = 'case-0001'")
    assert built(cast, attempt_id).state == "ready"
