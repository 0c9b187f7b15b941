"""Recorded decisions re-evaluate to the same; an altered row, a missing snapshot and an unknown id are told apart."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command, execute_from_command_line
from django.db import connection

from governance.enforcement.models import EnforcementDecision, snapshot_load
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import intake
from tests.governed import ALLOW, DENY, HOLD, open_contract
from tests.processes import ended, start
from tests.replay_plugin import replay_decisions

NOBODY = "01900000-0000-7000-8000-000000000000"


@pytest.fixture
def decision(cast: Cast, caller: Any) -> str:
    open_contract(cast)
    return str(intake(caller).json()["decision_id"])


def replay(*arguments: str) -> str:
    snapshot_load.cache_clear()
    out = io.StringIO()
    call_command("replay_decision", *arguments, stdout=out, stderr=out, no_color=True)
    return out.getvalue()


def refused(*arguments: str) -> tuple[int, str, str]:
    """Exit code, message and what was printed before."""
    snapshot_load.cache_clear()
    out = io.StringIO()
    with pytest.raises(CommandError) as refusal:
        call_command("replay_decision", *arguments, stdout=out, no_color=True)
    return refusal.value.returncode, str(refusal.value), out.getvalue()


def tamper(statement: str, parameters: list[Any] | None = None) -> None:
    """As somebody who owns the tables could; nobody else can lift the trigger."""
    tables = ("governance_enforcementdecision", "governance_snapshot")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER append_only_rows")
        cursor.execute(statement, parameters)
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only_rows")


def test_one_and_all_agree(cast: Cast, caller: Any, decision: str) -> None:
    assert replay(decision) == "1 decisions re-evaluated, 0 differ.\n"
    assert intake(caller, key="key-00000002", metadata={"note": "john.doe@example.com"}).status_code == 422
    assert intake(caller, key="key-00000003", runtime_mode="active").status_code == 201
    assert replay("--all") == "3 decisions re-evaluated, 0 differ.\n"


@pytest.mark.parametrize("rules", [ALLOW, HOLD, DENY], ids=["allowed", "held", "denied"])
def test_every_verdict_agrees(cast: Cast, caller: Any, rules: Any) -> None:
    open_contract(cast, rules=rules)
    intake(caller)
    assert replay("--all") == "1 decisions re-evaluated, 0 differ.\n"


@pytest.mark.tampers
@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ("verdict = 'deny', reason_code = 'policy_denied'", "verdict, reason_code"),
        ("reason_code = 'policy_denied'", "reason_code"),
        ("rule_id = 'other'", "rule_id"),
        ("results = '[]'", "results"),
        ("approval = '{}'", "approval"),
        ("policy_version = 7", "policy_version"),
        ("at = at + interval '1 second'", "environment_sha256"),
        ("request = jsonb_set(request, '{5}', '\"case-9999\"')", "request_sha256"),
        ("request = request - 5", "request_sha256, results"),
        ('environment = \'{"deployment_region": "EU"}\'', "results, environment_sha256"),
        ("frame_sha256 = NULL", "results, request_sha256, environment_sha256"),
        ("request_sha256 = repeat('0', 64)", "request_sha256"),
    ],
)
def test_an_altered_row_differs_in_what_was_altered(cast: Cast, decision: str, change: str, differs: str) -> None:
    tamper(f"UPDATE governance_enforcementdecision SET {change} WHERE id = %s", [decision])  # noqa: S608
    for arguments in ([decision], ["--all"]):
        code, message, printed = refused(*arguments)
        assert (code, message) == (1, "The record and the rules do not agree.")
        assert f"{decision} differs in: " in printed
        named = set(printed.split("differs in: ")[1].splitlines()[0].split(", "))
        assert set(differs.split(", ")) <= named
        assert printed.endswith("1 decisions re-evaluated, 1 differ.\n")


@pytest.mark.tampers
@pytest.mark.parametrize("environment", ["{}", "[]", "null", '{"organization": 3}'])
def test_an_environment_that_was_emptied_differs_and_does_not_break_the_run(
    cast: Cast, decision: str, environment: str
) -> None:
    tamper("UPDATE governance_enforcementdecision SET environment = %s::jsonb", [environment])
    code, _, printed = refused("--all")
    assert (code, "environment_sha256" in printed) == (1, True)


@pytest.mark.tampers
@pytest.mark.parametrize("kind", ["contract", "policy", "region", "frame"])
@pytest.mark.parametrize("how", ["missing", "altered"])
def test_a_snapshot_that_is_gone_or_altered_is_named(cast: Cast, decision: str, kind: str, how: str) -> None:
    with every_tenant():
        row = EnforcementDecision.objects.get()
        digest = bytes(row.frame_sha256).hex() if kind == "frame" else row.environment[f"{kind}_sha256"]
    if how == "missing":
        tamper("DELETE FROM governance_snapshot WHERE sha256 = %s", [digest])
    else:
        tamper("""UPDATE governance_snapshot SET document = document || '{"x": 1}' WHERE sha256 = %s""", [digest])
    code, _, printed = refused(decision)
    assert (code, f"snapshot {digest} is missing or altered" in printed) == (1, True)


def test_an_unknown_or_malformed_id_and_no_id_are_refused(cast: Cast, decision: str) -> None:
    assert refused(NOBODY)[:2] == (1, "There is no such decision.")
    assert refused("not-an-id")[:2] == (1, "That is not a decision's id.")
    assert refused()[:2] == (1, "Name one decision, or --all.")
    assert refused(decision, "--all")[:2] == (1, "Name one decision, or --all.")


@pytest.mark.tampers
@pytest.mark.django_db(transaction=True)
def test_a_process_of_its_own_ends_with_the_exit_code(transactional_db: None, cast: Cast, decision: str) -> None:
    def run(*arguments: str) -> int:
        return ended(start(execute_from_command_line, ["manage.py", *arguments]))

    assert run("replay_decision", "--all") == 0
    assert run("replay_decision", NOBODY) == 1
    tamper("UPDATE governance_enforcementdecision SET rule_id = 'other'")
    assert run("replay_decision", "--all") == 1


@pytest.mark.tampers
def test_the_check_at_the_end_of_each_test_finds_an_altered_decision(cast: Cast, decision: str) -> None:
    assert replay_decisions() == []
    tamper("UPDATE governance_enforcementdecision SET verdict = 'deny', reason_code = 'policy_denied'")
    assert replay_decisions() == [f"decision {decision}: verdict, reason_code"]


def test_a_simulation_counts_what_it_cannot_read(cast: Cast, operator: Any, decision: str) -> None:
    body = {"slug": "standard", "title": "Standard", "rules": DENY}
    draft = operator.post("/api/v1/policies", body).json()["id"]
    answer = operator.post(f"/api/v1/policies/{draft}/simulate", {"last": 10}).json()
    assert (answer["decided"], answer["changed"], answer["unreadable"]) == (1, 1, 0)
    with every_tenant():
        digest = EnforcementDecision.objects.get().environment["contract_sha256"]
        document = json.dumps(snapshot_load(digest))
    tamper("DELETE FROM governance_snapshot WHERE sha256 = %s", [digest])
    snapshot_load.cache_clear()
    answer = operator.post(f"/api/v1/policies/{draft}/simulate", {"last": 10}).json()
    assert (answer["decided"], answer["changed"], answer["unreadable"]) == (1, 0, 1)
    tamper("INSERT INTO governance_snapshot VALUES (%s, 'contract', %s, now())", [digest, document])
