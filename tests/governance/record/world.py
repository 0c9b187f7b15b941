"""A record with a row in as many governed tables as possible, made by the services themselves; and the command."""

import json
from io import StringIO
from typing import Any

from django.core.management import CommandError, call_command

from tests.governance.ledger.sealing import seal_all


def record_verified(*options: str) -> dict[str, Any]:
    """What the command prints; its exit code says the same."""
    out, code = StringIO(), 0
    try:
        call_command("verify_record", "--json", "--processes", "1", *options, stdout=out)
    except CommandError as error:
        code = error.returncode
    found: dict[str, Any] = json.loads(out.getvalue())
    assert code == (0 if found["valid"] else 1)
    return found


def sealed_and_valid() -> None:
    seal_all()
    found = record_verified("--full")
    assert found["valid"], found["faults"]
