"""Writes the archive of an export: a zip of NDJSON files with a manifest, row by row, in bounded memory.

The format is described in docs/retention.md, and in the README.txt of every archive.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import IO, Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, QuerySet

from governance.models import Organization
from governance.models.decision import SnapshotBroken
from governance.subjects import ExportTable, export_left_out, export_tables

FORMAT = "holdpoint-export-v1"
PAGE = 500
README = """Holdpoint export.

manifest.json names the organization, what the export is about, and every file with its number of rows and SHA-256.
Each other file holds one table: one JSON object per line, ordered by primary key. Names are those of the API and of
docs/retention.md. Bytes are lower-case hex, moments UTC in ISO 8601. A ledger entry's payload and nonce are null when
they were erased by order. Secrets (hashes of keys, salts) are not in it.
"""
Progress = Callable[[int], None]


class Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        if isinstance(o, bytes | bytearray | memoryview):
            return bytes(o).hex()
        return super().default(o)


@dataclass(frozen=True, slots=True)
class Extent:
    """What an archive is about; without a reference everything of the organization."""

    organization: Organization
    reference: str = ""

    def tables(self) -> list[ExportTable]:
        return [table for table in export_tables() if not self.reference or table.about is not None]

    def rows(self, table: ExportTable) -> QuerySet[Any]:
        rows = table.model._default_manager.filter(**{table.organization: self.organization.id})
        if self.reference and table.about is not None:
            rows = rows.filter(table.about(self.organization.id, self.reference))
        return rows

    def count(self) -> int:
        return sum(self.rows(table).count() for table in self.tables())


def archive_write(*, extent: Extent, target: IO[bytes], export_id: UUID, at: datetime, progress: Progress) -> None:
    """`progress(rows)` after every page."""
    files: list[dict[str, Any]] = []
    with ZipFile(target, "w", compression=ZIP_DEFLATED) as archive:
        _write(archive, "README.txt", README)
        for table in extent.tables():
            files.append(_table(archive, extent, table, progress))
        manifest = {
            "format": FORMAT,
            "export_id": str(export_id),
            "organization": {"id": str(extent.organization.id), "slug": extent.organization.slug},
            "about": {"context_ref": extent.reference} if extent.reference else "organization",
            "generated_at": at.isoformat(),
            "files": files,
            "left_out": export_left_out(),
        }
        _write(archive, "manifest.json", json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def _table(archive: ZipFile, extent: Extent, table: ExportTable, progress: Progress) -> dict[str, Any]:
    digest, count = sha256(), 0
    with archive.open(_entry(table.name), "w", force_zip64=True) as stream:
        for page in _pages(extent.rows(table)):
            for row in page:
                line = json.dumps(_fields(row, table), cls=Encoder, sort_keys=True, ensure_ascii=False) + "\n"
                stream.write(line.encode())
                digest.update(line.encode())
            count += len(page)
            progress(len(page))
    return {"name": table.name, "rows": count, "sha256": digest.hexdigest()}


def _pages(rows: QuerySet[Any]) -> Iterator[list[Model]]:
    """By key, so that neither memory nor a cursor grows with the table."""
    last = None
    while True:
        found = rows.order_by("pk") if last is None else rows.filter(pk__gt=last).order_by("pk")
        page = list(found[:PAGE])
        if page:
            yield page
        if len(page) < PAGE:
            return
        last = page[-1].pk


def _fields(row: Model, table: ExportTable) -> dict[str, Any]:
    names = [field.attname for field in row._meta.concrete_fields if field.attname not in table.without]
    return {name: _value(row, name) for name in names}


def _value(row: Model, name: str) -> Any:
    try:
        return getattr(row, name)
    except SnapshotBroken:  # what it is put together from is gone; the rest of the row still counts
        return None


def _write(archive: ZipFile, name: str, text: str) -> None:
    archive.writestr(_entry(name), text.encode())


def _entry(name: str) -> ZipInfo:
    """With a fixed moment: the same rows give the same bytes."""
    entry = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry
