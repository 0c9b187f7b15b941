"""The smallest environment with which production starts, as docs/deploy.md lists it."""

import os
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

VARIABLES = {
    "DJANGO_SETTINGS_MODULE": "config.settings.production",
    "SECRET_KEY": "c1T9qWzX7mB4vN2kL8pR5sD3fG6hJ0yU1iO4aE7wQ2xZ5tY8rP3nM6",
    "DATABASE_URL": "postgresql://holdpoint_app:Zk3vQ8tR1m@db.internal/holdpoint",
    "REDIS_URL": "redis://:Wp7xN4sJ2c@valkey.internal:6379/0",
    "ALLOWED_HOSTS": "holdpoint.clinic.test",
    "HOLDPOINT_REGION": "US",
    "HOLDPOINT_METRICS_TOKEN": "Hq5bT0yE9uK3wL6zR8dM",
    "HOLDPOINT_LEDGER_NAME": "clinic.test/ledger",
    "HOLDPOINT_LEDGER_KEY_FILE": "ledger.key",
    "HOLDPOINT_WITNESSES": "file:///mnt/elsewhere/heads.jsonl",
}
OURS = ("HOLDPOINT_", "OTEL_", "SENTRY_", "CSRF_", "SECURE_")


def minimal_environment(folder: Path) -> dict[str, str]:
    """With a key file in `folder`, and nothing of ours from outside."""
    key = folder / "ledger.key"
    key.write_text(b64encode(sha256(b"a key of these tests").digest()).decode())
    key.chmod(0o600)
    left = (*VARIABLES, "BROKER_URL", "LOG_LEVEL", "DATABASE_OWNER_URL", "PROMETHEUS_MULTIPROC_DIR")
    inherited = {name: value for name, value in os.environ.items() if name not in left and not name.startswith(OURS)}
    return {
        **inherited,
        **VARIABLES,
        "HOLDPOINT_LEDGER_KEY_FILE": str(key),
        "HOLDPOINT_HOME": str(folder / "home"),
    }
