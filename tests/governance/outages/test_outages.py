"""A gap between heartbeats is an outage: recorded once, on the ledger, and never changed."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from config.tasks import heartbeat_task
from governance.ledger.models import LedgerEntry
from governance.outages.models import ClockBeat, OutageInterval
from governance.outages.rules import SILENCE
from governance.outages.selectors import deadline_in_force, lost_lately, outages_since
from governance.outages.services import clock_beat
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import at_once

pytestmark = pytest.mark.django_db
AGES_AGO = timedelta(days=3)


def silent_for(seconds: float) -> datetime:
    """The last heartbeat was so long ago."""
    last = timezone.now() - timedelta(seconds=seconds)
    ClockBeat.objects.update_or_create(id=1, defaults={"at": last})
    return last


def test_heartbeats_that_come_leave_no_outage() -> None:
    for _ in range(3):
        heartbeat_task()
    silent_for(SILENCE.total_seconds() - 5)
    assert clock_beat() is None
    assert not OutageInterval.objects.exists()
    assert timezone.now() - ClockBeat.objects.get().at < timedelta(seconds=5)


def test_a_gap_is_recorded_from_heartbeat_to_heartbeat_with_its_ledger_entry() -> None:
    last = silent_for(90)
    heartbeat_task()
    found = OutageInterval.objects.get()
    assert found.began_at == last
    assert timedelta(seconds=90) <= found.ended_at - last < timedelta(seconds=100)
    with every_tenant():
        entry = LedgerEntry.objects.get(subject_id=found.id)
    assert (entry.action, entry.actor_kind, entry.organization_id) == ("outage.recorded", "clock", None)
    assert entry.payload["seconds"] in range(90, 100)
    heartbeat_task()
    assert OutageInterval.objects.count() == 1


def test_an_outage_that_lasts_counts_before_anybody_has_recorded_it() -> None:
    last = silent_for(90)
    now = timezone.now()
    (found,) = outages_since(now - AGES_AGO)
    assert (found.began, found.ended > last + timedelta(seconds=89)) == (last, True)
    assert deadline_in_force(last + timedelta(seconds=30), began=last - timedelta(seconds=30), now=now) > now
    assert deadline_in_force(last - timedelta(seconds=1), began=last - timedelta(seconds=30), now=now) < last
    assert lost_lately(now) > timedelta(seconds=89)


def test_a_deadline_that_is_still_ahead_costs_no_statement(django_assert_num_queries: object) -> None:
    now = timezone.now()
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert deadline_in_force(now + timedelta(seconds=1), began=now, now=now) == now + timedelta(seconds=1)


@pytest.mark.django_db(transaction=True)
def test_two_heartbeats_at_once_after_an_outage_record_it_once() -> None:
    silent_for(90)
    found = at_once(*[clock_beat] * 4)
    assert sum(one is not None for one in found) == 1
    assert OutageInterval.objects.count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM governance_ledgerentry WHERE action = 'outage.recorded'")
        assert cursor.fetchone() == (1,)
