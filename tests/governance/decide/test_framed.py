"""How decisions are stored: what they share once, denials whole, and older ones as they were."""

import json
from typing import Any

import pytest
from django.db import connection

from governance.enforcement.models import EnforcementDecision, Snapshot
from governance.enforcement.services import decision_replay
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import INTAKE, intake
from tests.governance.decide.test_replay import tamper
from tests.governed import DENY, HOLD, open_contract


def stored(column: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM governance_enforcementdecision ORDER BY id")  # noqa: S608
        return [json.loads(row[0]) for row in cursor.fetchall()]


@pytest.mark.parametrize("rules", [None, HOLD], ids=["allowed", "held"])
def test_many_decisions_share_a_frame_and_read_whole(cast: Cast, caller: Any, rules: Any) -> None:
    open_contract(cast, rules=rules)
    for number in range(4):
        answer = intake(caller, key=f"key-0000000{number}", patient_context_ref=f"ctx-{number}")
        assert answer.status_code in {201, 202}
    assert stored("environment") == stored("results") == [1] * 4
    with every_tenant():
        assert Snapshot.objects.filter(kind="frame").count() == 1
        rows = list(EnforcementDecision.objects.order_by("id"))
        assert [row.request["envelope"]["patient_context_ref"] for row in rows] == [f"ctx-{n}" for n in range(4)]
        assert {row.environment["at"] for row in rows} == {row.at.isoformat(timespec="microseconds") for row in rows}
        assert all(len(row.results) == 9 for row in rows)


def test_a_denial_is_stored_whole(cast: Cast, caller: Any) -> None:
    open_contract(cast, rules=DENY)
    intake(caller)
    assert [len(results) for results in stored("results")] == [9]
    with every_tenant():
        assert EnforcementDecision.objects.get().frame_sha256 is None
        assert not Snapshot.objects.filter(kind="frame").exists()


def test_a_decision_that_was_stored_whole_still_reads_and_agrees(cast: Cast, caller: Any) -> None:
    open_contract(cast)
    intake(caller)
    with every_tenant():
        row = EnforcementDecision.objects.get()
        whole = [json.dumps(value) for value in (row.request, row.environment, row.results)]
        tamper(
            "UPDATE governance_enforcementdecision"
            " SET request = %s, environment = %s, results = %s, frame_sha256 = NULL",
            whole,
        )
        again = EnforcementDecision.objects.get()
        assert [again.request, again.environment, again.results] == [row.request, row.environment, row.results]
        assert decision_replay(row=again).agrees


@pytest.mark.tampers
def test_a_decision_in_anothers_frame_differs(cast: Cast, caller: Any) -> None:
    open_contract(cast)
    intake(caller)
    open_contract(cast, slug="other", policy_slug="other", rules=HOLD)
    assert intake(caller, key="key-00000002", url=INTAKE.replace("close-case", "other")).status_code == 202
    tamper(
        "UPDATE governance_enforcementdecision SET frame_sha256 ="
        " (SELECT frame_sha256 FROM governance_enforcementdecision WHERE verdict = 'needs_approval')"
    )
    with every_tenant():
        moved = EnforcementDecision.objects.get(verdict="allow")
        named = decision_replay(row=moved).differences
        assert {"verdict", "request_sha256", "environment_sha256", "contract"} <= set(named)


def test_deferred_columns_are_read_when_somebody_asks(cast: Cast, caller: Any) -> None:
    open_contract(cast)
    intake(caller)
    with every_tenant():
        row = EnforcementDecision.objects.defer("request", "environment", "results", "frame_sha256").get()
        assert row.request["action"]["operation"]
        assert row.environment["contract_state"] == "open"
