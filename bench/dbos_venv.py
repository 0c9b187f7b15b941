"""The venv of the reference: made once under var/bench, with nothing of it in Holdpoint's own."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "var" / "bench" / "dbos-venv"
PACKAGES = ["dbos==3.3.0", "psycopg[binary]"]


def dbos_python() -> str:
    """The interpreter that has DBOS."""
    python = FOLDER / "bin" / "python"
    ready = FOLDER / "holdpoint-bench-ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        ready.touch()
    return str(python)
