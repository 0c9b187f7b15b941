"""What somebody with the application's credential could write past the program, and the trigger that refuses each."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
from django.db import connection, transaction

from governance.ledger.services import person_commitment
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.attempts.test_quarantine import quarantined
from tests.cast import Cast
from tests.factories import PersonFactory, ServiceAccountFactory
from tests.governance.admin.test_shutdown_pages import engage
from tests.governance.authority.test_changes import propose
from tests.governance.retention.support import Clinic
from tests.governance.retention.test_deletion import request
from tests.governed import HOLD
from tests.tampering import WORDS
from tests.workflows.modules.support import registered
from tests.workflows.running import Running
from workflows.runs.models import WorkflowStep

UNEXPLAINED, UNCHANGED, OTHER_TIME, NOT_THERE = "HP004", "HP001", "HP005", "23503"
KINDS = {
    *("explained_moves", "fenced_moves", "fixed_columns", "fixed_times", "rows_stay", "door_only"),
    *("commits", "moment_in_time", "fixed_id", "attempt_id_is_there", "decision_id_is_there", "caller_id_is_there"),
}
MOVE_TRIGGERS = """
SELECT t.tgname, c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE t.tgname = ANY(%s) AND c.relnamespace = 'public'::regnamespace
"""
ENTRY = """
INSERT INTO governance_ledgerentry (id, action, subject_type, subject_id, actor_kind, actor_ref, reason_code,
    request_id, trace_id, payload, nonce, payload_sha256, sha256, at)
SELECT gen_random_uuid(), action, subject_type, %(subject)s::uuid, 'person', actor_ref, reason_code, request_id,
    trace_id, payload, nonce, payload_sha256, sha256, clock_timestamp() - make_interval(days => %(days)s)
FROM governance_ledgerentry LIMIT 1
"""
OLD_ENTRY = ENTRY.replace("%(days)s", "400")
FOREIGN_ENTRY = ENTRY.replace("sha256, at)", "sha256, at, txid)").replace(" - make_interval(days => %(days)s)", ", 1")


@dataclass(frozen=True)
class Forgery:
    trigger: str
    code: str
    statements: tuple[str, ...]


def _update(table: str, trigger: str, code: str, change: str, row: str) -> Forgery:
    return Forgery(f"{trigger} on {table}", code, (f"UPDATE {table} SET {change} WHERE {row}",))  # noqa: S608


def _moved(table: str, change: str, row: str) -> Forgery:
    return _update(table, "explained_moves", UNEXPLAINED, change, row)


def _fixed(table: str, change: str, row: str) -> Forgery:
    return _update(table, "fixed_columns", UNCHANGED, change, row)


def _gone(table: str, row: str, *before: str, trigger: str = "rows_stay") -> Forgery:
    return Forgery(f"{trigger} on {table}", UNCHANGED, (*before, f"DELETE FROM {table} WHERE {row}"))  # noqa: S608


def _names_nothing(table: str, column: str, row: str, **more: str) -> Forgery:
    """A copy of a row that names an id which no row has."""
    new = {"id": "gen_random_uuid()", column: "gen_random_uuid()"} | more
    changes = ", ".join(f"'{name}', {value}" for name, value in new.items())
    copy = f"SELECT jsonb_populate_record(o, jsonb_build_object({changes})) AS o FROM {table} o WHERE {row} LIMIT 1"  # noqa: S608
    trigger = f"{column}_is_there on {table}"
    return Forgery(trigger, NOT_THERE, (f"INSERT INTO {table} SELECT (o).* FROM ({copy}) one",))  # noqa: S608


HELD = "attempt_id = %(held)s"
# Nothing with a foreign key names it: only its own trigger keeps its id.
REFUSED = "id = (SELECT id FROM attempts_attempt WHERE state = 'preflight-denied' ORDER BY id LIMIT 1)"
IDLE = "id = %(idle)s"
CASE = "id = %(case)s"
ORDER = "id = %(order)s"
ITEM = "order_id = %(order)s"
PERSON = "user_id = %(person)s"
FORGERIES = {
    "an attempt's state": _moved("attempts_attempt", "state = 'completed'", "id = %(approved)s"),
    "an attempt's fence": _update(
        "attempts_attempt", "fenced_moves", UNEXPLAINED, "lease_token = lease_token + 1", "id = %(approved)s"
    ),
    "an attempt's tries": _update("attempts_attempt", "fenced_moves", UNEXPLAINED, "tries = 7", "id = %(approved)s"),
    "an attempt's contract": _fixed("attempts_attempt", "workflow_slug = 'other'", "id = %(held)s"),
    "a review's status": _moved("attempts_review", "status = 'approved', decided_at = now()", HELD),
    "who is excluded from a review": _moved("attempts_review", "excluded = '[1]'", HELD),
    "how many must approve": _fixed("attempts_review", "approvals_required = approvals_required + 1", HELD),
    "until when a review waits": _update(
        "attempts_review", "fixed_times", UNCHANGED, "expires_at = expires_at + interval '1 year'", HELD
    ),
    "when a case escalates": _update(
        "attempts_quarantinecase", "fixed_times", UNCHANGED, "escalate_at = escalate_at + interval '1 year'", CASE
    ),
    "what a review is about": _update(
        "attempts_review", "door_only", UNCHANGED, "action_digest = repeat('0', 64)", HELD
    ),
    "a review away": _gone("attempts_review", HELD),
    "a case's finding": _moved("attempts_quarantinecase", "finding = 'happened'", CASE),
    "a case's attempt": _fixed("attempts_quarantinecase", "attempt_id = %(held)s", CASE),
    "a case away": _gone("attempts_quarantinecase", CASE),
    "an order's end": _moved("governance_erasureorder", "finished_at = now()", ORDER),
    "who gave an order": _fixed("governance_erasureorder", "ordered_by_ref = repeat('0', 64)", ORDER),
    "an order away": _gone(
        "governance_erasureorder",
        "id = %(empty)s",
        "INSERT INTO governance_erasureorder SELECT (o).* FROM (SELECT"
        " jsonb_populate_record(o, jsonb_build_object('id', %(empty)s::uuid)) AS o FROM governance_erasureorder o"
        " WHERE id = %(order)s) one",
    ),
    "an item's end": _moved("governance_erasureitem", "state = 'done', finished_at = now()", ITEM),
    "when an item is due": _fixed("governance_erasureitem", "not_before = '2000-01-01'", ITEM),
    "what an item erases": _update("governance_erasureitem", "door_only", UNCHANGED, "entries = 5", ITEM),
    "a shutdown": _moved(
        "governance_shutdown", "state = 'released', released_by_ref = 'x', released_at = now()", "id = %(shutdown)s"
    ),
    "a contract": _moved("governance_contract", "state = 'suspended'", "slug = 'free'"),
    "a policy": _moved("governance_policy", "state = 'archived'", "slug = 'held' AND state = 'active'"),
    "an authority change": _moved(
        "governance_authoritychange", "state = 'declined', decided_at = now()", "id = %(change)s"
    ),
    "a legal hold": _moved(
        "governance_legalhold",
        "state = 'released', released_by_ref = 'x', released_at = now(), release_reason_code = 'other'",
        "id = %(hold)s",
    ),
    "a deletion request": _moved(
        "governance_deletionrequest", "state = 'refused', reason_code = 'no_such_person'", "id = %(deletion)s"
    ),
    "a definition": _moved("workflows_workflowdefinition", "state = 'archived'", "id = %(definition)s"),
    "a module": _moved("workflows_module", "active = FALSE, disabled_at = now()", "id = %(module)s"),
    "a module's name": _fixed("workflows_module", "slug = 'other'", "id = %(module)s"),
    "a module away": _gone(
        "workflows_module",
        "id = %(bare)s",
        "INSERT INTO workflows_module SELECT (m).* FROM (SELECT jsonb_populate_record(m,"
        " jsonb_build_object('id', %(bare)s::uuid, 'slug', 'bare')) AS m FROM workflows_module m"
        " WHERE id = %(module)s) one",
    ),
    "a run": _moved("workflows_workflowinstance", "context = '{}'", "id = %(run)s"),
    "a step": _moved("workflows_workflowstep", "output = '{\"granted\": true}'", "id = %(step)s"),
    "a person's commitment": _fixed("governance_personreference", "commitment = repeat('0', 64)", PERSON),
    "a person's commitment away": _gone("governance_personreference", PERSON, trigger="door_only"),
    "a commitment to somebody else": Forgery(
        "commits on governance_personreference",
        UNCHANGED,
        (
            "INSERT INTO governance_personreference (user_id, salt, commitment)"
            " VALUES (%(stranger)s, decode(repeat('00', 32), 'hex'), repeat('0', 64))",
        ),
    ),
    "an attempt's id": _update("attempts_attempt", "fixed_id", UNCHANGED, "id = gen_random_uuid()", REFUSED),
    "a service's id": _update("governance_serviceaccount", "fixed_id", UNCHANGED, "id = gen_random_uuid()", IDLE),
    "a service away": _gone("governance_serviceaccount", IDLE),
    "a transition of no attempt": _names_nothing("attempts_attempttransition", "attempt_id", HELD),
    "a key of no attempt": _names_nothing("attempts_idempotencyrecord", "attempt_id", HELD, generation="99"),
    "an attempt without a decision": _names_nothing("attempts_attempt", "decision_id", "id = %(held)s"),
    "an attempt of no service": _names_nothing("attempts_attempt", "caller_id", "id = %(held)s"),
    "an entry of last year": Forgery("moment_in_time on governance_ledgerentry", OTHER_TIME, (OLD_ENTRY,)),
    "an entry of another transaction": Forgery(
        "moment_in_time on governance_ledgerentry", OTHER_TIME, (FOREIGN_ENTRY,)
    ),
}


def forgeable_world(cast: Cast) -> dict[str, Any]:
    """A row for each forgery, made by the services. The act that needs a second person comes last."""
    with transaction.atomic():
        case = quarantined(cast)
    contract(cast, slug="held", policy_slug="held", rules=HOLD)
    contract(cast, slug="free")
    client = cast.api("attempts:create")
    held, approved = ask(client, 11, slug="held").json()["id"], ask(client, 12, slug="free").json()["id"]
    clinic, running = Clinic(cast), Running(cast)
    clinic.denied(13)
    instance = running.start()
    with every_tenant():
        step = WorkflowStep.objects.filter(instance=instance).order_by("number")[0]
    person_commitment(user_id=cast.operator.id)
    world = {
        "case": case.id,
        "held": held,
        "approved": approved,
        "order": clinic.order().id,
        "empty": uuid4(),
        "deletion": request(clinic, "ctx-0013").id,
        "hold": clinic.hold("attempt", approved).id,
        "definition": running.definition.id,
        "module": registered(cast).module.id,
        "bare": uuid4(),
        "run": instance.id,
        "step": step.id,
        "person": cast.operator.id,
        "idle": ServiceAccountFactory(organization=cast.organization).id,
        "stranger": PersonFactory(username="stranger").id,
        "subject": uuid4(),
    }
    with connection.cursor() as cursor:
        cursor.execute("SELECT user_id FROM governance_personreference WHERE user_id = %s", [world["stranger"]])
        assert cursor.fetchone() is None, "nobody has committed to the stranger yet"
    _ = cast.second_operator, cast.nobody
    return world | {"change": propose(cast).json()["id"], "shutdown": engage(cast).id}


def outcome(connected: psycopg.Connection[Any], statements: tuple[str, ...], values: dict[str, Any]) -> str:
    """The code of the refusal, at the latest at the end of the transaction; empty if it would commit. It does not."""
    try:
        with connected.transaction(force_rollback=True):
            for statement in statements:
                if not connected.execute(statement, values).rowcount:
                    return "there is no such row"
            connected.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.Error as error:
        return error.sqlstate or str(error)
    return ""


@contextmanager
def trigger_off(name: str) -> Iterator[None]:
    trigger, table = name.split(" on ")
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} {WORDS['D']} TRIGGER {trigger}")
        try:
            yield
        finally:
            cursor.execute(f"ALTER TABLE {table} {WORDS['A']} TRIGGER {trigger}")


@contextmanager
def strict_clock() -> Iterator[None]:
    """The rule about times as installations have it; see tests.emptying."""
    free = "CREATE OR REPLACE FUNCTION holdpoint_any_moment() RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT {} $$"
    with connection.cursor() as cursor:
        cursor.execute(free.format("FALSE"))
        try:
            yield
        finally:
            cursor.execute(free.format("TRUE"))
