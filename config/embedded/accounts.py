"""PostgreSQL refuses to run as root: which account it runs as then, and how that account gets access to its files."""

import os
import pwd
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.embedded.errors import EmbeddedServerError

# Other programs run as `nobody` too and could read the files of the server, so its own account comes first.
UNPRIVILEGED_ACCOUNTS = ("postgres", "nobody", "daemon")


@dataclass(frozen=True, kw_only=True)
class Account:
    """The account that a server runs as if it cannot run as ours."""

    uid: int
    gid: int

    def own(self, path: Path) -> None:
        """Makes the account the owner of one folder or file."""
        os.chown(path, self.uid, self.gid)


def account_for(*, data: Path) -> Account | None:
    """None: run it as ourselves. As root: the owner of existing data, else an account without rights."""
    if os.geteuid() != 0:
        return None
    if data.exists() and data.stat().st_uid != 0:
        found = data.stat()
        return Account(uid=found.st_uid, gid=found.st_gid)
    for name in UNPRIVILEGED_ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    raise EmbeddedServerError(
        "PostgreSQL does not run as root and there is no account `nobody`: use another, or set DATABASE_URL."
    )


def popen_options(account: Account | None) -> dict[str, Any]:
    """The arguments of `subprocess.Popen` that make a process run as `account`."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def open_the_way(target: Path) -> list[Path]:
    """Lets other accounts pass through the folders above `target` (o+x), never list them (o+r). Returns the changed
    ones."""
    changed = []
    for folder in target.parents:
        mode = stat.S_IMODE(folder.stat().st_mode)
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)
            changed.append(folder)
    return changed


def make_readable(folders: Iterable[Path]) -> None:
    """Lets other accounts read what is in `folders`: with a strict umask at install time they could not run the
    programs."""
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            # chmod follows links, which may lead out of the folder.
            if path.is_symlink():
                continue
            mode = stat.S_IMODE(path.stat().st_mode)
            wanted = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
            if wanted != mode:
                path.chmod(wanted)
