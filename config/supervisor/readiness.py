"""Asks the running web process whether everything that it needs is there."""

import http.client
import json
from typing import Any

from config.supervisor.errors import StartError
from config.supervisor.stopping import StopFlag

# The slowest check waits for a heartbeat, which comes every five seconds through beat and worker.
SECONDS_TO_BECOME_READY = 60
DENY_MODE = {"ledger", "sealer"}  # in deny mode nothing is sealed, so the sealer fails too


def _readiness_ask(*, port: int) -> tuple[int, str]:
    """One GET of /health/ready: the status (0 if nobody answers) and what is missing."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health/ready", headers={"Connection": "close"})
        answer = connection.getresponse()
        return answer.status, failing(answer.read())
    except (OSError, http.client.HTTPException):
        return 0, "web does not answer"
    finally:
        connection.close()


def failing(body: bytes) -> str:
    """The names of the failing checks, for a person."""
    try:
        checks: Any = json.loads(body).get("checks", {})
    except (ValueError, AttributeError):
        return "an unexpected answer"
    names = [
        name
        for name, check in checks.items()
        if (check.get("status") if isinstance(check, dict) else check) not in ("ok", True)
    ]
    return ", ".join(names) or "nothing"


def denied(reason: str) -> bool:
    """In deny mode the stack counts as started: the person who must confirm the loss needs it to run."""
    names = set(reason.split(", "))
    return "ledger" in names and names <= DENY_MODE


def wait_until_ready(*, port: int, stop: StopFlag, logs: str) -> bool:
    """True when everything is ready, False if only deny mode fails. Raises with the failing checks if it takes too
    long."""
    reason, status = "", 0

    def ready() -> bool:
        nonlocal reason, status
        status, reason = _readiness_ask(port=port)
        return status == 200 or denied(reason)

    if not stop.wait_until(ready, seconds=SECONDS_TO_BECOME_READY):
        raise StartError(f"Not ready after {SECONDS_TO_BECOME_READY} s, failing: {reason}; logs are in {logs}.")
    return status == 200
