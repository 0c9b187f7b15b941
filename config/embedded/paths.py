"""Where a stack has its files: one folder, and a second, short one for sockets if the first one's path is too long."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from config.embedded.errors import EmbeddedServerError

PROJECT = Path(__file__).resolve().parent.parent.parent

# The kernel allows about 104 bytes for a socket's whole path; the longest name below this folder takes 18.
SOCKET_FOLDER_LIMIT = 85


@dataclass(frozen=True, kw_only=True)
class StackPaths:
    """All files of one stack. `home` is absolute and resolved, so that it can be recognised in command lines."""

    home: Path

    @classmethod
    def from_setting(cls, *, value: str | None) -> "StackPaths":
        """The paths for HOLDPOINT_HOME as the user wrote it; `var/` in the project if it is not set."""
        return cls(home=Path(value or PROJECT / "var").expanduser().resolve())

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def metrics(self) -> Path:
        return self.run / "metrics"

    @property
    def runtime_file(self) -> Path:
        return self.run / "runtime.json"

    @property
    def lock_file(self) -> Path:
        return self.run / "lock"

    @property
    def secret_key_file(self) -> Path:
        return self.home / "secret_key"

    @property
    def postgres_data(self) -> Path:
        return self.home / "postgres"

    @property
    def valkey_data(self) -> Path:
        return self.home / "valkey"

    @property
    def sockets(self) -> Path:
        """The folder of the sockets: `run/`, or one below the temp folder, named after the home's hash."""
        if len(os.fsencode(self.run)) <= SOCKET_FOLDER_LIMIT:
            return self.run
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path(tempfile.gettempdir()).resolve() / f"holdpoint-{os.getuid()}-{digest}"

    @property
    def postgres_sockets(self) -> Path:
        return self.sockets / "pg"

    @property
    def valkey_socket(self) -> Path:
        return self.sockets / "valkey.sock"

    def create(self) -> None:
        """Creates the folders, private to this account."""
        for folder in (self.home, self.run, self.logs, self.sockets):
            make_private_folder(folder)
        # Anybody may create a folder of this name in the temp folder first, and would then own our sockets.
        if self.sockets.lstat().st_uid != os.getuid() and self.sockets != self.run:
            raise EmbeddedServerError(f"The folder {self.sockets} belongs to another account; remove it first.")


def make_private_folder(folder: Path) -> None:
    """Creates `folder` and its parents for this account alone. An existing one must be writable."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedServerError(f"Cannot make the folder {folder}: {error.strerror}.") from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise EmbeddedServerError(f"The folder {folder} is not writable for this account.")
