"""Tells people that an API key ends: operators of the organization and the account's responsible person, 30, 7 and 1
day before, each once. A notice is a row before it is sent."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.notify.adapters.mail import mail_connection, mail_send
from attempts.notify.models import KeyEndNotice
from attempts.notify.rules.delivery import Trouble
from attempts.notify.rules.letters import key_end_letter
from attempts.notify.selectors import mail_modes
from governance.people.models import User
from governance.people.rules.keys import tell_now
from governance.people.rules.roles import OPERATOR
from governance.people.selectors.people import keys_ending, people_in_role
from reasoncodes.base.tenancy import every_tenant

# Keys and notices per run; the next scheduled task takes the rest.
BATCH = 200


def key_ends_tell(*, now: Callable[[], datetime], base_url: str) -> int:
    """Write the notices that are due, and send those that were not sent. Returns how many were sent."""
    with every_tenant():
        _write(at=now())
        with mail_connection() as mail:
            # Without a connection nothing counts as told: the next run tries again.
            return 0 if mail is None else sum(_send(mail, id_, now, base_url) for id_ in _unsent())


def _write(*, at: datetime) -> None:
    rows = []
    for key in keys_ending(at=at, limit=BATCH):
        days = tell_now(ends=key.expires_at, at=at) if key.expires_at else None
        if days is not None:
            rows.append(
                KeyEndNotice(organization_id=key.service_account.organization_id, api_key=key, days=days, created_at=at)
            )
    # Unique per key and number of days: two clocks at once write one notice.
    KeyEndNotice.objects.bulk_create(rows, ignore_conflicts=True)


def _unsent() -> list[UUID]:
    return list(KeyEndNotice.objects.filter(sent_at=None).order_by("id").values_list("id", flat=True)[:BATCH])


def _send(mail: Any, notice_id: UUID, now: Callable[[], datetime], base_url: str) -> int:
    with transaction.atomic():
        # SKIP LOCKED: another worker is sending it. If this one dies after the mail, it is sent again, never lost.
        rows = KeyEndNotice.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        notice = (
            rows.select_related("api_key__service_account__organization").filter(id=notice_id, sent_at=None).first()
        )
        if notice is None:
            return 0
        at = now()
        key = notice.api_key
        if key.revoked_at is None and key.expires_at is not None and key.expires_at > at:
            subject, body = key_end_letter(
                key=str(key),
                account=key.service_account.slug,
                organization=key.service_account.organization.slug,
                ends=key.expires_at,
                link=f"{base_url}/admin/governance/apikey/{key.id}/change/" if base_url else "",
            )
            answers = [mail_send(mail, to=one.email, subject=subject, body=body) for one in _people(notice)]
            if any(isinstance(one, Trouble) and one.pauses for one in answers):
                return 0
        notice.sent_at = at
        notice.save(update_fields=["sent_at"])
    return 1


def _people(notice: KeyEndNotice) -> list[User]:
    account = notice.api_key.service_account
    people = {one.id: one for one in people_in_role(organization_id=notice.organization_id, role=OPERATOR)}
    if account.responsible is not None and account.responsible.is_active:
        people[account.responsible.id] = account.responsible
    wanted = mail_modes(people=list(people.values()))
    return [person for id_, person in people.items() if id_ in wanted]
