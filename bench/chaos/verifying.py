"""Checks of the whole record while it is used and broken, some of them killed. At the end a forgery, and kills in deny
mode."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from random import Random
from typing import Any
from uuid import uuid4

import httpx
import psycopg

from bench.chaos.history import History
from bench.chaos.stack import DATABASE, ChaosStack
from config.embedded.paths import PROJECT

CHECK = [sys.executable, "manage.py", "verify_record", "--full", "--json", "--processes", "2"]
MOST_SECONDS = 120.0
# Of three checks one is killed.
WHOLE = 2
FOUND_SECONDS = 180.0
ENGAGED = "SELECT count(*) FROM governance_shutdown WHERE state = 'engaged' AND target = 'record_differs'"
# The clock's rounds through the record take long. This attempt's last leaf is one of the next, or else of the first.
NEXT = """
SELECT a.id FROM attempts_attempt a JOIN governance_ledgerentry e ON e.subject_id = a.id
JOIN governance_ledgerleaf l ON l.entry_id = e.id CROSS JOIN governance_recordprogress p
WHERE a.state = 'completed' GROUP BY a.id, p.walked_to
ORDER BY max(l.position) < p.walked_to + 512, max(l.position) LIMIT 1
"""


class Verifier(threading.Thread):
    """One check after another. `valid` is None if it was killed, or the database was away."""

    def __init__(self, stack: ChaosStack, history: History, seed: int) -> None:
        super().__init__(name="verifier", daemon=True)
        self.stack, self.history, self.random = stack, history, Random(f"{seed}/verifier")
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(self.random.uniform(5, 15)):
            began = self.history.now()
            killed, valid = self._check()
            self.history.write("checked", began=began, ended=self.history.now(), killed=killed, valid=valid)

    def _check(self) -> tuple[bool, bool | None]:
        environment = self.stack.stack.environment(**self.stack.stack.variables)
        process = subprocess.Popen(
            CHECK,
            cwd=PROJECT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        whole = self.random.randrange(WHOLE + 1) < WHOLE
        try:
            said, _ = process.communicate(timeout=MOST_SECONDS if whole else self.random.uniform(1, 8))
        except subprocess.TimeoutExpired:
            # With its children: each has a connection and the snapshot.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return True, None
        try:
            return False, bool(json.loads(said)["valid"])
        except ValueError:
            return False, None  # it ended with the database


def deny_drill(stack: ChaosStack, history: History) -> None:
    """After everything else: a row is changed behind the ledger's back. Deny mode must come, and survive kills."""
    with psycopg.connect(stack.servers.database_owner_url, autocommit=True) as owner:
        forged = _forge(owner)
        if not forged:
            return
        began = time.monotonic()
        _until(lambda: _engaged(owner) > 0, "deny mode")
        engaged = time.monotonic() - began
    asked = [_ask(stack)]
    for name in ("clock", "web", "dispatch"):
        if (process := stack.child(name)) is not None:
            process.kill()
    server = stack.server(DATABASE)
    for one in stack.server_processes(DATABASE):
        one.kill()
    server.start()
    # Whoever comes back may answer only with refusals, from the first answer on.
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        asked.append(_ask(stack))
        time.sleep(0.5)
    with psycopg.connect(stack.servers.database_owner_url) as owner:
        faults = owner.execute("SELECT count(*), bool_and(row = %s) FROM governance_recordfault", [forged]).fetchone()
        history.write(
            "denied",
            engaged_after_s=round(engaged, 1),
            statuses=sorted(set(asked)),
            still_engaged=_engaged(owner) == 1,
            only_the_forged_row=faults is not None and faults[1],
        )


def _forge(owner: psycopg.Connection[Any]) -> str:
    """As the tables' owner, with the triggers off: another target of a completed attempt."""
    row = owner.execute(NEXT).fetchone()
    if row is None:
        return ""
    with owner.transaction():
        names = owner.execute(
            "SELECT tgname FROM pg_trigger WHERE tgrelid = 'attempts_attempt'::regclass AND NOT tgisinternal"
        ).fetchall()
        owner.execute("ALTER TABLE attempts_attempt DISABLE TRIGGER USER")
        owner.execute("UPDATE attempts_attempt SET target_ref = 'case-forged' WHERE id = %s", [row[0]])
        for (name,) in names:
            owner.execute(f"ALTER TABLE attempts_attempt ENABLE ALWAYS TRIGGER {name}")  # type: ignore[arg-type]
    return str(row[0])


def _engaged(owner: psycopg.Connection[Any]) -> int:
    row = owner.execute(ENGAGED).fetchone()
    return int(row[0]) if row else 0


def _until(happens: Any, what: str) -> None:
    deadline = time.monotonic() + FOUND_SECONDS
    while not happens():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.5)


def _ask(stack: ChaosStack) -> int:
    """The status of a new intake; 0 without an answer."""
    route = stack.demo["contracts"]["allow"]
    headers = {"Authorization": f"Bearer {stack.demo['keys']['caller']}", "Idempotency-Key": str(uuid4())}
    address = f"{stack.stack.base_url}/api/v1/execution/{route['slug']}/{route['version']}/attempts"
    try:
        return httpx.post(address, json=stack.demo["attempt_example"], headers=headers, timeout=10).status_code
    except httpx.HTTPError:
        return 0
