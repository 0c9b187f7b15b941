"""Opening something is recorded in the same request, before it is shown; if it cannot be recorded nothing is shown."""

import re
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from governance.ledger.services import actor_reference
from governance.sealing.states import ReadDoor
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import FieldError, InvalidInput
from reasoncodes.base.ids import uuid7
from reasoncodes.base.trace import current_trace

PURPOSE = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,63}")
ONCE_PER = timedelta(hours=1)
COLUMNS = "id, organization_id, actor_kind, actor_ref, subject_kind, subject_id, door, purpose, request_id, at"
# A service that polls is recorded once per hour, purpose and thing; a person every time.
INSERT = f"""
INSERT INTO governance_readaccess ({COLUMNS})
SELECT %(id)s, %(organization)s, %(kind)s, %(ref)s, %(subject_kind)s, %(subject)s, %(door)s, %(purpose)s, %(request)s,
    %(at)s
WHERE %(since)s::timestamptz IS NULL OR NOT EXISTS (
    SELECT 1 FROM governance_readaccess WHERE subject_id = %(subject)s AND actor_ref = %(ref)s AND at > %(since)s
        AND subject_kind = %(subject_kind)s AND door = %(door)s AND purpose = %(purpose)s)
"""  # noqa: S608


def read_recorded(
    *,
    actor: Actor,
    organization_id: UUID,
    subject_kind: str,
    subject_id: UUID,
    purpose: str,
    at: datetime,
    door: ReadDoor = ReadDoor.API,
) -> None:
    """`purpose` is a code of the reader's own, such as `audit-2026-11`; words would be free text about people."""
    if purpose and not PURPOSE.fullmatch(purpose):
        message = "is a code: small letters, digits, and _ . : - between them, at most 64"
        raise InvalidInput("The purpose is not a code.", errors=[FieldError("", message, rule="purpose")])
    trace = current_trace()
    parameters = {
        "id": uuid7(),
        "organization": organization_id,
        "kind": actor.kind.value,
        "ref": actor_reference(actor),
        "subject_kind": subject_kind,
        "subject": subject_id,
        "door": door.value,
        "purpose": purpose,
        "request": trace.request_id if trace else "",
        "at": at,
        "since": at - ONCE_PER if actor.kind is ActorKind.SERVICE else None,
    }
    with connection.cursor() as cursor:
        cursor.execute(INSERT, parameters)
