"""Every list, and every choice of every filter of the hot ones, reads the same pages however many rows there are."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from attempts.lifecycle.models import Attempt
from governance.console.admin.base import ConsoleAdmin
from governance.console.admin.lists import BoundedPaginator
from governance.console.selectors import lists
from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.target import CountingTarget
from tests.attempts.test_intake import body, post
from tests.attempts.test_tick_cost import copy_rows as copies
from tests.cast import Cast
from tests.governed import HOLD, open_contract
from tests.workflows.running import Running
from tests.workflows.webhooks.support import Hooks
from workflows.events.models import OutboxEvent, WorkflowEvent
from workflows.runs.models import WorkflowInstance
from workflows.runs.selectors import console as run_console
from workflows.webhooks.models import WebhookDelivery

FEW, MANY = 1_500, 9_000
WINDOW = 400
SLACK = 60 + WINDOW  # pages: an index is a level deeper, and each row of a window may stand on a page of its own
HOT = [model for model, page in admin.site._registry.items() if isinstance(page, ConsoleAdmin) and page.hot]
TABLES = (
    "attempts_attempt",
    "attempts_review",
    "attempts_quarantinecase",
    "governance_enforcementdecision",
    "governance_ledgerentry",
    "workflows_workflowinstance",
    "workflows_workflowevent",
    "workflows_outboxevent",
    "workflows_webhookdelivery",
)


def copy_rows(table: str, source: Any, count: int, **columns: str) -> None:
    """With ids that grow, as real ones do: what was written together is read together."""
    moment = "lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')"
    rest = "'7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15)"
    copies(table, source, count, id=f"({moment} || {rest})::uuid", **columns)


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The windows are 10,000 rows; with smaller ones the same is seen with fewer."""
    monkeypatch.setattr(lists, "NEWEST", WINDOW)
    monkeypatch.setattr(run_console, "NEWEST", WINDOW)
    monkeypatch.setattr(BoundedPaginator, "LIMIT", WINDOW)


class Heap:
    """Rows of everything, of one's own organization and of another one; mostly such as nobody filters for."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        open_contract(cast, rules=HOLD)
        held = post(cast.api("attempts:create"), body()).json()["id"]
        running = Running(cast)
        run = running.start()
        with every_tenant():
            self.attempt = Attempt.objects.get(id=held)
            self.review = self.attempt.reviews.get()
            self.run = WorkflowInstance.objects.get(id=run.id)
            self.event = WorkflowEvent.objects.filter(instance=run)[0]
            self.sent = OutboxEvent.objects.filter(instance=run)[0]
            self.decision = EnforcementDecision.objects.all()[0]
            self.entry = LedgerEntry.objects.filter(organization=cast.organization)[0]
        hooks = Hooks(cast, CountingTarget())
        hooks.target.stop()
        hooks.endpoint()
        hooks.tell([run.id])
        with every_tenant():
            self.told = WebhookDelivery.objects.get()
        self.made = 0

    def grow(self, total: int) -> None:
        """Half of the rows are another organization's, in between as they come in."""
        count, self.made = total - self.made, total
        own = {
            "organization_id": f"(ARRAY['{self.cast.organization.id}', '{self.cast.other.id}'])[1 + mod(n, 2)]::uuid"
        }
        random = "gen_random_uuid()"
        copy_rows("attempts_attempt", self.attempt.id, count, **own, state="'completed'", reason_code="''")
        copy_rows("governance_enforcementdecision", self.decision.id, count, **own, verdict="'allow'")
        copy_rows("governance_ledgerentry", self.entry.id, count, **own)
        copy_rows("workflows_outboxevent", self.sent.id, count, **own, status="'sent'")
        told = {"event_id": random, "state": "'delivered'", "ended_at": "now()"}
        copy_rows("workflows_webhookdelivery", self.told.id, count, **own, **told)
        run = {"case_id": random, "state": "'completed'"}
        copy_rows("workflows_workflowinstance", self.run.id, count, **own, **run)
        kept = {"instance_id": "NULL", "number": "NULL", "event_id": random, "outcome": "'unmatched'"}
        copy_rows("workflows_workflowevent", self.event.id, count, **own, **kept)
        ended = {"kind": "'human_review'", "attempt_id": "NULL", "origin_step": random, "status": "'approved'"}
        copy_rows("attempts_review", self.review.id, count, **own, **ended)
        self._cases()
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {', '.join(TABLES)}")

    @staticmethod
    def _cases() -> None:
        """One for every completed attempt."""
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO attempts_quarantinecase (id, organization_id, attempt_id, category, reason_code,"
                " escalation_owner, escalate_at, incident_ref, finding, evidence_ref, found_by_ref, resolution,"
                " resolved_by_ref, resolved_at, opened_at) SELECT a.id, a.organization_id, a.id,"
                " 'adapter_failure', 'adapter_failed', 'x', now(), '', '', '', '', 'accepted', '', now(), now()"
                " FROM attempts_attempt a LEFT JOIN attempts_quarantinecase c ON c.attempt_id = a.id"
                " WHERE c.id IS NULL AND a.state = 'completed' ORDER BY a.id"
            )


def addresses(console: Client) -> Iterator[tuple[str, dict[str, str]]]:
    """Each hot list as it is, and with every choice of each of its filters."""
    for model in HOT:
        path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        yield path, {}
        for spec in console.get(path).context["cl"].filter_specs:
            for value, _ in spec.lookup_choices:
                yield path, {spec.parameter_name: str(value)}


def pages_read(console: Client, path: str, query: dict[str, str]) -> tuple[int, list[str], str]:
    """By all statements of the list together; the whole tables that were read for want of an index; the worst plan."""
    with CaptureQueriesContext(connection) as found:
        assert console.get(path, query).status_code == 200
    total, whole, worst = 0, [], (0, "")
    for sql in (one["sql"] for one in found.captured_queries):
        if not sql.startswith("SELECT") or not any(table in sql for table in TABLES):
            continue
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}")
            plan = [line for (line,) in cursor.fetchall()]
        buffers = next((line for line in plan if "Buffers:" in line), "")
        pages = sum(int(number) for number in re.findall(r"(?:hit|read)=(\d+)", buffers))
        total, worst = total + pages, max(worst, (pages, "\n".join([sql[-400:], *plan])))
        whole += [line.strip() for line in plan if re.search(rf"Seq Scan on ({'|'.join(TABLES)})\b", line)]
    return total, whole, worst[1]


@pytest.mark.tampers
@pytest.mark.parametrize("who", ["operator", "administrator"])
def test_no_list_and_no_filter_costs_more_with_more_rows(cast: Cast, small_windows: None, who: str) -> None:
    heap, console = Heap(cast), cast.console(getattr(cast, who))
    heap.grow(FEW)
    chosen = list(addresses(console))
    assert len(chosen) > 40
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    few = {str(one): pages_read(console, *one)[0] for one in chosen}
    heap.grow(MANY)
    for one in chosen:
        many, whole, worst = pages_read(console, *one)
        assert not whole, (one, whole)
        assert many <= 1.5 * few[str(one)] + SLACK, f"{one}: {few[str(one)]} pages, then {many}\n{worst}"
