"""Exports: requested with a reason, built in the background as a zip, downloaded, and removed when they expire."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import file_digest, sha256
from tempfile import TemporaryFile
from typing import IO, Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import structlog
from django.core.files import File
from django.core.files.storage import Storage
from django.core.serializers.json import DjangoJSONEncoder
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, Model, QuerySet

from governance.boundary.services import note_create
from governance.enforcement.models import SnapshotBroken
from governance.ledger.services import actor_reference, ledger_append
from governance.outside.wake_up import wake_up
from governance.retention.errors import ExportGone, ExportNotReady
from governance.retention.hooks import ExportTable, export_left_out, export_tables
from governance.retention.models import ContextReference, ExportRequest
from governance.retention.selectors.retention import terms_for
from governance.retention.services.legal_hold import context_commitment
from governance.retention.states import ExportState
from governance.sql.guards import refused_by_guard
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import CLOCK, SYSTEM, Actor
from reasoncodes.base.errors import NotFound
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require

FORMAT = "holdpoint-export-v1"
# Rows in memory at a time, and rows per report of progress.
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
    """What an archive contains: everything about a context reference, or without one everything of the organization."""

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
    """Write the archive; `progress(rows)` is called after every page."""
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
    # zip64, because the size is not known before; without it a table beyond 4 GiB would fail at its end.
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
    """The rows in pages, by primary key."""
    # Page by page after the last key: neither memory nor a cursor grows with the table. The price is that rows written
    # meanwhile may be in one table and not in another (docs/retention.md).
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
    return {table.called.get(name, name): _value(row, name) for name in names}


def _value(row: Model, name: str) -> Any:
    try:
        return getattr(row, name)
    except SnapshotBroken:  # the parts of this value are gone; the rest of the row is still exported
        return None


def _write(archive: ZipFile, name: str, text: str) -> None:
    archive.writestr(_entry(name), text.encode())


def _entry(name: str) -> ZipInfo:
    """A zip entry with a fixed time: the same rows give the same bytes."""
    entry = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


TASK = "governance.tasks.export_build"
# How long the scheduled task leaves an export without progress to its worker. After that the worker counts as dead.
PATIENCE = timedelta(minutes=2)
TRIES = 5
# Exports per run of a scheduled task; the next run takes the rest.
BATCH = 20
Now = Callable[[], datetime]
log = structlog.get_logger("holdpoint.export")


def export_request(
    *, actor: Actor, at: datetime, organization: Organization, context_ref: str = "", reason_code: str, note: str = ""
) -> ExportRequest:
    """Request an export of everything about a context reference, or of the whole organization. The due date comes from
    the regional profile."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    with transaction.atomic():
        reason_code_require(organization_id=organization.id, scope=Scope.INTERVENTION, code=reason_code, note=note)
        commitment = (
            context_commitment(organization_id=organization.id, reference=context_ref, pointer="/context_ref")
            if context_ref
            else ""
        )
        row = ExportRequest(
            organization=organization,
            commitment=commitment,
            reason_code=reason_code,
            note=note_create(organization_id=organization.id, text=note),
            requested_by_kind=actor.kind.value,
            requested_by_ref=actor_reference(actor),
            requested_at=at,
            due_at=at + timedelta(days=terms_for(organization=organization).terms.export_days),
            resume_at=at + PATIENCE,
        )
        row.save(force_insert=True)
        said = {"note_sha256": row.note.sha256 if row.note else None}
        _record(row, "export.requested", actor=actor, at=at, due_at=row.due_at.isoformat(), **said)
        wake_up(TASK, row.id)
    return row


def export_build(*, export_id: UUID, now: Now, storage: Storage, keep_for: timedelta) -> bool:
    """Build the archive. Safe to run twice or in several workers: the first to set the row ready wins."""
    row = ExportRequest.objects.select_related("organization").filter(id=export_id, state=ExportState.REQUESTED).first()
    if row is None:
        return False
    # Counted before the try: an archive that kills its worker must not be tried for ever.
    ExportRequest.objects.filter(id=row.id).update(tries=F("tries") + 1, resume_at=now() + PATIENCE, done=0)
    try:
        return _build(row, now, storage, keep_for)
    # If the database is away, nothing could be recorded, and the scheduled task tries again. Everything else, such as
    # the storage's own errors, counts as a failed try.
    except Exception as error:
        if isinstance(error, OperationalError | InterfaceError) and not refused_by_guard(error):
            raise
        log.error("export_failed", export=str(row.id), error=type(error).__name__)
        if row.tries + 1 >= TRIES:
            _fail(row.id, now())
        return False


def _build(row: ExportRequest, now: Now, storage: Storage, keep_for: timedelta) -> bool:
    extent = _extent(row)
    ExportRequest.objects.filter(id=row.id).update(total=extent.count())

    def progress(rows: int) -> None:
        # Also moves `resume_at`: as long as there is progress, no second worker starts.
        ExportRequest.objects.filter(id=row.id).update(done=F("done") + rows, resume_at=now() + PATIENCE)

    # On disk, because an archive can be larger than memory; and outside any transaction.
    with TemporaryFile() as target:
        archive_write(extent=extent, target=target, export_id=row.id, at=row.requested_at, progress=progress)
        size = target.tell()
        target.seek(0)
        digest = file_digest(target, "sha256").hexdigest()  # type: ignore[arg-type]
        target.seek(0)
        name = storage.save(f"{row.organization.slug}/{row.id}.zip", File(target))
    if not _ready(row.id, name, size, digest, now(), keep_for):
        # Another worker was first. No row names this file, so nothing would ever remove it.
        storage.delete(name)
        return False
    return True


def _extent(row: ExportRequest) -> Extent:
    if not row.commitment:
        return Extent(row.organization)
    known = ContextReference.objects.get(organization_id=row.organization_id, commitment=row.commitment)
    return Extent(row.organization, known.reference)


def _ready(export_id: UUID, name: str, size: int, digest: str, at: datetime, keep_for: timedelta) -> bool:
    with transaction.atomic():
        row = _lock(export_id, ExportState.REQUESTED)
        if row is None:
            return False
        row.finish()
        row.file, row.size, row.sha256, row.ready_at, row.expires_at = name, size, digest, at, at + keep_for
        row.save(update_fields=["state", "file", "size", "sha256", "ready_at", "expires_at"])
        _record(row, "export.built", actor=SYSTEM, at=at, sha256=digest, size=size)
    return True


def _fail(export_id: UUID, at: datetime) -> None:
    with transaction.atomic():
        row = _lock(export_id, ExportState.REQUESTED)
        if row is not None:
            row.fail()
            row.save(update_fields=["state"])
            _record(row, "export.failed", actor=SYSTEM, at=at, tries=row.tries)


def _lock(export_id: UUID, state: ExportState) -> ExportRequest | None:
    """The row, locked FOR NO KEY UPDATE, if it is still in this state: of two workers only one changes it."""
    rows = ExportRequest.objects.select_for_update(no_key=True, of=("self",))
    return rows.filter(id=export_id, state=state).first()


def exports_due(*, at: datetime) -> list[UUID]:
    """Unfinished exports that no worker has touched for a while."""
    rows = ExportRequest.objects.filter(state=ExportState.REQUESTED, resume_at__lte=at, tries__lt=TRIES)
    return list(rows.order_by("resume_at").values_list("id", flat=True)[:BATCH])


def export_open(*, actor: Actor, at: datetime, export_id: UUID, storage: Storage) -> tuple[ExportRequest, IO[Any]]:
    """The archive, for an actor who may read the record. The download is recorded in the ledger."""
    with transaction.atomic():
        row = tenant_get(ExportRequest, export_id)
        if not actor.may_act_in(row.organization_id):
            raise NotFound
        if row.state in {ExportState.REQUESTED, ExportState.FAILED}:
            raise ExportNotReady
        if row.state == ExportState.EXPIRED or (row.expires_at is not None and row.expires_at <= at):
            raise ExportGone
        # Opened before it is recorded: if the storage does not answer, nothing was downloaded.
        stream: IO[Any] = storage.open(row.file, "rb")
        _record(row, "export.downloaded", actor=actor, at=at, sha256=row.sha256)
    return row, stream


def exports_expire(*, at: datetime, storage: Storage) -> int:
    """Remove the files of expired exports. Row and SHA-256 stay. Returns how many."""
    due = ExportRequest.objects.filter(state=ExportState.READY, expires_at__lte=at).order_by("expires_at")
    ids = list(due.values_list("id", flat=True)[:BATCH])
    return sum(_expire(one, at, storage) for one in ids)


def _expire(export_id: UUID, at: datetime, storage: Storage) -> bool:
    with transaction.atomic():
        row = _lock(export_id, ExportState.READY)
        if row is None or row.expires_at is None or row.expires_at > at:
            return False
        # Before the commit: if it fails, the row stays ready and is tried again. The other way round, the file could
        # stay for ever.
        storage.delete(row.file)
        row.expire()
        row.save(update_fields=["state"])
        # The entry's time is the deadline, not the time of the scheduled task (law 5).
        _record(row, "export.expired", actor=CLOCK, at=row.expires_at, reason_code="export_expired")
    return True


def _record(row: ExportRequest, action: str, *, actor: Actor, at: datetime, **more: Any) -> None:
    ledger_append(
        action=action,
        organization_id=row.organization_id,
        subject_type="export_request",
        subject_id=row.id,
        actor=actor,
        at=at,
        reason_code=more.pop("reason_code", row.reason_code),
        payload={"commitment": row.commitment, **more},
    )
