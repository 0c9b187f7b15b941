"""What the person at the terminal reads: a line per step, a line per problem, and the banner at the end."""

import sys
from typing import Any


def say(text: str, *, error: bool = False) -> None:
    """Prints one line. If the terminal is gone, the stack must go on."""
    try:
        print(text, file=sys.stderr if error else sys.stdout, flush=True)
    except (OSError, ValueError):
        return


def banner(*, demo: dict[str, Any], base_url: str, logs: str, seconds: float) -> str:
    """The text at the end of a successful start."""
    users: dict[str, dict[str, str]] = demo.get("users", {})
    width = max([len(user["username"]) for user in users.values()], default=0)
    lines = [
        "",
        f"Holdpoint is ready:  {base_url}/  (after {seconds:.1f} s)",
        f"  Admin              {base_url}/admin/",
        f"  API documentation  {base_url}/api/docs/",
        f"  Logs               {logs}",
        "  API keys           .venv/bin/python manage.py demo --json",
        "",
        "  Logins of the demo organization (username, password):",
        *(f"    {user['username']:<{width}}  {user['password']}" for user in users.values()),
        "",
        "Ctrl-C stops everything.",
    ]
    return "\n".join(lines)
