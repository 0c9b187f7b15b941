"""What a thousand open holds and a storm of 4,000 refused requests cost everybody else, on a whole stack."""

import json
import os
import shutil
import signal
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.stack.support import RunningStack, processes_of, wait_for

HOLDS = int(os.environ.get("BENCH_HOLDS", "1000"))
REQUESTS = 200
IDLE_SECONDS = float(os.environ.get("BENCH_HOLDS_SECONDS", "30"))
STORM, TIMES, CLIENTS = 50, 80, 8
# Copies of the one hold that the API made: its attempt and its review.
COPY = """
DO $$
DECLARE columns text; one uuid; its uuid; made uuid;
BEGIN
    SELECT r.id, a.id INTO its, one FROM attempts_attempt a JOIN attempts_review r ON r.attempt_id = a.id
    WHERE a.state = 'review-required' LIMIT 1;
    FOR n IN 1..{count} LOOP
        made := gen_random_uuid();
        SELECT string_agg(quote_ident(column_name), ', ') INTO columns FROM information_schema.columns
        WHERE table_name = 'attempts_attempt' AND column_name <> 'id';
        EXECUTE format('INSERT INTO attempts_attempt (id, %s) SELECT $1, %s FROM attempts_attempt WHERE id = $2',
            columns, columns) USING made, one;
        SELECT string_agg(quote_ident(column_name), ', ') INTO columns FROM information_schema.columns
        WHERE table_name = 'attempts_review' AND column_name NOT IN ('id', 'attempt_id');
        EXECUTE format('INSERT INTO attempts_review (id, attempt_id, %s) SELECT gen_random_uuid(), $1, %s'
            ' FROM attempts_review WHERE id = $2', columns, columns) USING made, its;
    END LOOP;
END $$
"""
STORED = """
SELECT (SELECT count(*) FROM attempts_attempt), (SELECT count(*) FROM governance_enforcementdecision),
    (SELECT count(*) FROM governance_ledgerentry)
"""


class Measured:
    def __init__(self, stack: RunningStack, database: psycopg.Connection[Any]) -> None:
        self.stack, self.database, self.demo, self.number = stack, database, stack.demo, 0
        headers = {"Authorization": f"Bearer {self.demo['keys']['caller']}"}
        self.client = httpx.Client(base_url=stack.base_url, headers=headers, timeout=60)

    def ask(self, name: str, key: str, *, mode: str = "shadow") -> httpx.Response:
        contract, self.number = self.demo["contracts"][name], self.number + 1
        body = self.demo["attempt_example"] | {"patient_context_ref": f"ctx-{key}", "runtime_mode": mode}
        path = f"/api/v1/execution/{contract['slug']}/{contract['version']}/attempts"
        return self.client.post(path, json=body, headers={"Idempotency-Key": key})

    def costs(self, word: str) -> dict[str, Any]:
        def timed(work: Any) -> float:
            began = time.monotonic()
            assert work().status_code in {200, 201, 202}
            return (time.monotonic() - began) * 1000

        intake = [timed(lambda n=n: self.ask("allow", f"holds-{word}-{n:06}")) for n in range(REQUESTS)]
        ready = [timed(lambda: self.client.get("/health/ready")) for _ in range(20)]
        # Asks no database: how busy the machine is meanwhile.
        plain = [timed(lambda: self.client.get("/health")) for _ in range(REQUESTS)]
        return {
            "plain_p50_ms": round(statistics.median(plain), 1),
            "intake_p50_ms": round(statistics.median(intake), 1),
            "ready_p50_ms": round(statistics.median(ready), 1),
            "idle_transactions_per_s": self._idle(),
        }

    def _idle(self) -> float:
        time.sleep(10)  # what came before has settled
        before, began = self._transactions(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        return round((self._transactions() - before) / (time.monotonic() - began), 2)

    def _transactions(self) -> int:
        row = self.database.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
        return int(row[0]) if row else 0

    def storm(self) -> dict[str, Any]:
        """Fifty requests, each asked eighty times while no place is free."""
        self.database.execute("UPDATE governance_organization SET max_concurrency = 0 WHERE slug = 'demo'")
        before, began = self.database.execute(STORED).fetchone(), time.monotonic()
        with ThreadPoolExecutor(CLIENTS) as pool:
            keys = [f"storm-{number:06}" for number in range(STORM)] * TIMES
            statuses = {
                answer.status_code for answer in pool.map(lambda key: self.ask("allow", key, mode="active"), keys)
            }
        seconds, after = time.monotonic() - began, self.database.execute(STORED).fetchone()
        assert before is not None
        assert after is not None
        stored = dict(
            zip(
                ("attempts", "decisions", "ledger_entries"),
                (a - b for a, b in zip(after, before, strict=True)),
                strict=True,
            )
        )
        return {
            "requests": len(keys),
            "statuses": str(statuses),
            "per_s": round(len(keys) / seconds, 1),
            "stored": stored,
        }


def run() -> dict[str, Any]:
    # A short path: it holds the servers' sockets.
    folder = Path(tempfile.mkdtemp(prefix="hph", dir="/tmp"))
    folder.chmod(0o755)
    stack = RunningStack(folder / "home")
    try:
        stack.start()
        runtime = stack.runtime()
        with psycopg.connect(runtime.get("database_owner_url") or runtime["database_url"], autocommit=True) as database:
            measured = Measured(stack, database)
            assert measured.ask("hold", "holds-first-000001", mode="active").status_code == 202
            with_one = measured.costs("one")
            database.execute(COPY.format(count=HOLDS - 1))
            database.execute("ANALYZE attempts_attempt, attempts_review")
            return {"with_1": with_one, f"with_{HOLDS}": measured.costs("many"), "storm": measured.storm()}
    finally:
        if stack.process is not None:
            stack.process.send_signal(signal.SIGTERM)
            stack.process.wait(timeout=90)
        wait_for(lambda: not processes_of(stack.home), seconds=30, what="everything ended")
        shutil.rmtree(folder)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
