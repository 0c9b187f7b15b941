"""The venv of the DBOS reference, made once under var/bench. Its packages are not in Holdpoint's own venv."""

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
