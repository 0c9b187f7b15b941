"""Production: `check --deploy` is clean, and whatever is missing stops the start with its name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import BASE_DIR

pytestmark = pytest.mark.unit
VARIABLES = {
    "SECRET_KEY": "c1T9qWzX7mB4vN2kL8pR5sD3fG6hJ0yU1iO4aE7wQ2xZ5tY8rP3nM6",
    "DATABASE_URL": "postgresql://holdpoint:secret@db.example/holdpoint",
    "REDIS_URL": "redis://valkey.example:6379/0",
    "ALLOWED_HOSTS": "holdpoint.example",
    "HOLDPOINT_REGION": "US",
    "HOLDPOINT_METRICS_TOKEN": "a-token-for-prometheus",
    "HOLDPOINT_LEDGER_KEY_FILE": "/run/secrets/ledger.key",
}


def check(home: Path, **changes: str | None) -> "subprocess.CompletedProcess[str]":
    """`manage.py check --deploy` with these variables; None leaves one out."""
    chosen = {name: value for name, value in (VARIABLES | changes).items() if value is not None}
    inherited = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment = {
        **inherited,
        **chosen,
        "HOLDPOINT_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "config.settings.production",
    }
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_deployment_check_is_clean(tmp_path: Path) -> None:
    found = check(tmp_path)
    assert found.returncode == 0, found.stderr
    assert "no issues" in found.stdout


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_a_missing_variable_is_named_and_stops_the_start(tmp_path: Path, name: str) -> None:
    found = check(tmp_path, **{name: None})
    assert found.returncode != 0
    assert name in found.stderr.splitlines()[-1]


def test_an_empty_metrics_token_is_not_let_through(tmp_path: Path) -> None:
    found = check(tmp_path, HOLDPOINT_METRICS_TOKEN="")
    assert found.returncode != 0
    assert "HOLDPOINT_METRICS_TOKEN" in found.stderr
