"""What is told to whom, once: by the tick, after a dead worker, when a receiver refuses, asks to wait or is away."""

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client import REGISTRY

from attempts.intake.services.follow_up import attempt_cancel
from attempts.notify import tasks
from attempts.notify.adapters.mark import card_fits, card_read, card_value
from attempts.notify.models import ChatWorkspace, Notification, NotificationRoute
from attempts.notify.rules.delivery import MOST_TRIES, wait_before
from attempts.notify.selectors import notifications_late
from attempts.notify.services import cards as notify_refresh
from attempts.notify.services import send as notify_send
from attempts.notify.services.announce import reviews_announce
from attempts.notify.services.chat_workspace import workspace_secrets_replace
from attempts.notify.services.routes import route_enable
from attempts.reviews.models import Review
from attempts.reviews.services.clock import reviews_expire, reviews_remind
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.notify.conftest import Chat, announced, due_now, rows, send, states
from tests.attempts.notify.stand_in import CHANNEL, TOKEN
from tests.attempts.reviews.support import Clinic, at_once, do, set_deadline
from tests.cast import Cast
from tests.governance.support import everything_stored
from tests.plans import only_these_indexes
from tests.tampering import triggers_off

# --- what is written down ------------------------------------------------------------------------------------------


def test_without_a_route_nothing_is_written_and_nothing_is_read_but_that(chat: Chat) -> None:
    with every_tenant():
        NotificationRoute.objects.update(state="disabled")
    review = chat.clinic.hold()
    with CaptureQueriesContext(connection) as found:
        assert reviews_announce(at=timezone.now()) == 0
    assert len(found.captured_queries) == 1
    assert (rows(), announced(review), chat.slack.calls) == ([], False, [])


def test_a_card_is_told_once_however_often_the_ticks_run(chat: Chat) -> None:
    first, second = chat.clinic.hold(), chat.clinic.hold()
    for _ in range(3):
        tasks.notifications_send_task()
    posted = chat.slack.of("chat.postMessage")
    assert [body["channel"] for body in posted] == [CHANNEL] * 2
    assert states() == [("card", "sent", "")] * 2
    assert {row.review_id for row in rows()} == {first.id, second.id}
    assert chat.slack.tokens == {f"Bearer {TOKEN}"}
    urls = [one.get("url") for body in posted for one in body["blocks"][-1]["elements"]]
    assert f"https://holdpoint.example/review/{first.id}" in urls


def test_a_new_route_tells_of_what_is_asked_from_then_on(chat: Chat) -> None:
    before = chat.clinic.hold()
    with every_tenant():
        NotificationRoute.objects.update(created_at=timezone.now())
    after = chat.clinic.hold()
    chat.tell()
    assert (announced(before), announced(after)) == (True, True)
    assert [row.review_id for row in rows()] == [after.id]


def test_routes_choose_by_contract_and_tier_and_a_channel_gets_one_card(chat: Chat) -> None:
    for facts in (
        {"contract_slug": "close-case"},
        {"tier": "customer_clinician", "chat_channel": "C0TIER"},
        {"tier": "sa_qa", "chat_channel": "C0QA"},
        {"contract_slug": "other-case", "chat_channel": "C0ELSE"},
    ):
        chat.route(**facts)
    chat.clinic.hold()
    chat.tell()
    assert sorted(body["channel"] for body in chat.slack.of("chat.postMessage")) == [CHANNEL, "C0TIER"]
    assert rows(route__chat_channel=CHANNEL, route__contract_slug="close-case"), "the most particular one"


def test_the_tick_finds_unannounced_reviews_and_due_rows_by_their_partial_indexes(chat: Chat) -> None:
    with CaptureQueriesContext(connection) as found:
        tasks.notifications_send_task()
        tasks.cards_refresh_task()
    wanted = {
        "attempts_review": "review_unannounced",
        "attempts_notification one": "notification_line",
        '"refresh_at" <=': "notification_refresh",
    }
    only_these_indexes(wanted.values())
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for word, index in wanted.items():
            texts = [one["sql"] for one in found.captured_queries if "ORDER BY" in one["sql"] and word in one["sql"]]
            cursor.execute(f"EXPLAIN {texts[0]}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert index in plan, (texts[0], plan)


# --- receivers that refuse -----------------------------------------------------------------------------------------


def counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("holdpoint_notifications_total", {"channel": "slack", "outcome": outcome}) or 0.0


def test_a_channel_that_is_gone_disables_its_route_visibly_and_enabling_sends_what_waited(chat: Chat) -> None:
    chat.slack.answers["chat.postMessage"] = ["channel_not_found"]
    reviews = [chat.clinic.hold() for _ in range(2)]
    before = counted("stopped"), counted("sent")
    chat.tell()
    with every_tenant():
        route = NotificationRoute.objects.get()
        entry = LedgerEntry.objects.get(action="notification_route.disabled")
    assert (route.state, route.disabled_reason) == ("disabled", "channel_not_found")
    assert (entry.actor_kind, entry.payload["reason"]) == ("clock", "channel_not_found")
    assert {state for _, state, _ in states()} == {"stopped"}
    assert len(chat.slack.of("chat.postMessage")) == 1
    page = chat.cast.console(chat.cast.operator)
    assert b"channel_not_found" in page.get("/admin/attempts/notificationroute/").content
    do(chat.cast.session(chat.cast.reviewer), reviews[0], "reject")
    with every_tenant():
        route_enable(actor=chat.operator, at=timezone.now(), route_id=route.id)
    chat.tell()
    assert states() == [("card", "dropped", "review_ended"), ("card", "sent", "")]
    assert (counted("stopped"), counted("sent")) == (before[0] + 1, before[1] + 1)


def test_a_revoked_token_disables_the_workspace_until_its_secrets_are_replaced(chat: Chat) -> None:
    chat.slack.answers["chat.postMessage"] = ["token_revoked"]
    chat.clinic.hold()
    chat.tell()
    with every_tenant():
        workspace = ChatWorkspace.objects.get()
        assert (workspace.state, workspace.disabled_reason) == ("disabled", "token_revoked")
        assert states() == [("card", "stopped", "token_revoked")]
        workspace_secrets_replace(
            actor=chat.operator,
            at=timezone.now(),
            workspace_id=workspace.id,
            bot_token="xoxb-new-token-0002",
            signing_secret="signing-secret-0002",
        )
    chat.tell()
    assert states() == [("card", "sent", "")]
    assert "Bearer xoxb-new-token-0002" in chat.slack.tokens
    assert TOKEN not in everything_stored()
    assert "xoxb-new" not in everything_stored()


def test_altered_secrets_stop_the_workspace_and_say_so(chat: Chat) -> None:
    chat.clinic.hold()
    reviews_announce(at=timezone.now())
    with every_tenant():
        workspace = ChatWorkspace.objects.get()
        workspace.bot_token_sealed = workspace.bot_token_sealed[:-8] + "AAAAAAA="
        workspace.save(update_fields=["bot_token_sealed"])
    send()
    with every_tenant():
        assert ChatWorkspace.objects.get().disabled_reason == "secret_unreadable"


def test_a_process_without_the_key_that_sealed_puts_the_message_off_and_stops_nothing(
    chat: Chat, settings: Any
) -> None:
    """While SECRET_KEY is being changed, a worker that was not restarted yet lacks the new key."""
    chat.clinic.hold()
    reviews_announce(at=timezone.now())
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another-secret-key-0123456789abcdefghijklmnopqrstuv"
    send()
    assert [(row.state, row.last_error) for row in rows()] == [("pending", "secret_key_missing")]
    with every_tenant():
        assert ChatWorkspace.objects.get().disabled_reason == ""
    settings.SECRET_KEY_FALLBACKS = [former]
    due_now()
    assert chat.tell() == 1


def test_the_buttons_of_a_card_work_while_the_key_is_being_changed(chat: Chat, settings: Any) -> None:
    notification, digest = uuid4(), "a" * 64
    value = card_read(card_value(notification_id=notification, action_digest=digest))
    assert value is not None
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-secret-key-0123456789abcdefghijklmnopqrstuv"
    assert card_fits(notification_id=notification, action_digest=digest, mark=value[1])
    settings.SECRET_KEY_FALLBACKS = []
    assert not card_fits(notification_id=notification, action_digest=digest, mark=value[1])


def test_slack_says_when_to_come_again_and_nothing_else_is_sent_until_then(chat: Chat) -> None:
    chat.slack.answers["chat.postMessage"] = [(429, {"Retry-After": "120"}, b"{}")]
    for _ in range(3):
        chat.clinic.hold()
    began = timezone.now()
    assert chat.tell() == 0
    assert len(chat.slack.calls) == 1
    found = rows()
    assert [row.tries for row in found] == [1, 0, 0], "what was not tried is not counted"
    assert all(row.next_try_at >= began + timedelta(seconds=119) for row in found)
    assert found[0].last_error == "rate_limited"
    due_now()
    with every_tenant():
        assert notifications_late(at=timezone.now() + timedelta(minutes=5)) >= 300
    assert chat.tell() == 3
    with every_tenant():
        assert notifications_late(at=timezone.now() + timedelta(minutes=5)) == 0


PASSING: list[tuple[Any, str]] = [
    ((500, {}, b"oops"), "http_500"),
    ((200, {}, b"not json"), "unreadable_answer"),
    ((200, {}, b'{"ok":false,"error":"<script>"}'), "unknown_error"),
    ((302, {"Location": "http://127.0.0.1:1/"}, b""), "http_302"),
    ((200, {}, b" " * 300_000), "unreadable_answer"),
    (0.5, "timeout"),
]


def test_a_passing_trouble_is_tried_again_with_growing_waits(chat: Chat, monkeypatch: Any) -> None:
    chat.clinic.hold()
    waited = timedelta(0)
    for tries, (answer, why) in enumerate(PASSING, start=1):
        if why == "timeout":
            monkeypatch.setattr(notify_send, "SECONDS", 0.2)
        chat.slack.answers["chat.postMessage"] = [answer]
        chat.tell()
        (row,) = rows()
        assert (row.state, row.last_error, row.tries, row.leased_until) == ("pending", why, tries, None)
        wait = row.next_try_at - timezone.now()
        assert wait > waited
        waited = wait
        assert chat.tell() == 0, "not before its time"
        due_now()
    assert chat.tell() == 1


def test_waits_grow_to_an_hour_honour_the_receiver_and_end() -> None:
    waits = [wait_before(tries=number).total_seconds() for number in range(1, MOST_TRIES + 1)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (15, 3600)
    assert wait_before(tries=1, after=90).total_seconds() == 90
    assert wait_before(tries=1, after=10**9).total_seconds() == 86_400


def test_a_message_that_failed_for_good_is_sent_again_by_an_operator(chat: Chat) -> None:
    chat.slack.answers["chat.postMessage"] = ["internal_error"]
    chat.clinic.hold()
    reviews_announce(at=timezone.now())
    with every_tenant():
        Notification.objects.update(tries=MOST_TRIES - 1)
    send()
    assert states() == [("card", "failed", "internal_error")]
    (row,) = rows()
    page, path = chat.cast.console(chat.cast.operator), f"/admin/attempts/notification/{row.id}/act/resend/"
    assert page.get(path).status_code == 200
    assert states()[0][1] == "failed", "looking changes nothing"
    assert page.post(path).status_code == 302
    assert send() == 1
    assert page.post(path).status_code == 409, "a card that was sent is not sent twice"


# --- workers -------------------------------------------------------------------------------------------------------


def test_what_a_killed_worker_had_taken_is_taken_again(chat: Chat) -> None:
    chat.clinic.hold()
    reviews_announce(at=timezone.now())
    with every_tenant():
        (taken,) = notify_send._take(None)
    assert send() == 0, "it is leased"
    with every_tenant():
        Notification.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert send() == 1
    with every_tenant():
        assert notify_send._settle(taken, state="failed") == 0, "who lost the lease changes nothing"
    assert states() == [("card", "sent", "")]


def test_a_row_that_breaks_us_does_not_stand_in_the_way_of_the_others(chat: Chat) -> None:
    bad, good = chat.clinic.hold(), chat.clinic.hold()
    reviews_announce(at=timezone.now())
    with every_tenant(), triggers_off("attempts_review"):
        Review.objects.filter(id=bad.id).update(buckets=[{"not": "readable"}])
        Notification.objects.filter(review=bad).update(next_try_at=timezone.now() - timedelta(hours=1))
    send()
    assert states(review=good) == [("card", "sent", "")]
    assert states(review=bad) == [("card", "pending", "internal_error")]


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_tell_each_review_once(slack: Any) -> None:
    cast = Cast()
    chat = Chat(Clinic(cast), slack)
    chat.route()
    for _ in range(12):
        chat.clinic.hold()
    at_once(tasks.notifications_send_task, tasks.notifications_send_task, tasks.cards_refresh_task)
    tasks.notifications_send_task()
    assert len(slack.of("chat.postMessage")) == 12
    assert {row.state for row in rows()} == {"sent"}
    assert len(rows()) == 12


# --- cards follow --------------------------------------------------------------------------------------------------


def end(chat: Chat, review: Review, how: str) -> None:
    if how == "expire":
        set_deadline(review, seconds=-1)
        reviews_expire(at=timezone.now())
    elif how == "cancel":
        with every_tenant():
            attempt_cancel(
                actor=chat.operator, at=timezone.now(), attempt_id=review.attempt_id, reason_code="rehearsal"
            )
    else:
        do(chat.cast.session(chat.cast.reviewer), review, how)


def test_a_card_is_struck_through_however_its_review_ends(chat: Chat) -> None:
    ends = {"reject": "Rejected", "expire": "Expired", "cancel": "Withdrawn", "approve": "Approved"}
    for how, words in ends.items():
        review = chat.clinic.hold()
        chat.tell()
        end(chat, review, how)
        chat.slack.answers["chat.update"] = [(429, {"Retry-After": "1"}, b"{}")]
        tasks.cards_refresh_task()
        assert rows(review=review)[0].refresh_at is not None, "tried again"
        due_now()
        tasks.cards_refresh_task(), tasks.cards_refresh_task()
        last = chat.slack.of("chat.update")[-1]
        assert last["blocks"][0]["text"]["text"].startswith(f"~Close-Case~\n{words}")
        assert rows(review=review)[0].refresh_at is None
    assert len(chat.slack.of("chat.update")) == 2 * len(ends)


def test_a_review_that_ends_before_its_card_is_sent_gets_none(chat: Chat) -> None:
    review = chat.clinic.hold()
    reviews_announce(at=timezone.now())
    do(chat.cast.session(chat.cast.reviewer), review, "approve")
    chat.tell()
    assert states() == [("card", "dropped", "review_ended")]
    assert chat.slack.calls == []


def test_a_change_while_the_card_is_drawn_is_drawn_too(chat: Chat) -> None:
    """The mark that a worker took is not the one that it clears: the review ended meanwhile."""
    review = chat.clinic.hold()
    chat.tell()
    with every_tenant():
        Notification.objects.update(refresh_at=timezone.now() - timedelta(seconds=1))
        (taken,) = notify_refresh._take()
        do(chat.cast.session(chat.cast.reviewer), review, "approve")
    with every_tenant():
        assert notify_refresh._mine(taken).update(refresh_at=None) == 0
    tasks.cards_refresh_task()
    assert "Approved" in json.dumps(chat.slack.of("chat.update")[-1])


def test_a_reminder_stands_below_the_card_and_is_written_once(chat: Chat) -> None:
    review = chat.clinic.hold()
    chat.tell()
    with every_tenant():
        Review.objects.update(remind_at=timezone.now() - timedelta(seconds=1))
    reviews_remind(at=timezone.now())
    reviews_remind(at=timezone.now())
    chat.tell()
    card, reminder = chat.slack.of("chat.postMessage")
    assert reminder["thread_ts"] == rows(kind="card")[0].message_ref
    assert "Expiry never approves" in reminder["text"]
    assert card["channel"] == reminder["channel"]
    assert [row.state for row in rows(review=review, kind="reminder", route__isnull=False)] == ["sent"]
