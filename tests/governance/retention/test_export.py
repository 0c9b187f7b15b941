"""Exports: complete, re-readable, of one organization only, expiring; every table is in it or said to be left out."""

import json
from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID
from zipfile import ZipFile

import pytest
from django.apps import apps
from django.core.files.storage import FileSystemStorage
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.retention.hooks import export_left_out, export_tables
from governance.retention.models import ExportRequest
from governance.retention.services.export import (
    PAGE,
    TRIES,
    Extent,
    archive_write,
    export_build,
    export_open,
    export_request,
    exports_due,
    exports_expire,
)
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager, every_tenant
from tests.cast import Cast
from tests.governance.retention.support import RECENT, Clinic, actions
from tests.workflows.running import Running

WEEK = timedelta(days=7)


@pytest.fixture
def storage(tmp_path: Path) -> FileSystemStorage:
    return FileSystemStorage(location=str(tmp_path))


def ask(clinic: Clinic, reference: str = "") -> ExportRequest:
    with every_tenant():
        return export_request(
            actor=clinic.operator,
            at=timezone.now(),
            organization=clinic.organization,
            context_ref=reference,
            reason_code="data_subject_request",
        )


def build(row: ExportRequest, storage: FileSystemStorage) -> ExportRequest:
    with every_tenant():
        assert export_build(export_id=row.id, now=timezone.now, storage=storage, keep_for=WEEK)
        return ExportRequest.objects.get(id=row.id)


def contents(row: ExportRequest, storage: FileSystemStorage) -> dict[str, Any]:
    with storage.open(row.file) as stream:
        data = stream.read()
    assert sha256(data).hexdigest() == row.sha256
    with ZipFile(BytesIO(data)) as archive:
        found: dict[str, Any] = {"manifest.json": json.loads(archive.read("manifest.json"))}
        for entry in found["manifest.json"]["files"]:
            text = archive.read(entry["name"])
            assert sha256(text).hexdigest() == entry["sha256"]
            found[entry["name"]] = [json.loads(line) for line in text.splitlines()]
            assert len(found[entry["name"]]) == entry["rows"]
        assert set(archive.namelist()) == {*found, "README.txt"}
    return found


def tenant_models() -> set[str]:
    """Every table that belongs to an organization in any way."""
    found = set()
    for model in apps.get_models():
        columns = {field.name for field in model._meta.get_fields()}
        if isinstance(model._default_manager, TenantManager) or {"organization", "content_object"} & columns:
            found.add(model._meta.label_lower)
    return found


def test_every_table_with_an_organization_is_exported_or_left_out_on_purpose() -> None:
    exported = {table.model._meta.label_lower for table in export_tables()}
    assert not exported & set(export_left_out())
    ours = {label for label in tenant_models() if label.partition(".")[0] not in {"guardian", "auth"}}
    assert ours - exported - set(export_left_out()) == set()
    assert exported - ours - {"governance.organization"} == set()


def test_an_organizations_archive_has_all_rows_of_all_tables(clinic: Clinic, storage: FileSystemStorage) -> None:
    clinic.denied(1), clinic.denied(2, moment=RECENT)
    row = build(ask(clinic), storage)
    found = contents(row, storage)
    assert found["manifest.json"]["about"] == "organization"
    assert len(found["attempts.attempt.ndjson"]) == 2
    assert {one["patient_context_ref"] for one in found["attempts.attempt.ndjson"]} == {"ctx-0001", "ctx-0002"}
    with every_tenant():
        extent = Extent(clinic.organization)
        for table in extent.tables():
            # what the export itself wrote came after its own pages
            assert len(found[table.name]) <= extent.rows(table).count() <= len(found[table.name]) + 1, table.name
    decision = found["governance.enforcementdecision.ndjson"][0]
    assert decision["request"]["envelope"]["patient_context_ref"] == "ctx-0001"
    assert row.done == row.total


def test_an_archive_about_a_context_has_only_that(clinic: Clinic, storage: FileSystemStorage) -> None:
    first = clinic.denied(1)
    clinic.denied(2)
    clinic.hold("context", "ctx-0001")
    found = contents(build(ask(clinic, "ctx-0001"), storage), storage)
    assert found["manifest.json"]["about"] == {"context_ref": "ctx-0001"}
    assert [one["id"] for one in found["attempts.attempt.ndjson"]] == [str(first)]
    (entry,) = found["governance.ledgerentry.ndjson"]
    assert [*entry["earlier"], entry["action"]] == ["attempt.received", "attempt.deduplicated", "attempt.denied"]
    assert len(found["governance.legalhold.ndjson"]) == 1
    assert "ctx-0002" not in str(found)


def test_a_runs_case_is_exported_with_its_steps_events_and_attempts(cast: Cast, storage: FileSystemStorage) -> None:
    running = Running(cast)
    one, other = running.start(), running.start()
    clinic = Clinic(cast)
    found = contents(build(ask(clinic, f"case/{one.case_id}"), storage), storage)
    assert [row["id"] for row in found["workflows.workflowinstance.ndjson"]] == [str(one.id)]
    for name in (
        "workflows.workflowstep",
        "workflows.workflowevent",
        "governance.ledgerentry",
        "workflows.outboxevent",
    ):
        assert found[f"{name}.ndjson"], name
    for name in ("workflows.workflowinstance", "workflows.workflowstep"):  # the archive's word; the column is `state`
        assert all("status" in row and "state" not in row for row in found[f"{name}.ndjson"]), name
    assert str(other.case_id) not in str(found)


def test_another_organizations_rows_are_not_in_it(clinic: Clinic, storage: FileSystemStorage) -> None:
    clinic.denied(1)
    assert clinic.cast.other_operator
    text = json.dumps(contents(build(ask(clinic), storage), storage))
    assert str(clinic.cast.other.id) not in text
    assert clinic.cast.other.slug not in text


def test_secrets_are_not_in_it(clinic: Clinic, storage: FileSystemStorage) -> None:
    found = contents(build(ask(clinic, "ctx-0001"), storage), storage)
    whole = contents(build(ask(clinic), storage), storage)
    assert all("sha256" not in row for row in whole["governance.apikey.ndjson"])
    assert all("salt" not in row for row in found["governance.contextreference.ndjson"])


def test_the_same_rows_give_the_same_bytes(clinic: Clinic, storage: FileSystemStorage) -> None:
    clinic.denied(1)
    made = []
    with every_tenant():
        for _ in range(2):
            target = BytesIO()
            archive_write(
                extent=Extent(clinic.organization, "ctx-0001"),
                target=target,
                export_id=UUID(int=1),
                at=timezone.now().replace(microsecond=0, second=0, minute=0),
                progress=lambda rows: None,
            )
            made.append(target.getvalue())
    assert made[0] == made[1]


def test_pages_lose_and_repeat_nothing(clinic: Clinic, storage: FileSystemStorage) -> None:
    with every_tenant():
        first = LedgerEntry.objects.filter(organization=clinic.organization).first()
        assert first is not None
        rows = []
        for _ in range(PAGE + 3):
            row = LedgerEntry(**{field.attname: getattr(first, field.attname) for field in first._meta.fields})
            row.id = uuid7()
            rows.append(row)
        LedgerEntry.objects.bulk_create(rows)
    found = contents(build(ask(clinic), storage), storage)["governance.ledgerentry.ndjson"]
    ids = [row["id"] for row in found]
    assert len(ids) > PAGE
    assert ids == sorted(set(ids))


def test_sha256_and_downloads_are_on_the_ledger_and_the_clock_ends_it(
    clinic: Clinic, storage: FileSystemStorage
) -> None:
    row = build(ask(clinic), storage)
    with every_tenant():
        _, stream = export_open(actor=clinic.operator, at=timezone.now(), export_id=row.id, storage=storage)
        stream.close()
        entry = LedgerEntry.objects.get(action="export.built")
        assert entry.payload["sha256"] == row.sha256
        assert exports_expire(at=timezone.now(), storage=storage) == 0
        assert exports_expire(at=timezone.now() + WEEK, storage=storage) == 1
        assert exports_expire(at=timezone.now() + WEEK, storage=storage) == 0
    assert not storage.exists(row.file)
    assert actions("export.") == ["export.requested", "export.built", "export.downloaded", "export.expired"]


def test_whoever_builds_second_leaves_no_file(clinic: Clinic, storage: FileSystemStorage, tmp_path: Path) -> None:
    row = build(ask(clinic), storage)
    with every_tenant():
        assert not export_build(export_id=row.id, now=timezone.now, storage=storage, keep_for=WEEK)
    assert [path.name for path in tmp_path.rglob("*.zip")] == [f"{row.id}.zip"]


def test_what_cannot_be_built_is_tried_again_and_then_given_up(clinic: Clinic, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    broken = FileSystemStorage(location=str(blocked))
    row = ask(clinic)
    with every_tenant():
        for _ in range(TRIES):
            assert exports_due(at=timezone.now() + WEEK) == [row.id]
            assert not export_build(export_id=row.id, now=timezone.now, storage=broken, keep_for=WEEK)
        assert exports_due(at=timezone.now() + WEEK) == []
        assert ExportRequest.objects.get(id=row.id).state == "failed"
