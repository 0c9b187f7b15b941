"""Property: messages say what is asked as the card does, and nothing beyond. And strange words do no harm."""

import json
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from django.core import mail
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from attempts.intake.services.follow_up import attempt_cancel
from attempts.lifecycle.models import Attempt
from attempts.notify.rules.cards import card, escaped
from attempts.notify.rules.facts import ReviewFacts, asked_twice_words, held_again_words
from attempts.notify.rules.letters import letter
from attempts.notify.states import NotifyChannel, NotifyKind
from attempts.reviews.models import Review
from attempts.reviews.rules import AskedAction
from attempts.reviews.services.clock import reviews_remind
from attempts.reviews.states import ReviewKind, ReviewStatus
from governance.boundary.rules import ShownFact
from governance.contracts.rules.documents import default_documents
from governance.contracts.states import RiskTier
from governance.people.models import User
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.notify.conftest import Chat
from tests.attempts.notify.stand_in import SlackStandIn
from tests.attempts.reviews.support import Clinic
from tests.cast import Cast
from tests.governed import HOLD, open_contract

CANARY = st.text(alphabet="bcdfghjklmnpqrstvwxz", min_size=12, max_size=20)
AT = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


class WithMetadata(Clinic):
    """Its contract lets callers send metadata."""

    def __post_init__(self) -> None:
        documents = default_documents()
        documents["concurrency_and_locks"]["limits"] |= {"per_context": None, "per_workflow": None, "per_tenant": None}
        documents["metadata_boundary"]["schema"]["properties"] = {"source": {"type": "string", "maxLength": 80}}
        documents["metadata_boundary"]["facts"] = [
            {"name": "refund", "type": "amount", "label": "Refund", "required": False, "currency": "EUR"}
        ]
        self.contract = open_contract(self.cast, rules=HOLD, documents=documents)
        self.numbers = count(1)


@pytest.fixture
def talkative(cast: Cast, slack: SlackStandIn) -> Chat:
    chat = Chat(WithMetadata(cast), slack)
    chat.route(), chat.route(NotifyChannel.EMAIL)
    User.objects.filter(id=cast.reviewer.id).update(email="rita@clinic.invalid")
    return chat


STAYS = ("patient_context_ref", "action_digest", "idempotency_key", "payload_ref", "request_trace_id")


@given(words=st.lists(CANARY, min_size=4, max_size=4, unique=True), risk=st.sampled_from(list(RiskTier)))
@hypothesis_settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
def test_messages_say_what_is_asked_and_carry_nothing_that_was_not_declared_for_people(
    talkative: Chat, words: list[str], risk: str
) -> None:
    """Target, payload reference, field names and metadata are canaries; a review from card to end."""
    target, payload, field, source = words
    talkative.slack.calls.clear()
    mail.outbox.clear()
    action = {"target_ref": target, "payload_ref": payload, "fields": [field], "risk_tier": risk}
    review = talkative.clinic.hold(action=action, metadata={"source": source, "refund": "149.00"})
    talkative.tell()
    with every_tenant():
        Review.objects.filter(id=review.id).update(remind_at=timezone.now() - timedelta(seconds=1))
        attempt = Attempt.objects.get(id=review.attempt_id)
    reviews_remind(at=timezone.now())
    talkative.tell()
    with every_tenant():
        attempt_cancel(actor=talkative.operator, at=timezone.now(), attempt_id=attempt.id, reason_code="rehearsal")
    talkative.tell()
    methods = [method for method, _ in talkative.slack.calls]
    assert methods == ["chat.postMessage", "chat.postMessage", "chat.update"]
    assert len(mail.outbox) >= 2
    sent = json.dumps(talkative.slack.calls) + "".join(f"{one.subject}\n{one.body}" for one in mail.outbox)
    first = [json.dumps(talkative.slack.calls[0]), mail.outbox[0].body, mail.outbox[1].body]
    said = [target, field, attempt.payload_sha256, attempt.operation, "Refund: 149.00 EUR", "treat the action as final"]
    assert [word for message in first for word in [*said, "Rule: hold of policy"] if word not in message] == []
    assert attempt.metadata == {"source": source, "refund": "149.00"}
    assert [word for word in (payload, source, *(getattr(attempt, name) for name in STAYS)) if word in sent] == []


def facts(**changes: Any) -> ReviewFacts:
    usual: dict[str, Any] = {
        "review_id": UUID(int=7),
        "title": "Close a case",
        "kind": ReviewKind.RELEASE,
        "tiers": ("sa_qa",),
        "risk": "low",
        "status": ReviewStatus.REQUESTED,
        "requested_at": AT,
        "expires_at": AT + timedelta(hours=1),
        "approvals": 0,
        "approvals_required": 1,
        "asked": None,
        "notices": (),
        "link": "https://holdpoint.example/review/7",
    }
    return ReviewFacts(**usual | changes)


@pytest.mark.unit
@given(title=st.text(max_size=200), status=st.sampled_from(list(ReviewStatus)))
def test_a_title_cannot_mention_link_format_or_break_a_header(title: str, status: ReviewStatus) -> None:
    drawn = card(facts(title=title, status=status), now=AT, value="v")
    formatted = [drawn["text"]] + [
        block["text"]["text"] for block in drawn["blocks"] if block.get("text", {}).get("type") == "mrkdwn"
    ]
    for text in formatted:
        assert "<" not in text
        assert text.count("~") in {0, 2}
    for block in drawn["blocks"]:
        if block["type"] == "header":
            assert len(block["text"]["text"]) <= 150
    subject, _ = letter([facts(title=title)], kind=NotifyKind.MAIL, now=AT, choices="")
    assert len(subject.splitlines()) <= 1


@pytest.mark.unit
@pytest.mark.parametrize("before", [0, 1, 3])
def test_messages_say_first_that_it_is_held_again_and_asked_twice(before: int) -> None:
    again = held_again_words(released=True, tries=2)
    twice = asked_twice_words(before)
    notices = tuple(one for one in (again, twice) if one)
    drawn = card(facts(notices=notices), now=AT, value="v")["blocks"][2]["fields"]
    _, body = letter([facts(notices=notices)], kind=NotifyKind.MAIL, now=AT, choices="")
    for label, text in notices:
        assert f"{label}: {text}" in [one["text"] for one in drawn]
        assert f"{label}: {text}" in body
    assert "It was released before, and tried 2 times." in again[1]
    assert (twice is None) is (before == 0)
    assert before < 2 or f"{before} other keys" in str(twice)
    assert "allowed without a review" in held_again_words(released=False, tries=0)[1]


@pytest.mark.unit
def test_buttons_are_only_where_the_chat_may_decide() -> None:
    def names(**changes: Any) -> list[str]:
        blocks = card(facts(**changes), now=AT, value="v")["blocks"]
        return [one["text"]["text"] for block in blocks for one in block.get("elements", []) if one["type"] == "button"]

    assert names() == ["Approve", "Reject", "Open the card"]
    assert names(risk="high") == ["Open the card"]
    assert names(kind=ReviewKind.HUMAN_REVIEW, risk="") == ["Open the card"]
    assert names(link="") == ["Approve", "Reject"]
    for status in set(ReviewStatus) - {ReviewStatus.REQUESTED}:
        assert names(status=status) == []
    assert escaped("<!channel> & *x*") == "&lt;!channel&gt; &amp; x"


def asked(**changes: Any) -> AskedAction:
    usual: dict[str, Any] = {
        "connector": "http",
        "operation": "refund.pay",
        "target_ref": "order-1",
        "fields": ("amount",),
        "effect": "once",
        "risk_tier": "low",
        "payload_ref": "",
        "payload_sha256": "",
        "reversibility": "Final.",
        "facts": (),
        "metadata": {},
        "why": "Above 50.",
        "rule_id": "big",
        "policy_version": 3,
    }
    return AskedAction(**usual | changes)


@pytest.mark.unit
@given(text=st.text(max_size=700), fields=st.lists(st.text(max_size=128), max_size=100))
def test_what_is_asked_cannot_mention_link_or_break_the_limits_of_slack(text: str, fields: list[str]) -> None:
    about = asked(target_ref=text, why=text, operation=text, fields=tuple(fields))
    blocks = card(facts(asked=about), now=AT, value="v")["blocks"]
    drawn = [field for block in blocks if block["type"] == "section" for field in block["fields"]]
    assert drawn
    assert all(block["type"] != "section" or 1 <= len(block["fields"]) <= 10 for block in blocks)
    assert all(field["type"] == "plain_text" and 0 < len(field["text"]) <= 2000 for field in drawn)


@pytest.mark.unit
def test_a_long_list_of_facts_fills_further_sections() -> None:
    many = tuple(ShownFact(f"n{number}", "count", f"Number {number}", number, str(number)) for number in range(20))
    blocks = card(facts(asked=asked(facts=many)), now=AT, value="v")["blocks"]
    texts = [field["text"] for block in blocks if block["type"] == "section" for field in block["fields"]]
    assert "Number 19: 19" in texts
    assert [len(block["fields"]) for block in blocks if block["type"] == "section"] == [10, 10, 7]
