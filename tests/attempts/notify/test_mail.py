"""Mail: to whom, alone or in a digest, and what happens to an address or a server that refuses."""

import smtplib
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client
from django.utils import timezone

from attempts.notify.services.announce import digest_moment, reviews_announce
from attempts.notify.services.chat_accounts import mail_choose
from attempts.notify.states import MailMode, NotifyChannel
from attempts.reviews.models import Review
from governance.people.models import User
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.notify.conftest import Chat, due_now, rows, send, states
from tests.attempts.reviews.support import do

MAIL = NotifyChannel.EMAIL


def test_mail_goes_to_who_may_decide_with_a_link_that_decides_nothing(mailing: Chat) -> None:
    mailing.route(MAIL)
    User.objects.filter(id=mailing.clinic.responsible.id).update(email="boss@clinic.invalid")
    review = mailing.clinic.hold()
    mailing.tell()
    assert sorted(message.to[0] for message in mail.outbox) == ["rita@clinic.invalid", "sam@clinic.invalid"]
    text = mail.outbox[0].body
    link = f"/review/{review.id}"
    assert f"https://holdpoint.example{link}\n" in text
    assert "?" not in text.split("https://", 1)[1].split("\n")[0], "no token in the link"
    page = mailing.cast.console(mailing.cast.reviewer)
    assert page.get(link).status_code == 200
    with every_tenant():
        assert Review.objects.get(id=review.id).status == "requested"
    assert Client().get(link)["Location"].startswith("/accounts/login/")


def test_a_digest_is_one_mail_at_the_end_of_its_interval(mailing: Chat) -> None:
    mailing.route(MAIL, digest_minutes=60)
    mail_choose(user=mailing.cast.person("sam"), mode=MailMode.EACH)
    reviews = [mailing.clinic.hold() for _ in range(3)]
    mailing.tell()
    assert [message.to for message in mail.outbox] == [["sam@clinic.invalid"]] * 3
    mail.outbox.clear()
    do(mailing.cast.session(mailing.cast.reviewer), reviews[0], "approve")
    with every_tenant():
        moments = {row.next_try_at for row in rows(recipient=mailing.cast.reviewer)}
    assert len(moments) == 1
    assert moments.pop().timestamp() % 3600 == 0
    due_now(recipient=mailing.cast.reviewer)
    mailing.tell()
    (digest,) = mail.outbox
    assert digest.subject == "2 reviews wait for you"
    assert all(str(review.id) in digest.body for review in reviews[1:])
    assert str(reviews[0].id) not in digest.body
    assert [row.state for row in rows(recipient=mailing.cast.reviewer)] == ["dropped", "sent", "sent"]


def test_digests_begin_at_full_intervals() -> None:
    at = timezone.now()
    for minutes in (1, 60, 1440):
        moment = digest_moment(at=at, minutes=minutes)
        assert at < moment <= at + timedelta(minutes=minutes)
        assert moment.timestamp() % (minutes * 60) == pytest.approx(0, abs=0.001)


def test_who_chose_no_mail_or_left_gets_none(mailing: Chat) -> None:
    mailing.route(MAIL)
    rita, sam = mailing.cast.console(mailing.cast.reviewer), mailing.cast.person("sam")
    assert rita.post("/review/notifications", {"mode": "off"}).status_code == 302
    assert rita.post("/review/notifications", {"mode": "everything"}).status_code == 400
    mailing.clinic.hold()
    reviews_announce(at=timezone.now())
    assert [row.recipient for row in rows()] == [sam]
    User.objects.filter(id=sam.id).update(is_active=False)
    send()
    assert (mail.outbox, states()) == ([], [("mail", "dropped", "not_wanted")])


class Refusing(EmailBackend):
    """A mail server that refuses Rita's address for ever and Sam's for now."""

    def send_messages(self, messages: Any) -> int:
        for message in messages:
            code = 550 if message.to == ["rita@clinic.invalid"] else 451
            raise smtplib.SMTPRecipientsRefused({message.to[0]: (code, b"no")})
        return 0


def test_an_address_that_bounces_gets_nothing_more_until_somebody_sees_to_it(mailing: Chat, settings: Any) -> None:
    mailing.route(MAIL)
    mailing.clinic.hold()
    settings.EMAIL_BACKEND = f"{__name__}.Refusing"
    mailing.tell()
    found = {row.recipient.username: (row.state, row.last_error) for row in rows() if row.recipient}
    assert found == {"rita": ("failed", "address_refused"), "sam": ("pending", "address_refused_for_now")}
    rita = mailing.cast.console(mailing.cast.reviewer)
    assert b"refused rita@clinic.invalid" in rita.get("/review/notifications").content
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mailing.clinic.hold()
    mailing.tell()
    assert {message.to[0] for message in mail.outbox} == {"sam@clinic.invalid"}
    rita.post("/review/notifications", {"mode": "each"})
    mailing.clinic.hold()
    mailing.tell()
    assert "rita@clinic.invalid" in {message.to[0] for message in mail.outbox}


def test_with_the_mail_server_away_everything_waits(mailing: Chat, settings: Any) -> None:
    mailing.route(MAIL)
    mailing.clinic.hold()
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = (
        "governance.outside.mail.TimedEmailBackend",
        "127.0.0.1",
        1,
    )
    assert mailing.tell() == 0
    assert next((row.state, row.last_error) for row in rows()) == ("pending", "no_connection")
    assert sorted(row.tries for row in rows()) == [0, 1]
