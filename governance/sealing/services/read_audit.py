"""The read audit: opening a record is written down in the same request, before the answer is rendered. If that fails,
there is no answer."""

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

# A code, not a sentence: a sentence about why somebody opens a case would be free text about a patient.
PURPOSE = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,63}")
ONCE_PER = timedelta(hours=1)
COLUMNS = "id, organization_id, actor_kind, actor_ref, subject_kind, subject_id, door, purpose, request_id, at"
# A service that polls is recorded once per hour, object, entry point and purpose; a person every time. Otherwise the
# audit would grow larger than the record. One statement, so that reading costs one round trip more and not two.
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
    """Record that the actor opens the subject. `purpose` is a code that the reader chooses, such as `audit-2026-11`."""
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
