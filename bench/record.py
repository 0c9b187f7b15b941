"""Appends a line of figures, with date, commit and machine size, to docs/measurements.md."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "measurements.md"
HEADER = "| date | commit | machine | what | figures |"


def record(*, name: str, figures: dict[str, Any]) -> None:
    text = PAGE.read_text() if PAGE.exists() else "# Measurements\n"
    if HEADER not in text:
        text = f"{text.rstrip()}\n\n{HEADER}\n|---|---|---|---|---|\n"
    shown = "; ".join(f"{key} {value}" for key, value in flatten(figures))
    line = f"| {datetime.now(UTC):%Y-%m-%d %H:%M} | {commit()} | {machine()} | {name} | {shown} |\n"
    PAGE.write_text(text.rstrip("\n") + "\n" + line)


def flatten(figures: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in figures.items():
        found += flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return found


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=PAGE.parent)
    return done.stdout.strip() or "unknown"


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB"
