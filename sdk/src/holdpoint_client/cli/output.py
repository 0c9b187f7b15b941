"""Tables for people, JSON for programs. Nothing that the server sends can steer the terminal."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

WIDEST = 60


class Screen:
    def __init__(self, *, json: bool) -> None:
        self.json = json

    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], nothing: str) -> None:
        if self.json:
            print(json.dumps(list(rows), indent=2))
        elif not rows:
            print(nothing)
        else:
            print(text_table(rows, columns))

    def one(self, document: Mapping[str, Any]) -> None:
        if self.json:
            print(json.dumps(document, indent=2))
            return
        shown = {name: value for name, value in document.items() if value not in (None, "", [], {})}
        width = max((len(name) for name in shown), default=0)
        for name, value in shown.items():
            print(f"{name:{width}}  {cell(value, 10_000)}")

    def say(self, text: str) -> None:
        """For people only: a program reads the document."""
        if not self.json:
            print(printable(text))

    def fail(self, text: str, code: int) -> int:
        if self.json:
            print(json.dumps({"error": text, "exit_code": code}), file=sys.stderr)
        else:
            print(text, file=sys.stderr)
        return code


def text_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    cells = [[cell(lookup(row, column), WIDEST) for column in columns] for row in rows]
    titles = [column.rpartition(".")[2] if column.count(".") else column for column in columns]
    widths = [max(len(line[at]) for line in [titles, *cells]) for at in range(len(columns))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in [titles, *cells]
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def lookup(row: Mapping[str, Any], path: str) -> Any:
    found: Any = row
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def cell(value: Any, widest: int) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > 19 and text[10:11] == "T" and text[4:5] == "-":  # moments without their fractions
        text = text[:19].replace("T", " ")
    text = printable(text)
    return text if len(text) <= widest else text[: widest - 1] + "…"


def printable(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)
