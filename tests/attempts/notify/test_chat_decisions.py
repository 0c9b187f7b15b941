"""A click in Slack: whose it is, what it may do, and that it can never do more than the page."""

import json
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from attempts.lifecycle.models import Attempt
from attempts.notify.models import ChatIdentity, ChatWorkspace
from attempts.notify.rules.cards import APPROVE, OPEN, REJECT
from attempts.notify.services.chat_workspace import workspace_connect, workspace_disable
from attempts.reviews.models import Review
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from governance.people.services.people import person_role_take
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.notify.conftest import BOSS, RITA, SAM, Chat, rows
from tests.attempts.notify.stand_in import SECRET, TEAM, call_back, click, deliver, signed, submit
from tests.attempts.reviews.support import (
    REVIEWER,
    Clinic,
    actions,
    ask,
    at_once,
    do,
    set_deadline,
    status_of,
    violations,
    votes,
)
from tests.cast import Cast

REFUSED = 401


def voted_via(review: Review) -> list[Any]:
    with every_tenant():
        entries = LedgerEntry.objects.filter(subject_id=review.id, action="review.voted").order_by("id")
        return [entry.payload.get("via") for entry in entries]


def test_an_approval_in_slack_is_the_persons_vote_and_the_ledger_says_where_it_came_from(chat: Chat) -> None:
    review = chat.clinic.hold()
    chat.tell()
    assert chat.press(APPROVE, user=RITA).status_code == 200
    assert status_of(review)[:2] == ("approved", "approved-for-execution")
    assert (votes(review), voted_via(review)) == (["approve"], ["slack"])
    assert chat.slack.whispers() == ["Your approval is on record."]
    chat.tell()
    (struck,) = chat.slack.of("chat.update")
    assert struck["blocks"][0]["text"]["text"].startswith("~Close-Case~\nApproved")
    assert "actions" not in json.dumps(struck["blocks"])
    assert struck["ts"] == rows(kind="card")[0].message_ref


def test_a_decision_on_the_page_says_nothing_of_a_chat(chat: Chat, cast: Cast) -> None:
    review = chat.clinic.hold()
    do(cast.session(cast.reviewer), review, "approve")
    assert voted_via(review) == [None]


def test_a_rejection_asks_for_its_reason_in_a_form_and_refuses_inside_it(chat: Chat) -> None:
    review = chat.clinic.hold()
    chat.tell()
    chat.press(REJECT, user=RITA)
    (opened,) = chat.slack.of("views.open")
    assert opened["trigger_id"] == "123.456"
    assert status_of(review)[0] == "requested"
    options = {one["value"] for one in opened["view"]["blocks"][0]["element"]["options"]}
    assert "reviewer_wrong_target" in options
    for reason, note, words in (("", "", "is required"), ("no_such_code", "", "does not exist")):
        answer = call_back(chat.address, submit(opened["view"], user=RITA, reason=reason, note=note))
        assert words in answer.json()["errors"]["note"], answer.content
    assert votes(review) == []
    answer = call_back(chat.address, submit(opened["view"], user=RITA, reason="reviewer_wrong_target"))
    assert answer.json() == {"response_action": "clear"}
    assert status_of(review) == ("rejected", "preflight-denied", "review_rejected")
    assert voted_via(review) == ["slack"]


def test_when_the_form_does_not_open_the_person_gets_the_link(chat: Chat) -> None:
    review = chat.clinic.hold()
    chat.tell()
    chat.slack.answers["views.open"] = ["expired_trigger_id"]
    chat.press(REJECT, user=RITA)
    assert f"https://holdpoint.example/review/{review.id}" in chat.slack.whispers()[0]


def test_high_risk_is_never_decided_in_slack_not_even_by_a_forged_click(chat: Chat) -> None:
    """The buttons are not there; and a signed click that somebody makes up is answered with the way to the page."""
    chat.clinic.hold()
    chat.tell()
    low = chat.card()
    with every_tenant():
        assert Attempt.objects.get().risk_tier != "high"
    review = chat.clinic.hold(action={"risk_tier": "high"})
    chat.tell()
    card = chat.card()
    assert [one["action_id"] for one in card["blocks"][-1]["elements"]] == [OPEN]
    forged = click(low, APPROVE, user=RITA)
    forged["actions"][0]["value"] = forged["actions"][0]["value"].replace(
        str(rows(kind="card")[0].id), str(rows(kind="card")[1].id)
    )
    for action in (APPROVE, REJECT):
        forged["actions"][0]["action_id"] = action
        call_back(chat.address, forged | {"trigger_id": f"t-{action}"})
    link = f"https://holdpoint.example/review/{review.id}"
    assert all("high-risk" in words and link in words for words in chat.slack.whispers())
    assert len(chat.slack.whispers()) == 2
    assert (votes(review), chat.slack.of("views.open")) == ([], [])
    assert status_of(review)[0] == "requested"


REFUSALS: dict[str, tuple[str, list[str]]] = {
    "own request": ("You are behind this request", ["own_work_approved"]),
    "not linked": ("not linked", []),
    "other tier": ("This review is for the tier", ["unauthorized_decision"]),
    "expired": ("deadline of this review has passed", ["unauthorized_decision"]),
    "decided": ("This review is rejected", ["unauthorized_decision"]),
    "claimed": ("Somebody else has claimed", []),
    "changed": ("The proposal has changed", []),
    "role taken": ("no role in this organization", []),
    "switched off": ("not linked", []),
    "unlinked": ("not linked", []),
}


def spoil(case: str, chat: Chat, review: Review) -> None:
    """What stands in the way of Rita's click."""
    cast, at = chat.cast, timezone.now()
    sam = cast.session(cast.person("sam", REVIEWER))
    rita, people = cast.reviewer, User.objects.filter(id=cast.reviewer.id)
    with every_tenant():
        if case == "role taken":
            person_role_take(actor=SYSTEM, at=at, user=rita, organization=cast.organization, role=REVIEWER)
        elif case == "switched off":
            cast.person("rita", REVIEWER), people.update(is_active=False)
        elif case == "unlinked":
            people.update(is_active=True), ChatIdentity.objects.filter(user=rita).delete()
        elif case == "expired":
            set_deadline(review, seconds=-1)
        elif case == "changed":
            Review.objects.filter(id=review.id).update(action_digest="e" * 64)
    if case in {"decided", "claimed"}:
        do(sam, review, {"decided": "reject", "claimed": "claim"}[case])


def test_who_may_not_on_the_page_may_not_in_slack_and_is_told_why(chat: Chat, cast: Cast) -> None:
    chat.link(cast.auditor, SAM)
    accounts = {"own request": BOSS, "not linked": "U0NOBODY", "other tier": SAM}
    recorded: list[str] = []
    for case, (words, violation) in REFUSALS.items():
        review = chat.clinic.hold()
        chat.tell()
        spoil(case, chat, review)
        before = votes(review)
        assert chat.press(APPROVE, user=accounts.get(case, RITA)).status_code == 200
        recorded += violation
        assert words in chat.slack.whispers()[-1], (case, chat.slack.whispers()[-1])
        assert (votes(review), violations()) == (before, recorded), case
    assert len(chat.slack.whispers()) == len(REFUSALS)


def test_a_case_of_a_workflow_is_judged_on_its_page(chat: Chat, cast: Cast) -> None:
    review = ask(cast)
    chat.tell()
    assert [one["action_id"] for one in chat.card()["blocks"][-1]["elements"]] == [OPEN]
    forged = click(chat.card(), OPEN, user=RITA)
    forged["actions"] = [{"action_id": APPROVE, "value": f"{rows(review=review)[0].id}:{'0' * 40}"}]
    call_back(chat.address, forged)
    assert "only on its card" in chat.slack.whispers()[0]
    assert votes(review) == []


def test_a_quorum_of_two_needs_two_people_and_the_card_shows_the_progress(cast: Cast, slack: Any) -> None:
    chat = Chat(Clinic(cast, approvals=2), slack)
    chat.route()
    chat.link(cast.reviewer, RITA), chat.link(cast.person("sam", REVIEWER), SAM)
    review = chat.clinic.hold()
    chat.tell()
    for expected in ("Your approval is on record.", "one vote in a review"):
        call_back(chat.address, click(chat.card(), APPROVE, user=RITA) | {"trigger_id": expected})
        assert expected in chat.slack.whispers()[-1]
    chat.tell()
    assert "Approvals: 1 of 2" in json.dumps(chat.slack.of("chat.update")[-1])
    chat.press(APPROVE, user=SAM)
    assert status_of(review)[0] == "approved"
    assert violations() == ["second_person_missing"]


# --- the door ------------------------------------------------------------------------------------------------------


def test_only_what_slack_signed_for_this_workspace_in_time_and_once_is_taken(chat: Chat, cast: Cast) -> None:
    review = chat.clinic.hold()
    chat.tell()
    document = click(chat.card(), APPROVE, user=RITA)
    body = urlencode({"payload": json.dumps(document)}).encode()
    other = workspace_of(cast, chat)
    now = time.time()
    refused = [
        (chat.address, body, {}),
        (chat.address, body, signed(body, secret="another-secret")),
        (chat.address, body, signed(body, at=now - 301)),
        (chat.address, body, signed(body, at=now + 302)),
        (chat.address, body + b"&x=1", signed(body)),
        (chat.address, body, signed(body) | {"X-Slack-Signature": "v0=ü"}),
        (f"/integrations/slack/{other.id}", body, signed(body)),
        ("/integrations/slack/00000000-0000-7000-8000-000000000000", body, signed(body)),
    ]
    for address, content, headers in refused:
        answer = deliver(address, content, headers)
        assert (answer.status_code, answer.json()["type"].rsplit("/")[-1]) == (REFUSED, "callback-refused")
    for elsewhere in (document | {"team": {"id": "T0ELSE"}}, {}, {"team": {"id": None}}):
        assert call_back(chat.address, elsewhere).status_code == REFUSED
    assert (votes(review), violations()) == ([], [])
    headers = signed(body)
    assert [deliver(chat.address, body, headers).status_code for _ in range(2)] == [200, REFUSED]
    assert (votes(review), violations()) == (["approve"], [])


def workspace_of(cast: Cast, chat: Chat) -> ChatWorkspace:
    """Another organization's, in the same Slack, with another secret."""
    with every_tenant():
        return workspace_connect(
            actor=cast.actor(cast.other_operator, [cast.other]),
            at=timezone.now(),
            organization=cast.other,
            name="Other",
            team_id=TEAM,
            bot_token="xoxb-other-0001",
            signing_secret="other-secret-0001",
        )


def test_another_organizations_app_cannot_touch_a_card_with_its_own_good_signature(chat: Chat, cast: Cast) -> None:
    review = chat.clinic.hold()
    chat.tell()
    other = workspace_of(cast, chat)
    both = cast.person("rita", "operator", organization=cast.other)
    with every_tenant():
        ChatIdentity.objects.create(workspace=other, user=both, chat_user=RITA, linked_at=timezone.now())
    document = click(chat.card(), APPROVE, user=RITA)
    answer = call_back(f"/integrations/slack/{other.id}", document, secret="other-secret-0001")
    assert answer.status_code == 200
    assert votes(review) == []
    assert "approval is on record" not in str(chat.slack.whispers())


def test_through_a_disabled_workspace_nobody_decides(chat: Chat) -> None:
    review = chat.clinic.hold()
    chat.tell()
    with every_tenant():
        workspace_disable(
            actor=chat.operator, at=timezone.now(), workspace_id=chat.workspace.id, reason_code="rehearsal"
        )
    assert chat.press(APPROVE, user=RITA).status_code == REFUSED
    assert votes(review) == []


OURS = '{"team":{"id":"T0CLINIC1"}'
STRANGE = (
    *("[]", "null", "{", "[" * 5000, OURS + "}", OURS + ',"type":"block_actions","actions":[7]}'),
    OURS + ',"type":"view_submission","view":{"callback_id":"holdpoint_reject_view"}}',
    OURS + ',"user":{"id":["U0RITA"]},"type":"block_actions","actions":[{"action_id":{},"value":1}]}',
)


def test_strange_payloads_with_a_good_signature_break_nothing(chat: Chat) -> None:
    for payload in STRANGE:
        body = urlencode({"payload": payload}).encode()
        assert deliver(chat.address, body, signed(body)).status_code in {200, REFUSED}, payload
    for raw in (b"", b"payload", b"\xff\xfe=1", b"command=%2Fholdpoint&team_id=T0ELSE"):
        assert deliver(chat.address, raw, signed(raw)).status_code == REFUSED, raw
    assert deliver(chat.address, b"x" * 300_000, signed(b"x" * 300_000)).status_code == REFUSED
    assert chat.slack.whispers() == []


@pytest.mark.django_db(transaction=True)
def test_two_clicks_and_a_vote_on_the_page_at_once_are_one_vote(slack: Any) -> None:
    """On real connections. Whoever comes second is told that this person has a vote already."""
    cast = Cast()
    chat = Chat(Clinic(cast, approvals=2), slack)
    chat.route()
    chat.link(cast.reviewer, RITA)
    review = chat.clinic.hold()
    chat.tell()
    clicks = [click(chat.card(), APPROVE, user=RITA) | {"trigger_id": str(number)} for number in range(2)]
    page, address = cast.session(cast.reviewer), chat.address
    at_once(
        lambda: call_back(address, clicks[0]).status_code,
        lambda: call_back(address, clicks[1]).status_code,
        lambda: do(page, review, "approve").status_code,
    )
    assert votes(review) == ["approve"]
    assert status_of(review)[0] == "requested"
    assert actions(review).count("review.voted") == 1
    assert violations() == ["second_person_missing"] * 2


@pytest.mark.django_db(transaction=True)
def test_the_same_callback_at_once_is_taken_once(slack: Any) -> None:
    cast = Cast()
    chat = Chat(Clinic(cast), slack)
    chat.route()
    chat.link(cast.reviewer, RITA)
    chat.clinic.hold()
    chat.tell()
    body = urlencode({"payload": json.dumps(click(chat.card(), APPROVE, user=RITA))}).encode()
    headers, address = signed(body, secret=SECRET), chat.address
    codes = at_once(*[lambda: deliver(address, body, headers).status_code] * 4)
    assert sorted(codes) == [200, REFUSED, REFUSED, REFUSED]
    assert violations() == []
