"""Time and number of queries of the console's and reviewers' pages, with a million attempts of which ten thousand are
held. Runs in one process through Django's test client. The goal is 150 ms for every page."""

import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ATTEMPTS = int(os.environ.get("BENCH_ATTEMPTS", "1000000"))
OPEN = int(os.environ.get("BENCH_OPEN", "10000"))
RUNS = ATTEMPTS // 10
ROUNDS = 9
GOAL_MS = 150


def run() -> dict[str, Any]:
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    os.environ |= {"DJANGO_SETTINGS_MODULE": "bench.settings", "HOLDPOINT_HOME": str(home), "LOG_LEVEL": "ERROR"}
    import django

    django.setup()
    from django.core.management import call_command
    from django.utils import timezone

    from config.demo.secrets import DemoSecrets
    from config.demo.seed import demo_seed

    call_command("migrate", verbosity=0, interactive=False)
    demo = demo_seed(at=timezone.now(), secrets=DemoSecrets())
    began = time.monotonic()
    found = fill(demo)
    filled = time.monotonic() - began
    figures = {name: measured(who, path) for name, (who, path) in pages(found).items()}
    slowest = max(figures.values(), key=lambda one: one["p50_ms"])
    return {
        "attempts": ATTEMPTS,
        "open": OPEN,
        "filled_s": round(filled),
        "pages": figures,
        "goal_ms": GOAL_MS,
        "slowest_p50_ms": slowest["p50_ms"],
        "met": all(one["p50_ms"] < GOAL_MS for one in figures.values()),
    }


def fill(demo: dict[str, Any]) -> dict[str, Any]:
    from django.test import Client

    from attempts.lifecycle.models import Attempt
    from bench.console_rows import MOMENT, analyze, copy_reviews, copy_rows
    from governance.enforcement.models import EnforcementDecision
    from governance.ledger.models import LedgerEntry
    from reasoncodes.base.tenancy import every_tenant
    from workflows.events.models import OutboxEvent, WorkflowEvent
    from workflows.runs.models import WorkflowInstance

    key = demo["keys"]["caller"]
    headers = {"authorization": f"Bearer {key}", "idempotency-key": f"bench-{time.time_ns()}"}
    held = Client(SERVER_NAME="127.0.0.1").post(
        "/api/v1/execution/demo-hold/1/attempts",
        json.dumps(demo["attempt_example"]),
        "application/json",
        headers=headers,
    )
    begun = {"authorization": f"Bearer {demo['keys']['workflows']}"}
    Client(SERVER_NAME="127.0.0.1").post(
        "/api/v1/events", json.dumps(demo["event_example"]), "application/json", headers=begun
    )
    with every_tenant():
        attempt = Attempt.objects.get(id=held.json()["id"])
        made = {"created_at": MOMENT, "request_trace_id": "md5(random()::text)", "idempotency_key": "'key-' || n"}
        ended = made | {"state": "'completed'", "reason_code": "''"}
        copy_rows("attempts_attempt", attempt.id, ATTEMPTS - OPEN, **ended)
        copy_rows("attempts_attempt", attempt.id, OPEN, **made)
        copy_reviews(attempt.review.id, "review-required", "NULL", "'requested'")
        copy_reviews(attempt.review.id, "completed", MOMENT, "'approved'")
        decision = EnforcementDecision.objects.get(id=attempt.decision_id)
        copy_rows("governance_enforcementdecision", decision.id, ATTEMPTS // 2, verdict="'allow'", at=MOMENT)
        entry = LedgerEntry.objects.filter(subject_id=attempt.id).first()
        copy_rows("governance_ledgerentry", entry.id, ATTEMPTS // 4, at=MOMENT, subject_id="gen_random_uuid()")
        instance = WorkflowInstance.objects.order_by("-id").first()
        case = {"case_id": "gen_random_uuid()", "created_at": MOMENT}
        copy_rows("workflows_workflowinstance", instance.id, RUNS, **case, state="'completed'")
        halted = {"state": "'halted'", "halt_reason": "'consent_missing'", "halt_step_id": "'consent_gate'"}
        copy_rows("workflows_workflowinstance", instance.id, OPEN, **case, **halted)
        sent = OutboxEvent.objects.filter(instance=instance).first()
        copy_rows("workflows_outboxevent", sent.id, RUNS * 3, status="'sent'", created_at=MOMENT)
        event = WorkflowEvent.objects.filter(instance=instance).first()
        kept = {"instance_id": "NULL", "number": "NULL", "event_id": "gen_random_uuid()", "outcome": "'unmatched'"}
        copy_rows("workflows_workflowevent", event.id, RUNS, **kept)
        analyze()
        some = Attempt.objects.filter(state="completed").order_by("-id")[5000]
    return {"attempt": some, "held": attempt, "instance": instance}


def pages(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    some, instance = found["attempt"], found["instance"]
    lists = {
        "attempts": "attempts/attempt/",
        "attempts_held": "attempts/attempt/?state=review-required",
        "attempts_rare_state": "attempts/attempt/?state=failed-quarantined",
        "attempts_risk": "attempts/attempt/?risk_tier=high",
        "attempts_page_300": "attempts/attempt/?p=300",
        "reviews": "attempts/review/",
        "reviews_ended": "attempts/review/?status=approved",
        "quarantine": "attempts/quarantinecase/",
        "runs": "workflows/workflowinstance/",
        "runs_halted": "workflows/workflowinstance/?halt_reason=consent_missing",
        "runs_mode": "workflows/workflowinstance/?mode=client_driven",
        "events": "workflows/workflowevent/",
        "outbox": "workflows/outboxevent/",
        "decisions": "governance/enforcementdecision/",
        "decisions_denied": "governance/enforcementdecision/?verdict=deny",
        "ledger": "governance/ledgerentry/",
        "attempt": f"attempts/attempt/{some.id}/change/",
        "run": f"workflows/workflowinstance/{instance.id}/change/",
        "overview": "",
        "figures": "figures/",
        "start": "start/",
        "search_id": f"search/?q={some.id}",
        "search_trace": f"search/?q={some.request_trace_id}",
        "search_key": f"search/?q={some.idempotency_key}",
        "search_nothing": "search/?q=00000000-0000-7000-8000-000000000000",
    }
    shown = {f"operator.{name}": ("operator", f"/admin/{path}") for name, path in lists.items()}
    wide = ("attempts", "attempts_rare_state", "decisions_denied", "reviews", "overview", "search_nothing")
    shown |= {f"admin.{name}": ("admin", f"/admin/{lists[name]}") for name in wide}
    views = ("groups", "mine", "unclaimed", "expiring", "waiting", "all", "history")
    shown |= {f"reviewer.{view}": ("reviewer", f"/review/?view={view}") for view in views}
    shown["reviewer.search"] = ("reviewer", "/review/?view=history&q=nothing-such")
    return shown | {"reviewer.card": ("reviewer", f"/review/{found['held'].review.id}")}


def measured(who: str, path: str) -> dict[str, Any]:
    from django.db import connection
    from django.test import Client

    from governance.people.models import User

    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.get(username=who))
    asked: list[str] = []

    def count(execute: Any, sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    # The first call counts queries and fills caches. It is not timed, because the wrapper itself takes time.
    with connection.execute_wrapper(count):
        status = client.get(path).status_code
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        client.get(path)
        times.append((time.perf_counter() - began) * 1000)
    return {
        "p50_ms": round(statistics.median(times), 1),
        "max_ms": round(max(times), 1),
        "queries": len(asked),
        "status": status,
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
