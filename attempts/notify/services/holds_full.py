"""Warns people that an organization's open holds have nearly reached `max_open_holds`: operators and readiness owners,
once a day. A notice is a row before it is sent."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.lifecycle.selectors.limits import holds_that_worry
from attempts.notify.adapters.mail import mail_connection, mail_send
from attempts.notify.models import HoldsNotice
from attempts.notify.rules.delivery import Trouble
from attempts.notify.rules.letters import holds_letter
from attempts.notify.selectors import mail_modes
from governance.contracts.rules.documents import OWNER_GROUPS
from governance.people.models import User
from governance.people.rules.roles import OPERATOR
from governance.people.selectors.people import people_in_role
from reasoncodes.base.tenancy import every_tenant

BATCH = 200  # notices per run; the next scheduled task takes the rest
ROLES = (OPERATOR, *(f"owner:{group}" for group in OWNER_GROUPS))


def holds_warn(*, now: Callable[[], datetime], base_url: str) -> int:
    """Writes the notices that are due, and sends those that were not sent. Returns how many were sent."""
    with every_tenant():
        _write(at=now())
        if not (unsent := _unsent()):
            return 0
        with mail_connection() as mail:
            # Without a connection nothing counts as told: the next run tries again.
            return 0 if mail is None else sum(_send(mail, id_, now, base_url) for id_ in unsent)


def _write(*, at: datetime) -> None:
    rows = [
        HoldsNotice(
            organization=found.organization,
            day=at.astimezone(UTC).date(),
            count=found.count,
            cap=found.cap,
            oldest_at=found.oldest,
        )
        for found in holds_that_worry()
    ]
    # Unique per organization and day: two clocks at once write one notice.
    HoldsNotice.objects.bulk_create(rows, ignore_conflicts=True)


def _unsent() -> list[UUID]:
    return list(HoldsNotice.objects.filter(sent_at=None).order_by("id").values_list("id", flat=True)[:BATCH])


def _send(mail: Any, notice_id: UUID, now: Callable[[], datetime], base_url: str) -> int:
    with transaction.atomic():
        # SKIP LOCKED: another worker is sending it. If this one dies after the mail, it is sent again, never lost.
        rows = HoldsNotice.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        notice = rows.select_related("organization").filter(id=notice_id, sent_at=None).first()
        if notice is None:
            return 0
        subject, body = holds_letter(
            organization=notice.organization.slug,
            count=notice.count,
            cap=notice.cap,
            oldest=notice.oldest_at,
            link=f"{base_url}/admin/" if base_url else "",
        )
        answers = [mail_send(mail, to=one.email, subject=subject, body=body) for one in _people(notice)]
        if any(isinstance(one, Trouble) and one.pauses for one in answers):
            return 0
        notice.sent_at = now()
        notice.save(update_fields=["sent_at"])
    return 1


def _people(notice: HoldsNotice) -> list[User]:
    organization_id = notice.organization_id
    people = {one.id: one for role in ROLES for one in people_in_role(organization_id=organization_id, role=role)}
    wanted = mail_modes(people=list(people.values()))
    return [person for id_, person in people.items() if id_ in wanted]
