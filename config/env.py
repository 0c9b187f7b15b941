"""Configuration from outside: the environment first, then what `make run` wrote to HOLDPOINT_HOME. Also builds the
settings of database, broker and storages from it."""

import json
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

# Without it a request to a host that drops packets would wait for minutes instead of being answered with 503.
DATABASE_CONNECT_TIMEOUT_SECONDS = 3
BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()


def home() -> Path:
    """The folder for data, logs and run-time files; `var/` in the project unless HOLDPOINT_HOME says otherwise."""
    return Path(env.str("HOLDPOINT_HOME", default=str(BASE_DIR / "var"))).expanduser().resolve()


@cache
def runtime() -> dict[str, Any]:
    """What a running `make run` wrote for other terminals; empty if nothing runs from this folder."""
    path = home() / "run" / "runtime.json"
    if _is_production():
        return {}
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {}


def server_url(*, variable: str, key: str) -> str:
    """The address of a server: `variable` from the environment, else `key` of the running stack."""
    url = env.str(variable, default="") or runtime().get(key, "")
    if not url:
        raise ImproperlyConfigured(
            f"{variable} is missing: set it to the server's address."
            if _is_production()
            else f"{variable} is not set and nothing runs from {home()}: start `make run`, or set {variable}."
        )
    return str(url)


def database_settings(url: str) -> dict[str, Any]:
    """Django's settings for the database at `url`. Each thread keeps its connection."""
    found: dict[str, Any] = env.db_url_config(url, engine="config.postgresql")
    # psycopg must prepare nothing: governance.sql.wire has prepared statements of its own, and psycopg would discard
    # all prepared statements of the connection when it clears its own.
    usual = {"connect_timeout": DATABASE_CONNECT_TIMEOUT_SECONDS, "prepare_threshold": None}
    options = usual | found.get("OPTIONS", {})
    plain = env.bool("HOLDPOINT_PLAIN_CURSORS", default=False)  # read by governance.sql.statements
    return found | {"ATOMIC_REQUESTS": False, "CONN_MAX_AGE": 600, "OPTIONS": options, "PLAIN_CURSORS": plain}


def database_mark(settings: dict[str, Any]) -> str:
    """A short hash of the database's address: the same for every role and after a restore."""
    parts = [settings.get(name) for name in ("HOST", "PORT", "NAME")] + [settings.get("OPTIONS", {}).get("host")]
    where = "|".join(str(part or "") for part in parts)
    return sha256(where.encode()).hexdigest()[:12]


def local_witnesses(folder: Path, mark: str) -> str:
    """HOLDPOINT_WITNESSES of `make run`: a file for this database, and the witness process if its facts are there."""
    entries: list[Any] = [(folder / f"{mark}.jsonl").as_uri()]
    with suppress(OSError, ValueError, TypeError):
        entries.append(dict(json.loads((folder / "cosigner.json").read_text())))
    return json.dumps(entries)


def _is_production() -> bool:
    """Production takes everything from its environment: it must not pick up what a local run left behind."""
    return env.str("DJANGO_SETTINGS_MODULE", default="").endswith(".production")


def secret_key() -> str:
    """The signing secret: SECRET_KEY, else the file that `make run` created."""
    value = env.str("SECRET_KEY", default="")
    if value or _is_production():
        if not value:
            raise ImproperlyConfigured("SECRET_KEY is missing: set it to 50 random characters or more.")
        return value
    try:
        return (home() / "secret_key").read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured("SECRET_KEY is not set; `make run` makes one for local use.") from error


def _redis_scheme_url(url: str, *, scheme: str) -> str:
    """A Unix-socket address in the form that another library (kombu, limits) wants. TCP addresses stay as they are."""
    return scheme + url.removeprefix("unix://") if url.startswith("unix://") else url


def broker_url(url: str) -> str:
    """The queue's address in Celery's form."""
    return _redis_scheme_url(url, scheme="redis+socket://").replace("?db=", "?virtual_host=")


def broker_options(url: str) -> dict[str, Any]:
    """Short timeouts: a request must not wait for a broker that does not answer. If a wake-up is lost, a scheduled task
    finds the row."""
    if url.startswith("amqp"):
        # No publisher confirms: a server that is out of memory confirms nothing, and the request that sends the wake-up
        # would wait for it.
        return {"connect_timeout": 3, "write_timeout": 5}
    # After an hour a message that was not acknowledged is delivered again. A second delivery does no harm: lease and
    # fence decide, not the message.
    # A worker asks its queue for so many seconds at a time: a message is there at once, an empty queue costs nothing.
    return {"visibility_timeout": 3600, "socket_timeout": 5, "socket_connect_timeout": 3, "polling_interval": 4}


def evidence_storage() -> dict[str, Any]:
    """Where evidence bundles are stored."""
    return _storage(
        backend=env.str("HOLDPOINT_EVIDENCE_STORAGE", default=""),
        options=env.json("HOLDPOINT_EVIDENCE_OPTIONS", default={}),
        folder=env.str("HOLDPOINT_EVIDENCE_DIR", default=str(home() / "evidence")),
    )


def exports_storage() -> dict[str, Any]:
    """Where archives of exports are stored."""
    return _storage(
        backend=env.str("HOLDPOINT_EXPORTS_STORAGE", default=""),
        options=env.json("HOLDPOINT_EXPORTS_OPTIONS", default={}),
        folder=env.str("HOLDPOINT_EXPORTS_DIR", default=str(home() / "exports")),
    )


def _storage(*, backend: str, options: Any, folder: str) -> dict[str, Any]:
    """Any Django storage by its path and options (JSON), else files that only their owner can read."""
    if backend:
        return {"BACKEND": backend, "OPTIONS": options}
    files = {"location": folder, "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
    return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": files}
