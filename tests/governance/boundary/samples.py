"""Reads the two lists of sample values: `harmless.txt` and `forbidden.txt`."""

from collections.abc import Iterator
from pathlib import Path


def samples(name: str) -> Iterator[tuple[str, str]]:
    """Kind and value of every line."""
    kind = ""
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind = line[3:]
        elif not line.startswith("# "):
            yield kind, line


HARMLESS = list(samples("harmless.txt"))
FORBIDDEN = list(samples("forbidden.txt"))
