"""The escalation owner's group hears of its quarantine cases: by mail and in the chat, once, while they are open."""

import json
import smtplib
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.utils import timezone

from attempts.notify.configured import public_url
from attempts.notify.models import CaseNotice, ChatWorkspace, NotificationRoute
from attempts.notify.services.cases import case_notices_send
from attempts.notify.services.chat_accounts import mail_choose
from attempts.notify.states import MailMode
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.services.resolve import quarantine_escalate_due
from governance.people.models import User
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.notify.conftest import Chat
from tests.attempts.notify.stand_in import SlackStandIn
from tests.attempts.reviews.support import Clinic
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import ALLOW, make_policy

GROUP = "trust-operations"


@pytest.fixture
def chat(cast: Cast, slack: SlackStandIn, settings: Any) -> Chat:
    settings.HOLDPOINT_PUBLIC_URL = "https://holdpoint.example"
    found = Chat(Clinic(cast), slack)
    make_policy(cast, rules=ALLOW)
    trudy = cast.person("trudy", f"owner:{GROUP}")
    User.objects.filter(id=trudy.id).update(email="trudy@clinic.invalid")
    User.objects.filter(id=cast.operator.id).update(email="alice@clinic.invalid")
    return found


def fails(chat: Chat) -> QuarantineCase:
    """An attempt that an executor reports as failed."""
    made = post(chat.cast.api("attempts:create"), body(patient_context_ref="ctx-0009"), key="key-00000009").json()
    executor, url = chat.cast.api("attempts:execute"), f"/api/v1/attempts/{made['id']}"
    token = executor.post(f"{url}/lease").json()["lease_token"]
    failure = {"lease_token": token, "category": "adapter_failure", "retryable": False, "reason_code": "adapter_failed"}
    assert executor.post(f"{url}/fail", failure, format="json").status_code == 200
    with every_tenant():
        return QuarantineCase.objects.get(attempt_id=made["id"])


def tell() -> int:
    return case_notices_send(now=timezone.now, base_url=public_url())


def come_due() -> None:
    with every_tenant():
        CaseNotice.objects.exclude(next_try_at=None).update(next_try_at=timezone.now() - timedelta(seconds=1))


def people() -> list[str]:
    return sorted(one.to[0] for one in mail.outbox)


def errors() -> list[str]:
    with every_tenant():
        return [row.last_error for row in CaseNotice.objects.exclude(route=None, recipient=None).order_by("id")]


def test_the_group_gets_a_mail_that_says_what_is_blocked_and_a_link_that_decides_nothing(chat: Chat) -> None:
    case = fails(chat)
    assert tell() == 1
    assert tell() == 0
    (told,) = mail.outbox
    assert told.to == ["trudy@clinic.invalid"]
    assert told.subject == "In quarantine: Close-Case"
    said = ["adapter failure", "case.close through external", "Target: case-0001", "Fields written: status", GROUP]
    assert [word for word in said if word not in told.body] == []
    assert f"https://holdpoint.example/review/cases/{case.id}\n" in told.body
    assert "ctx-0009" not in told.body
    assert "payload-0001" not in told.body
    page = chat.cast.console(chat.cast.person("trudy")).get(f"/review/cases/{case.id}")
    assert page.status_code == 200
    assert "hp-" in page.content.decode()


def test_a_route_for_the_group_posts_to_its_channel_and_another_tiers_route_does_not(chat: Chat) -> None:
    chat.route(tier=GROUP)
    chat.route(tier="sa_qa")
    fails(chat)
    assert tell() == 2
    (posted,) = chat.slack.of("chat.postMessage")
    assert "In quarantine: Close-Case" in posted["text"]
    drawn = json.dumps(posted["blocks"])
    assert "Target: case-0001" in drawn
    assert "Open the case" in drawn


def test_an_overdue_case_is_told_again_also_to_the_operators(chat: Chat) -> None:
    case = fails(chat)
    tell()
    mail.outbox.clear()
    assert quarantine_escalate_due(at=case.escalate_at) == 1
    come_due()
    assert tell() == 2
    assert people() == ["alice@clinic.invalid", "trudy@clinic.invalid"]
    assert mail.outbox[0].subject.startswith("Overdue in quarantine")


def test_a_group_that_no_mail_reaches_does_not_keep_a_case_silent(chat: Chat) -> None:
    User.objects.filter(username="trudy").update(email="")
    fails(chat)
    tell()
    assert people() == ["alice@clinic.invalid"]


def test_nobody_is_told_of_a_case_that_was_resolved_meanwhile(chat: Chat) -> None:
    case = fails(chat)
    operator = chat.cast.session(chat.cast.operator)
    url = f"/api/v1/quarantine-cases/{case.id}"
    operator.post(f"{url}/link-incident", {"incident_ref": "INC-1"}, format="json")
    done = operator.post(f"{url}/accept", {"finding": "did_not_happen"}, format="json")
    assert done.status_code == 200, done.content
    assert tell() == 0
    assert errors() == ["case_resolved"]
    assert mail.outbox == []


def test_who_wants_no_mail_gets_none(chat: Chat) -> None:
    mail_choose(user=chat.cast.person("trudy"), mode=MailMode.OFF)
    fails(chat)
    tell()
    assert people() == ["alice@clinic.invalid"]


def test_a_mail_server_that_is_away_is_tried_again_and_a_dead_channel_disables_its_route(
    chat: Chat, monkeypatch: Any
) -> None:
    route = chat.route(tier=GROUP)
    chat.slack.answers["chat.postMessage"] = ["channel_not_found"]
    fails(chat)
    with monkeypatch.context() as away:

        def refuse(*_: Any) -> int:
            raise smtplib.SMTPServerDisconnected("gone")

        away.setattr(EmailBackend, "send_messages", refuse)
        assert tell() == 0
    assert sorted(errors()) == ["channel_not_found", "no_answer"]
    with every_tenant():
        assert NotificationRoute.objects.get(id=route.id).state == "disabled"
        assert ChatWorkspace.objects.get().state == "active"
    assert tell() == 0
    come_due()
    assert tell() == 1
    assert people() == ["trudy@clinic.invalid"]
