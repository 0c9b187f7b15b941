"""Makes `.venv` and installs the locked packages when they changed. Standard library only: it runs first."""

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
    """Changes whenever the locked packages or the Python they are installed for change."""
    return f"{sys.version_info[0]}.{sys.version_info[1]} {hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()}"


def is_installed() -> bool:
    """Whether the last install of exactly these packages went through."""
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two commands started together must not install into the same folder."""
    descriptor = os.open(REQUIREMENTS.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _run_quietly(command: list[str], *, what: str) -> None:
    """Show a program's output only if it fails."""
    with tempfile.TemporaryFile() as output:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode
        if code:
            output.seek(0)
            sys.stderr.write(output.read().decode(errors="replace"))
            sys.exit(f"Error: {what} failed; what it printed is above.")


def _make_venv() -> None:
    """A fresh `.venv`, without pip: this Python's pip installs into it, and Debian may lack ensurepip."""
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(VENV)


def _pip_command() -> list[str]:
    """This Python's pip, working on `.venv`; a Python without pip brings one along as ensurepip."""
    found = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if found.returncode == 0:
        return [sys.executable, "-m", "pip", "--python", str(PYTHON)]
    _run_quietly([str(PYTHON), "-m", "ensurepip"], what="making pip available")
    return [str(PYTHON), "-m", "pip"]


def install() -> None:
    """Install the locked packages, checked against their hashes, and remember that it went through."""
    print("Installing the locked packages into .venv (a minute or two, only when they changed) …", flush=True)
    STAMP.unlink(missing_ok=True)
    if not PYTHON.exists() or subprocess.run([str(PYTHON), "-c", ""], check=False).returncode:
        _make_venv()
    # Compiled when they are first loaded, which most modules never are: a quarter of the time.
    options = ["install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile", "--require-hashes"]
    _run_quietly([*_pip_command(), *options, "-r", str(REQUIREMENTS)], what="pip install")
    STAMP.write_text(wanted())


def main() -> None:
    """Do what is missing; nothing, in a few milliseconds, when all is there."""
    if sys.version_info < (3, 11):  # noqa: UP036 - the whole point is to run under what is there
        sys.exit("Error: Holdpoint needs Python 3.11 or newer.")
    with one_at_a_time():
        if not is_installed():
            install()


if __name__ == "__main__":
    main()
