"""A list as CSV: streamed, bounded, and harmless in a spreadsheet."""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.admin.utils import label_for_field, lookup_field
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils.html import strip_tags

from governance.selectors.lists import in_batches

MOST_ROWS = 50_000
# What a spreadsheet takes for the beginning of a formula, its full-width forms too, behind blanks or not.
FORMULA = re.compile(r"^[\s\x00]*[=+\-@|%＝＋－＠]|^[\t\r\n]")
NUMBER = re.compile(r"^-?\d+(\.\d+)?$")
CUT = "This file has only the newest {:,} rows. Narrow the filter to export the others."


class Line:
    """csv wants something to write to; it gets back what it wrote."""

    def write(self, text: str) -> str:
        return text


def guarded(value: Any) -> str:
    """As text that no spreadsheet runs: what looks like a formula gets an apostrophe in front."""
    text = "" if value is None else str(value)
    if NUMBER.match(text):
        return text
    return f"'{text}" if FORMULA.match(text) else text


def export(*, model_admin: Any, names: Sequence[str], rows: QuerySet[Any], filename: str) -> StreamingHttpResponse:
    """`names` are the list's columns; the id comes first, for a row is found again by it."""
    chosen = ["id", *(name for name in names if name != "id")]
    head = [guarded(label_for_field(name, rows.model, model_admin)) for name in chosen]

    def read(row: Any) -> list[str]:
        return [guarded(_value(model_admin, name, row)) for name in chosen]

    # Asked for here, inside the request and its scope; read while the answer goes out.
    batches = in_batches(rows, limit=MOST_ROWS + 1, read=read)
    response = StreamingHttpResponse(_lines(head, batches), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}.csv"'
    response["Cache-Control"] = "no-store"
    return response


def _lines(head: list[str], batches: Iterator[list[list[str]]]) -> Iterator[str]:
    writer = csv.writer(Line())
    yield "\ufeff" + str(writer.writerow(head))
    written = 0
    for batch in batches:
        for cells in batch[: MOST_ROWS - written]:
            yield str(writer.writerow(cells))
        written += len(batch)
    if written > MOST_ROWS:
        yield str(writer.writerow([CUT.format(MOST_ROWS)]))


def _value(model_admin: Any, name: str, row: Any) -> str:
    try:
        _, attribute, value = lookup_field(name, row, model_admin)
    except ObjectDoesNotExist:
        return ""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    text = value if isinstance(value, str) else "" if value is None else str(value)
    return strip_tags(text) if hasattr(value, "__html__") or callable(attribute) else text
