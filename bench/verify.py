"""`verify_record --full` over a large record: time and memory. `BENCH_ATTEMPTS` says how many attempts (100,000); the
goal is six minutes and 300 MB for a million."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from bench.intake import manage
from config.embedded.postgres_cluster import OWNER_ROLE, SUPERUSER

ROOT = Path(__file__).resolve().parent.parent
ATTEMPTS = int(os.environ.get("BENCH_ATTEMPTS", "100000"))
PROCESSES = 2
FILL = "import django; django.setup(); from bench.verify_fill import main; main({count})"


def run() -> dict[str, Any]:
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "bench.settings",
        "HOLDPOINT_HOME": str(home),
        "LOG_LEVEL": "ERROR",
    }
    manage(environment, "migrate", "--noinput", "-v0")
    began = time.monotonic()
    with replica_mode_allowed():
        fill = subprocess.run(
            [sys.executable, "-c", FILL.format(count=ATTEMPTS)],
            env=environment,
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
        )
    made = json.loads(fill.stdout.splitlines()[-1])
    filled = time.monotonic() - began
    began = time.monotonic()
    command = [sys.executable, str(ROOT / "manage.py"), "verify_record", "--full", "--json", f"--processes={PROCESSES}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    seconds = time.monotonic() - began
    # The largest of the processes that have ended: parent or one of its children.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    found = json.loads(done.stdout)
    if not found["valid"]:
        raise RuntimeError(f"the record was not valid: {found['faults'][:3]}")
    return {
        "attempts": ATTEMPTS,
        "entries": found["checked"]["entries"],
        "rows": found["checked"]["rows"],
        "per_attempt": made,
        "fill_s": round(filled, 1),
        "verify_s": round(seconds, 1),
        "peak_mb_of_one_process": round(peak),
        "rows_per_s": round(found["checked"]["rows"] / seconds),
        "a_million_attempts_would_take_s": round(seconds * 1_000_000 / ATTEMPTS),
    }


@contextmanager
def replica_mode_allowed() -> Iterator[None]:
    """The tables' owner may skip foreign keys meanwhile. Before the check the right is gone: it is among the guards."""
    with psycopg.connect(os.environ["DATABASE_URL"], user=SUPERUSER, autocommit=True) as superuser:
        superuser.execute(f"GRANT SET ON PARAMETER session_replication_role TO {OWNER_ROLE}")
        try:
            yield
        finally:
            superuser.execute(f"REVOKE SET ON PARAMETER session_replication_role FROM {OWNER_ROLE}")


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
