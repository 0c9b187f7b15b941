"""What is due now, in one statement: beat sends the messages of scheduled tasks whose rows wait, and no others. Each
part asks whether the front of a partial index is over, so it costs the same with nothing and with a million waiting."""

import time
from collections.abc import Collection
from typing import Final
from uuid import UUID

import structlog
from django.db import Error, connection

from attempts.execution.sql import OLDEST_DUE
from governance.sealing.configured import witnesses_configured

log = structlog.get_logger("holdpoint.due")
NOW = "<= statement_timestamp()"
# By the name in SCHEDULE. A task that does not stand here is sent at every interval. What is written here may be wider
# than what the task does, never narrower: the slow sweep below would be the only one to find the rest.
DUE: Final[dict[str, str]] = {
    "ledger-seal": """governance_ledgerentry e WHERE (e.txid, e.id) > (
        SELECT coalesce(max(cursor_txid), 0), coalesce(max(cursor_id::text)::uuid, %(first)s::uuid)
        FROM (SELECT cursor_txid, cursor_id FROM governance_ledgercheckpoint ORDER BY size DESC LIMIT 1) head)""",
    "witnesses-push": """(SELECT size, root FROM governance_ledgercheckpoint ORDER BY size DESC LIMIT 1) head
        WHERE cardinality(%(witnesses)s::text[]) > (
            SELECT count(*) FROM governance_witnessreceipt w WHERE w.witness = ANY (%(witnesses)s)
            AND w.size = head.size AND w.root = head.root AND w.result = 'stored')""",
    "evidence-resume": f"""(SELECT 1) one WHERE
        EXISTS (SELECT FROM governance_evidencebundle WHERE state IN ('requested', 'building') AND resume_at {NOW})
        OR EXISTS (SELECT FROM governance_evidencebundle
            WHERE state = 'erased' AND removed_at IS NULL AND resume_at {NOW})""",  # noqa: S608
    # By the smallest: asked whether one exists, the planner takes any index of open reviews while there are few.
    "reviews-expire": f"""(SELECT min(expires_at) AS first FROM attempts_review WHERE status = 'requested') r
        WHERE first {NOW}""",  # noqa: S608
    "leases-expire": f"attempts_attempt WHERE state = 'approved-for-execution' AND lease_expires_at {NOW}",
    "retries-due": f"({OLDEST_DUE}) oldest (seconds) WHERE seconds IS NOT NULL",
    "queue-hand-out": "attempts_attempt WHERE queued_until IS NOT NULL",
    "steps-time-out": f"""(SELECT 1) one WHERE
        EXISTS (SELECT FROM workflows_workflowstep
            WHERE state IN ('in_progress', 'waiting_approval') AND timeout_at {NOW})
        OR EXISTS (SELECT FROM workflows_workflowstep
            WHERE state IN ('in_progress', 'pending', 'waiting_approval') AND NOT overdue AND due_at {NOW})""",  # noqa: S608
    "step-retries-due": f"workflows_workflowstep WHERE state = 'pending' AND next_eligible_at {NOW}",
    "deadlines-pass": f"""workflows_workflowinstance
        WHERE state IN ('queued', 'running', 'waiting_approval') AND deadline_at {NOW}""",
    "instances-hand-out": "workflows_workflowinstance WHERE state = 'queued'",
    "nudges-due": f"workflows_nudge WHERE due_at {NOW}",
    "outbox-relay": f"workflows_outboxevent WHERE status = 'pending' AND next_try_at {NOW}",
    "module-calls-work": "workflows_modulecall WHERE state = 'waiting'",
    "module-calls-expire": f"workflows_modulecall WHERE state = 'sending' AND lease_until {NOW}",
    "webhooks-gather": """workflows_webhookcursor c WHERE EXISTS (SELECT FROM workflows_webhookendpoint WHERE enabled)
        AND c.position < (SELECT size FROM governance_ledgercheckpoint ORDER BY size DESC LIMIT 1)""",
    "webhooks-deliver": f"""workflows_webhookendpoint e CROSS JOIN LATERAL (
            SELECT next_try_at FROM workflows_webhookdelivery WHERE endpoint_id = e.id AND state = 'pending'
            ORDER BY next_try_at LIMIT 1) d
        WHERE e.enabled AND (e.held_until IS NULL OR e.held_until {NOW}) AND d.next_try_at {NOW}""",  # noqa: S608
    # Reviews of organizations with a route: those of others are never announced, and would be due for ever.
    "notifications-send": f"""(SELECT 1) one WHERE
        EXISTS (SELECT FROM attempts_notification WHERE state = 'pending' AND next_try_at {NOW})
        OR EXISTS (SELECT FROM attempts_casenotice WHERE next_try_at {NOW})
        OR EXISTS (SELECT FROM attempts_notificationroute r CROSS JOIN LATERAL (
            SELECT 1 FROM attempts_review WHERE organization_id = r.organization_id AND status = 'requested'
            AND announced_at IS NULL LIMIT 1) waiting WHERE r.state = 'active')""",  # noqa: S608
    "cards-refresh": f"attempts_notification WHERE refresh_at {NOW}",
    "bulks-resume": f"workflows_bulkintervention WHERE finished_at IS NULL AND resume_at {NOW}",
    "erasures-resume": f"governance_erasureorder WHERE finished_at IS NULL AND resume_at {NOW}",
}
ASK: Final = "SELECT " + ", ".join(f"EXISTS (SELECT FROM {rest})" for rest in DUE.values())  # noqa: S608
# A message is sent at the latest after so many seconds, due or not: the net under a part that is wrong.
SWEEP_SECONDS = 120.0
# A little less than beat's steps of a second, so that a step that is early by milliseconds still asks.
BUSY_SECONDS, QUIET_SECONDS = 0.9, 1.9


def due_now() -> set[str]:
    """The names of the scheduled tasks that have work."""
    with connection.cursor() as cursor:
        cursor.execute(ASK, {"witnesses": [one.name for one in witnesses_configured()], "first": UUID(int=0)})
        row = cursor.fetchone()
    return {name for name, found in zip(DUE, row, strict=True) if found}


class DueLook:
    """Whether a message is worth sending. Asks the database at most once a second, and less often while nothing is
    due."""

    def __init__(self) -> None:
        self._at = float("-inf")
        self._due: Collection[str] = ()
        self._sent: dict[str, float] = {}

    def wants(self, name: str) -> bool:
        if name not in DUE:
            return True
        now = time.monotonic()
        if now - self._sent.get(name, float("-inf")) < SWEEP_SECONDS and name not in self._look(now):
            return False
        self._sent[name] = now
        return True

    def _look(self, now: float) -> Collection[str]:
        if now - self._at >= (BUSY_SECONDS if self._due else QUIET_SECONDS):
            self._at = now
            try:
                self._due = due_now()
            except Error as error:
                # Nobody knows: everything is sent, as if each were due.
                log.warning("due_unknown", error=type(error).__name__)
                connection.close()
                self._due = DUE.keys()
        return self._due
