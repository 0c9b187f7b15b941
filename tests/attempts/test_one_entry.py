"""One ledger entry per transaction and subject: what intake and a lease write, what readers show, what is named."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from attempts.execution.services.lease import Selection, attempt_lease
from attempts.lifecycle.models import Attempt
from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_entry_build
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governance.ledger.record import tampered, verify
from tests.governance.ledger.sealing import seal_all
from tests.governed import DENY, HOLD, open_contract

RECEIVED = ["attempt.received", "attempt.deduplicated"]
DECIDED = {"allow": "attempt.approved", "hold": "attempt.held", "deny": "attempt.denied"}
RULES: dict[str, Any] = {"allow": None, "hold": HOLD, "deny": DENY}


@pytest.fixture
def caller(cast: Cast) -> Any:
    return cast.api("attempts:create", "governance:read", "ledger:read")


def taken_in(cast: Cast, caller: Any, rules: Any = None) -> UUID:
    open_contract(cast, rules=rules)
    said = post(caller, body()).json()
    return UUID(said.get("id") or said["attempt_id"])


def entries(subject_id: UUID) -> list[LedgerEntry]:
    with every_tenant():
        return list(LedgerEntry.objects.filter(subject_id=subject_id).order_by("id"))


@pytest.mark.parametrize("verdict", DECIDED)
def test_an_intake_writes_one_entry_that_tells_all_its_moves(cast: Cast, caller: Any, verdict: str) -> None:
    attempt_id = taken_in(cast, caller, RULES[verdict])
    (entry,) = entries(attempt_id)
    with every_tenant():
        attempt = Attempt.objects.select_related("decision").get(id=attempt_id)
    assert (entry.format, entry.action, entry.reason_code) == (2, DECIDED[verdict], attempt.reason_code)
    received, deduplicated, decided = entry.moves
    assert [received.action, deduplicated.action, decided.action] == [*RECEIVED, DECIDED[verdict]]
    assert received.facts == {"digest": attempt.action_digest}
    assert deduplicated.facts == {}
    assert decided.facts == {
        "decision": str(attempt.decision_id),
        "rule": attempt.decision.rule_id,
        "request_sha256": attempt.decision.request_sha256,
        "environment_sha256": attempt.decision.environment_sha256,
    }


def test_the_timeline_shows_every_move_as_a_line(cast: Cast, caller: Any) -> None:
    attempt_id = taken_in(cast, caller, HOLD)
    lines = caller.get(f"/api/v1/attempts/{attempt_id}/timeline").json()
    shown = [(line["action"], line["reason_code"]) for line in lines]
    assert shown == [(RECEIVED[0], ""), (RECEIVED[1], ""), ("attempt.held", "review_required")]
    assert len({line["entry_id"] for line in lines}) == 1


def test_an_entry_is_found_by_each_of_its_moves_and_shows_them_all(cast: Cast, caller: Any) -> None:
    attempt_id = taken_in(cast, caller)
    for action in [*RECEIVED, "attempt.approved"]:
        found = caller.get("/api/v1/ledger/entries", {"action": action}).json()["results"]
        assert [row["subject_id"] for row in found] == [str(attempt_id)], action
        assert [move["action"] for move in found[0]["moves"]] == [*RECEIVED, "attempt.approved"]
        assert found[0]["moves"][0]["wording"] == "asked for an action"
        assert set(found[0]["moves"][2]["facts"]) == {"decision", "rule", "request_sha256", "environment_sha256"}
    assert caller.get("/api/v1/ledger/entries", {"action": "attempt.leased"}).json()["results"] == []


def test_a_lease_writes_one_entry_with_its_intent(cast: Cast, caller: Any) -> None:
    attempt_id = taken_in(cast, caller)
    with every_tenant():
        leased = attempt_lease(
            actor=SYSTEM,
            at=timezone.now(),
            owner="w",
            selection=Selection("TRUE").only("id = %(attempt)s", attempt=attempt_id),
        ).granted
    _, entry = entries(attempt_id)
    decided, first, second = entry.moves
    assert decided.action == "attempt.decided"
    assert (decided.facts or {})["act"] == "lease"
    assert (first.action, first.facts) == ("attempt.leased", {"fence": 1, "owner": "w"})
    assert second.action == "attempt.dispatched"
    assert second.facts is not None
    assert (second.facts["intent"], second.facts["fence"]) == (str(leased[0].intent.id), 1)


def test_the_reason_code_of_a_denial_is_found_as_before(cast: Cast, caller: Any) -> None:
    attempt_id = taken_in(cast, caller, DENY)
    found = caller.get("/api/v1/ledger/entries", {"reason_code": "policy_denied"}).json()["results"]
    assert [row["subject_id"] for row in found] == [str(attempt_id)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.tampers
@pytest.mark.parametrize(
    "change",
    [
        """earlier = '["attempt.received"]'""",
        """earlier = '["attempt.deduplicated", "attempt.received"]'""",
        """earlier = '["attempt.received", "attempt.cancelled"]'""",
        "earlier = NULL",
        "earlier = NULL, format = 1",
        "format = 3",
        "action = 'attempt.held'",
    ],
)
def test_a_change_of_any_move_is_named(change: str) -> None:
    cast = Cast()
    attempt_id = taken_in(cast, cast.api("attempts:create"))
    seal_all()
    assert verify()["valid"]
    tampered((f"UPDATE governance_ledgerentry SET {change} WHERE subject_id = %s", [attempt_id]))  # noqa: S608
    (entry,) = entries(attempt_id)
    assert any(f"entry {entry.id} was changed" in fault for fault in verify()["wrong"])


@pytest.mark.django_db(transaction=True)
@pytest.mark.tampers
def test_entries_of_the_first_format_still_verify_and_cannot_get_moves() -> None:
    with every_tenant():
        entry_id = _first_format()
    seal_all()
    assert verify()["valid"]
    change = "UPDATE governance_ledgerentry SET earlier = %s::jsonb WHERE id = %s"
    moves = (change, ['["attempt.received"]', entry_id])
    with pytest.raises(DatabaseError, match="ledger_moves_are_hashed"):
        tampered(moves)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE governance_ledgerentry DROP CONSTRAINT ledger_moves_are_hashed")
    try:
        tampered(moves)
        assert any(f"entry {entry_id} was changed" in fault for fault in verify()["wrong"])
    finally:
        tampered((change, [None, entry_id]))
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE governance_ledgerentry ADD CONSTRAINT ledger_moves_are_hashed"
                " CHECK (earlier IS NULL OR format > 1)"
            )


def _first_format() -> UUID:
    """An entry as it was written before there were moves."""
    entry = ledger_entry_build(
        action="attempt.approved",
        organization_id=None,
        subject_type="attempt",
        subject_id=UUID(int=5),
        actor=SYSTEM,
        at=timezone.now() - timedelta(hours=1),
        payload={"decision": "d"},
    )
    entry.format = 1
    LedgerEntry.before_insert([entry])
    with transaction.atomic():
        entry.save()
    return entry.id
