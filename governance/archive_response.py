"""How an export's archive leaves, whichever door it leaves through."""

from base64 import b64encode
from typing import IO, Any

from django.http import FileResponse

from governance.models import ExportRequest


def archive_response(*, row: ExportRequest, stream: IO[Any]) -> FileResponse:
    response = FileResponse(stream, as_attachment=True, filename=f"holdpoint-export-{row.id}.zip")
    response["Content-Type"] = "application/zip"
    response["Cache-Control"] = "no-store"
    response["Repr-Digest"] = f"sha-256=:{b64encode(bytes.fromhex(row.sha256)).decode()}:"
    return response
