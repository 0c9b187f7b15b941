"""API keys end by default, and tell before: in the console, in figures, by mail and in every answer."""

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from io import StringIO
from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from django.utils import timezone

from attempts.notify.models import KeyEndNotice
from attempts.notify.services.key_ends import key_ends_tell
from attempts.notify.tasks import key_ends_tell_task
from config.metrics import render_metrics
from governance.people.models import ApiKey, ServiceAccount
from governance.people.rules.keys import days_left, tell_now
from governance.people.services.accounts import api_key_issue, api_key_revoke, api_key_rotate
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ServiceAccountFactory

pytestmark = pytest.mark.django_db
YEAR = timedelta(days=365)


@pytest.fixture
def account(cast: Cast) -> ServiceAccount:
    with every_tenant():
        found: ServiceAccount = ServiceAccountFactory(organization=cast.organization)
        found.responsible = cast.reviewer
        found.save(update_fields=["responsible"])
    for person in (cast.operator, cast.reviewer):
        person.email = f"{person.username}@example.test"
        person.save(update_fields=["email"])
    return found


def issue(account: ServiceAccount, **facts: Any) -> Any:
    with every_tenant():
        how = {"actor": SYSTEM, "at": timezone.now(), "scopes": ["ledger:read"]} | facts
        return api_key_issue(service_account=account, **how)


def ending(account: ServiceAccount, **left: float) -> ApiKey:
    """A live key with so much time left."""
    return issue(account, expires_at=timezone.now() + timedelta(**left)).key


def tell(at: datetime | None = None) -> int:
    return key_ends_tell(now=lambda: at or timezone.now(), base_url="https://holdpoint.test")


def told() -> list[int]:
    with every_tenant():
        return list(KeyEndNotice.objects.order_by("id").values_list("days", flat=True))


# -- the end --
def test_a_key_ends_after_a_year_unless_somebody_says_otherwise(account: ServiceAccount, settings: Any) -> None:
    now = timezone.now()
    assert issue(account, at=now).key.expires_at == now + YEAR
    assert issue(account, at=now, expires_at=now + timedelta(days=3)).key.expires_at == now + timedelta(days=3)
    settings.API_KEY_DAYS = 90
    with every_tenant():
        ApiKey.objects.update(revoked_at=now)
    assert issue(account, at=now).key.expires_at == now + timedelta(days=90)


def test_the_successor_of_a_rotation_gets_a_fresh_year_also_of_a_key_without_an_end(account: ServiceAccount) -> None:
    old = issue(account).key
    with every_tenant():
        ApiKey.objects.filter(id=old.id).update(expires_at=None)
        now = timezone.now()
        new = api_key_rotate(actor=SYSTEM, at=now, key_id=old.id, overlap=timedelta(hours=24)).key
        assert new.expires_at == now + YEAR
        assert ApiKey.objects.get(id=old.id).expires_at == now + timedelta(hours=24)


def test_the_command_and_the_console_issue_no_key_without_an_end(account: ServiceAccount, cast: Cast) -> None:
    call_command(
        "create_api_key",
        cast.organization.slug,
        account.slug,
        "--scope=ledger:read",
        "--days=0",
        stdout=StringIO(),
        stderr=StringIO(),
    )
    page = cast.console(cast.operator)
    page.post(f"/admin/governance/serviceaccount/{account.id}/act/issue-key/", {"scopes": ["ledger:read"], "days": ""})
    with every_tenant():
        assert not ApiKey.objects.filter(service_account=account, expires_at=None).exists()


@pytest.mark.parametrize(
    ("left", "days", "told_at"),
    [
        (timedelta(days=31), 31, None),
        (timedelta(days=30), 30, 30),
        (timedelta(days=29, hours=1), 30, 30),
        (timedelta(days=7, seconds=1), 8, 30),
        (timedelta(days=7), 7, 7),
        (timedelta(days=1), 1, 1),
        (timedelta(seconds=1), 1, 1),
        (timedelta(0), -1, None),
        (timedelta(days=-3), -1, None),
    ],
)
def test_days_are_counted_up_and_an_end_that_is_over_is_not_told(
    left: timedelta, days: int, told_at: int | None
) -> None:
    now = timezone.now()
    assert days_left(ends=now + left, at=now) == days
    assert tell_now(ends=now + left, at=now) == told_at


# -- in answers --
def test_answers_to_a_key_that_ends_within_thirty_days_say_when(cast: Cast) -> None:
    api = cast.api("ledger:read")
    assert "Sunset" not in api.get("/api/v1/ledger/public-key").headers
    end = timezone.now() + timedelta(days=20)
    with every_tenant():
        ApiKey.objects.update(expires_at=end)
    answer = api.get("/api/v1/ledger/public-key")
    assert abs(parsedate_to_datetime(answer.headers["Sunset"]) - end) < timedelta(seconds=1)
    assert "Sunset" in api.get("/api/v1/contracts").headers, "a refusal says so too"
    assert "Sunset" not in cast.session(cast.auditor).get("/api/v1/ledger/public-key").headers
    with every_tenant():
        ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert api.get("/api/v1/ledger/public-key").status_code == 401


# -- by mail --
def test_the_operators_and_the_responsible_person_are_told_thirty_seven_and_one_day_before_once_each(
    account: ServiceAccount, cast: Cast
) -> None:
    key = ending(account, days=40)
    now = timezone.now()
    assert tell(now) == 0
    for days_on, expected in ((10, [30]), (11, [30]), (33, [30, 7]), (34, [30, 7]), (39.5, [30, 7, 1])):
        tell(now + timedelta(days=days_on))
        tell(now + timedelta(days=days_on))
        assert told() == expected
    assert len(mail.outbox) == 6
    assert {address for one in mail.outbox for address in one.to} == {cast.operator.email, cast.reviewer.email}
    letter = mail.outbox[0]
    assert key.prefix in letter.body
    assert f"https://holdpoint.test/admin/governance/apikey/{key.id}/change/" in letter.body


def test_a_key_that_is_found_late_is_told_with_what_is_left_only(account: ServiceAccount) -> None:
    ending(account, hours=5)
    key_ends_tell_task()
    assert told() == [1]


def test_who_has_rotated_or_revoked_is_not_told(account: ServiceAccount) -> None:
    first = ending(account, days=5)
    with every_tenant():
        api_key_rotate(actor=SYSTEM, at=timezone.now(), key_id=first.id, overlap=timedelta(hours=24))
    assert (tell(), told()) == (0, [])
    with every_tenant():
        ApiKey.objects.update(revoked_at=timezone.now())
    second = ending(account, days=5)
    with every_tenant():
        api_key_revoke(actor=SYSTEM, at=timezone.now(), key_id=second.id)
    assert (tell(), told(), mail.outbox) == (0, [], [])


def test_a_successor_that_may_do_less_is_none(account: ServiceAccount) -> None:
    issue(account, expires_at=timezone.now() + timedelta(days=5), scopes=["ledger:read", "governance:read"])
    issue(account, scopes=["ledger:read"])
    tell()
    assert told() == [7]


def test_without_a_mail_server_a_notice_waits_and_is_sent_later(account: ServiceAccount, settings: Any) -> None:
    ending(account, days=5)
    working = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = (
        "governance.outside.mail.TimedEmailBackend",
        "127.0.0.1",
        1,
    )
    assert tell() == 0
    with every_tenant():
        assert KeyEndNotice.objects.get().sent_at is None
    settings.EMAIL_BACKEND = working
    assert tell() == 1
    assert tell() == 0


# -- in figures and in the console --
def test_keys_that_end_soon_or_never_are_counted_and_shown(account: ServiceAccount, cast: Cast) -> None:
    soon, never = ending(account, days=5), issue(account).key
    with every_tenant():
        ApiKey.objects.filter(id=never.id).update(expires_at=None)
        ApiKey.objects.exclude(id__in=[soon.id, never.id]).update(expires_at=timezone.now() + YEAR)
    figures = render_metrics().decode()
    for line in (
        'holdpoint_api_keys_ending{days="1"} 0.0',
        'holdpoint_api_keys_ending{days="7"} 1.0',
        'holdpoint_api_keys_ending{days="30"} 1.0',
        "holdpoint_api_keys_endless 1.0",
    ):
        assert line in figures
    page = cast.console(cast.operator).get("/admin/governance/apikey/").content.decode()
    assert "1 key never ends." in page
    assert "never ends: rotate it" in page
    assert "(in 5 days)" in page
    front = cast.console(cast.operator).get("/admin/").content.decode()
    assert "API keys that never end" in front
