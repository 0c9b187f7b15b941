"""An outage of Holdpoint postpones the deadline of a hold and the end of a lease, and approves nothing."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from attempts.execution.services.lease_expire import leases_expire
from attempts.execution.services.queue import queue_dispatch
from attempts.lifecycle.services.slots import slots_release
from attempts.reviews.models import Review
from attempts.reviews.services.clock import reviews_expire
from config.stuck import stuck
from governance.outages.models import ClockBeat, OutageInterval
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution import support as execution
from tests.attempts.reviews import support as reviews
from tests.cast import Cast

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


def ago(seconds: float) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)


def outage(*, began: float, seconds: float) -> None:
    since = ago(began)
    OutageInterval(began_at=since, ended_at=since + timedelta(seconds=seconds)).save()


def asked_long_ago(review: Review, *, asked: float, expired: float) -> datetime:
    """The review was asked for so many seconds ago, and its row ended so many ago."""
    deadline = reviews.set_deadline(review, seconds=-expired)
    with every_tenant():
        Review.objects.filter(id=review.id).update(requested_at=ago(asked))
    return deadline


@pytest.fixture
def held(cast: Cast) -> Review:
    return reviews.Clinic(cast).hold()


def expire() -> int:
    with every_tenant():
        return reviews_expire(at=timezone.now())


def test_a_hold_does_not_expire_by_what_an_outage_took_from_its_reviewers(cast: Cast, held: Review) -> None:
    asked_long_ago(held, asked=600, expired=60)
    outage(began=300, seconds=120)
    assert expire() == 0
    client = cast.session(cast.reviewer)
    assert client.get(reviews.url(held)).json()["overdue"] is False
    assert reviews.do(client, held, "approve").status_code == 200


def test_it_expires_at_its_fair_deadline_and_expiry_never_approves(cast: Cast, held: Review) -> None:
    deadline = asked_long_ago(held, asked=600, expired=60)
    outage(began=300, seconds=40)
    assert expire() == 1
    status, state, reason = reviews.status_of(held)
    assert (status, state, reason) == ("expired", "preflight-denied", "review_expired")
    with every_tenant():
        assert Review.objects.get(id=held.id).decided_at == deadline + timedelta(seconds=40)


def test_a_vote_after_the_fair_deadline_is_refused(cast: Cast, held: Review) -> None:
    asked_long_ago(held, asked=600, expired=60)
    outage(began=300, seconds=40)
    client = cast.session(cast.reviewer)
    assert reviews.problem(reviews.do(client, held, "approve"))[0] == 409
    assert reviews.status_of(held)[1] == "preflight-denied"


def test_no_outage_keeps_a_hold_open_for_more_than_a_day(cast: Cast, held: Review) -> None:
    asked_long_ago(held, asked=3 * DAY, expired=DAY + 60)
    ClockBeat.objects.create(at=ago(2 * DAY))
    assert expire() == 1
    assert reviews.status_of(held)[1] == "preflight-denied"


def test_the_queue_shows_what_an_outage_keeps_open(cast: Cast, held: Review) -> None:
    asked_long_ago(held, asked=600, expired=60)
    page = cast.session(cast.reviewer)
    shown = str(held.id)
    assert shown not in page.get("/review/").content.decode()
    outage(began=300, seconds=120)
    assert shown in page.get("/review/").content.decode()


def leases() -> int:
    with every_tenant():
        return leases_expire()


def test_a_lease_lasts_longer_by_the_outage_and_its_report_still_counts(cast: Cast) -> None:
    execution.contract(cast, adapter="external")
    attempt_id = execution.asked(cast.api("attempts:create"), connector="external", runtime_mode="client_driven")
    executor = cast.api("attempts:execute")
    lease = executor.post(f"/api/v1/attempts/{attempt_id}/lease", {}, format="json").json()
    execution.lease_runs_out(attempt_id)
    outage(began=50, seconds=49)
    assert leases() == 0
    report = {"lease_token": lease["lease_token"], "response_metadata": {}}
    assert executor.post(f"/api/v1/attempts/{attempt_id}/complete", report, format="json").status_code == 200
    assert execution.attempt(attempt_id).state == "completed"


def test_a_lease_that_is_over_in_spite_of_the_outage_ends_at_its_fair_end(cast: Cast) -> None:
    execution.contract(cast, adapter="external")
    attempt_id = execution.asked(cast.api("attempts:create"), connector="external", runtime_mode="client_driven")
    cast.api("attempts:execute").post(f"/api/v1/attempts/{attempt_id}/lease", {}, format="json")
    execution.change(attempt_id, "lease_expires_at = statement_timestamp() - interval '30 s'")
    ends = execution.attempt(attempt_id).lease_expires_at
    outage(began=60, seconds=10)
    assert leases() == 1
    found = execution.attempt(attempt_id)
    assert ends is not None
    assert found.state == "failed-quarantined"
    assert found.ended_at is not None
    assert abs(found.ended_at - ends - timedelta(seconds=10)) < timedelta(seconds=1)


def waits_for_a_slot(cast: Cast, *, ended: float) -> UUID:
    """An attempt whose wait for a slot ended so many seconds ago, by its row."""
    execution.contract(cast)
    attempt_id = execution.asked(cast.api("attempts:create"))
    with every_tenant():
        slots_release(attempt_id=attempt_id)
    until = f"statement_timestamp() - interval '{ended} s'"
    execution.change(attempt_id, f"next_eligible_at = NULL, queued_until = {until}")
    return attempt_id


def slots_given() -> int:
    with every_tenant():
        return queue_dispatch()


def test_an_attempt_waits_longer_for_a_slot_by_the_outage_and_still_gets_one(cast: Cast) -> None:
    attempt_id = waits_for_a_slot(cast, ended=10)
    outage(began=60, seconds=50)
    assert stuck_attempts() == 0
    assert slots_given() == 1
    assert (execution.attempt(attempt_id).state, execution.attempt(attempt_id).queued_until) == (
        "approved-for-execution",
        None,
    )


def test_one_that_waited_too_long_in_spite_of_the_outage_is_denied_at_its_fair_end(cast: Cast) -> None:
    attempt_id = waits_for_a_slot(cast, ended=100)
    promised = execution.attempt(attempt_id).queued_until
    outage(began=200, seconds=20)
    assert stuck_attempts() == 1
    assert slots_given() == 0
    found = execution.attempt(attempt_id)
    assert promised is not None
    assert (found.state, found.reason_code) == ("preflight-denied", "concurrency_limit")
    assert found.ended_at == promised + timedelta(seconds=20)


def stuck_attempts() -> int:
    return stuck(at=timezone.now())["attempts"].count
