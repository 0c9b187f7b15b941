"""The environment of a stack's processes, its secret, and runtime.json for other terminals."""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from config.embedded.paths import PROJECT, StackPaths
from config.supervisor.servers import Servers


def stack_secret_key(*, paths: StackPaths) -> str:
    """The signing secret of this folder, created once."""
    with contextlib.suppress(FileNotFoundError):
        found = paths.secret_key_file.read_text().strip()
        if found:
            return found
    made = secrets.token_urlsafe(48)
    write_private(paths.secret_key_file, made + "\n")
    return made


def stack_environment(
    *, paths: StackPaths, servers: Servers, port: int, inherited: Mapping[str, str]
) -> dict[str, str]:
    """The environment of web, worker, beat and the steps before them."""
    return {
        **inherited,
        **compiled_modules(inherited=inherited),
        "DJANGO_SETTINGS_MODULE": "config.settings.local",
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        "SECRET_KEY": inherited.get("SECRET_KEY") or stack_secret_key(paths=paths),
        "HOLDPOINT_HOME": str(paths.home),
        "HOLDPOINT_BIND": f"127.0.0.1:{port}",
        "PORT": str(port),
        "PROMETHEUS_MULTIPROC_DIR": str(paths.metrics),
        "PYTHONPATH": str(PROJECT),
        "PYTHONUNBUFFERED": "1",
        # If setproctitle is installed, it would overwrite the environment by which we find our processes.
        "SPT_NOENV": "1",
    }


def compiled_modules(*, inherited: Mapping[str, str]) -> dict[str, str]:
    """If the user wants no compiled modules beside the sources, they go to `.venv`: compiling at every start takes a
    second."""
    if not inherited.get("PYTHONDONTWRITEBYTECODE"):
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(PROJECT / ".venv" / "compiled")}


def empty_metrics(*, paths: StackPaths) -> None:
    """Files of processes that are gone would be counted as if they still ran."""
    shutil.rmtree(paths.metrics, ignore_errors=True)
    paths.metrics.mkdir(mode=0o700)


def write_runtime(*, paths: StackPaths, servers: Servers, base_url: str) -> None:
    """Tells `manage.py` in other terminals where the servers are."""
    facts = {
        "database_url": servers.database_url,
        "database_owner_url": servers.database_owner_url,
        "redis_url": servers.redis_url,
        "base_url": base_url,
        "pid": os.getpid(),
    }
    write_private(paths.runtime_file, json.dumps(facts, indent=2) + "\n")


def remove_runtime(*, paths: StackPaths) -> None:
    paths.runtime_file.unlink(missing_ok=True)


def write_private(file: Path, text: str) -> None:
    """Replaces `file` atomically. At no moment can another account read it."""
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as output:
        output.write(text)
        output.flush()
        # Otherwise a power failure after the rename could leave an empty file, and the secret would be lost.
        os.fsync(output.fileno())
    draft.replace(file)
