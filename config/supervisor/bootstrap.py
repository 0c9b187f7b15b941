"""Creates `.venv` and installs the locked packages if they changed. Standard library only, because it runs first."""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".holdpoint-installed"
REQUIREMENTS = PROJECT / "requirements" / "dev.txt"


def wanted() -> str:
    """A text that changes whenever the locked packages or the Python version change."""
    return f"{sys.version_info[0]}.{sys.version_info[1]} {hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()}"


def is_installed() -> bool:
    """Whether the last install of exactly these packages succeeded."""
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two commands that start together must not install into the same folder."""
    descriptor = os.open(REQUIREMENTS.parent, os.O_RDONLY)
    try:
        # The kernel releases it when the process ends, also by kill -9; a lock file would stay.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _run_quietly(command: list[str], *, what: str) -> None:
    """Shows a program's output only if it fails."""
    with tempfile.TemporaryFile() as output:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode
        if code:
            output.seek(0)
            sys.stderr.write(output.read().decode(errors="replace"))
            sys.exit(f"Error: {what} failed; what it printed is above.")


def _make_venv() -> None:
    """A new `.venv` without pip: this Python's pip installs into it, and Debian may lack ensurepip."""
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(VENV)


def _pip_command() -> list[str]:
    """This Python's pip, working on `.venv`. If this Python has no pip, ensurepip installs one."""
    found = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if found.returncode == 0:
        return [sys.executable, "-m", "pip", "--python", str(PYTHON)]
    _run_quietly([str(PYTHON), "-m", "ensurepip"], what="making pip available")
    return [str(PYTHON), "-m", "pip"]


def install() -> None:
    """Installs the locked packages, checks their hashes, and notes that it succeeded."""
    print("Installing the locked packages into .venv (a minute or two, only when they changed) …", flush=True)
    # First: an interrupted install must not look finished.
    STAMP.unlink(missing_ok=True)
    if not PYTHON.exists() or subprocess.run([str(PYTHON), "-c", ""], check=False).returncode:
        _make_venv()
    # Modules are compiled when they are first imported, which most never are. This saves a quarter of the time.
    options = ["install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile", "--require-hashes"]
    _run_quietly([*_pip_command(), *options, "-r", str(REQUIREMENTS)], what="pip install")
    STAMP.write_text(wanted())


def main() -> None:
    """Installs what is missing. Takes a few milliseconds if nothing is."""
    if sys.version_info < (3, 11):  # noqa: UP036 - the whole point is to run under what is there
        sys.exit("Error: Holdpoint needs Python 3.11 or newer.")
    with one_at_a_time():
        if not is_installed():
            install()


if __name__ == "__main__":
    main()
