"""`requires_role`: who may replay where the contract names a role."""

from typing import Any
from uuid import UUID

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import problem, violations
from tests.governed import DENY
from tests.leaves.support import ask, inner, opened


def denied(cast: Cast, caller: Any, role: str | None = "sa_qa") -> str:
    """The address for a replay of a denied attempt."""
    opened(cast, inner("retry_and_replay", "replay", requires_role=role), rules=DENY)
    return f"/api/v1/attempts/{ask(caller).json()['attempt_id']}/replay"


def replay(client: Any, url: str, key: str = "key-replay-1") -> Any:
    return client.post(url, HTTP_IDEMPOTENCY_KEY=key)


def qa(cast: Cast) -> User:
    return cast.person("quinn", "reviewer:sa_qa")


def test_only_a_person_with_the_contracts_role_replays(cast: Cast, caller: Any) -> None:
    url = denied(cast, caller)
    assert problem(replay(caller, url)) == (403, "replay-role-needed")
    for person in (cast.reviewer, cast.operator, cast.auditor):
        assert problem(replay(cast.session(person), url)) == (403, "replay-role-needed")
    assert violations(cast.organization) == ["unauthorized_decision"] * 4
    answer = replay(cast.session(qa(cast)), url)
    assert answer.json()["reason_code"] == "policy_denied", answer.content
    with every_tenant():
        first, again = Attempt.objects.order_by("created_at")
        assert (again.retry_of_id, again.caller_id) == (first.id, first.caller_id)
        entry = LedgerEntry.objects.get(action="attempt.replay_asked")
        assert (entry.subject_id, entry.actor_kind) == (first.id, "person")
        assert entry.payload["replay"] == str(again.id)


def test_the_same_replay_again_gets_the_first_answer_and_is_no_second_one(cast: Cast, caller: Any) -> None:
    url, client = denied(cast, caller), cast.session(qa(cast))
    first, again = replay(client, url), replay(client, url)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    with every_tenant():
        assert Attempt.objects.count() == 2


def test_whoever_replays_does_not_review_it(cast: Cast, caller: Any) -> None:
    hold = [{"id": "hold", "when": "true", "verdict": "needs_approval", "tier": "sa_qa", "approvals_required": 1}]
    opened(cast, inner("retry_and_replay", "replay", requires_role="sa_qa"), rules=hold)
    held = ask(caller).json()
    assert caller.post(f"/api/v1/attempts/{held['id']}/cancel").status_code == 200
    again = replay(cast.session(qa(cast)), f"/api/v1/attempts/{held['id']}/replay").json()
    with every_tenant():
        assert Review.objects.get(id=again["review"]["id"]).excluded
    vote = {"action_digest": again["action_digest"]}
    url = f"/api/v1/reviews/{again['review']['id']}/approve"
    assert cast.session(qa(cast)).post(url, vote, format="json").status_code == 403
    assert cast.session(cast.person("quentin", "reviewer:sa_qa")).post(url, vote, format="json").status_code == 200


def test_whoever_is_responsible_for_the_service_does_not_replay_what_it_asked(cast: Cast) -> None:
    cast.person("quinn", "reviewer:sa_qa")
    url = denied(cast, cast.api("attempts:create", responsible=qa(cast)))
    assert problem(replay(cast.session(qa(cast)), url)) == (403, "own-work")
    assert violations(cast.organization) == ["own_work_approved"]
    assert replay(cast.session(cast.person("quentin", "reviewer:sa_qa")), url).status_code == 403
    with every_tenant():
        assert Attempt.objects.count() == 2


def test_the_console_has_a_button_for_whoever_may_replay_and_only_for_them(cast: Cast, caller: Any) -> None:
    url = denied(cast, caller)
    first = url.split("/")[-2]
    page, act = (f"/admin/attempts/attempt/{first}/{part}/" for part in ("change", "act/replay"))
    assert "act/replay/" not in cast.console(cast.operator).get(page).content.decode()
    assert cast.console(cast.operator).post(act, {"key": "key-console-1"}).status_code == 403
    console = cast.console(qa(cast))
    assert "act/replay/" in console.get(page).content.decode()
    form = console.get(act).context["form"]
    key = form.initial["key"]
    assert [console.post(act, {"key": key}).status_code for _ in range(2)] == [302, 302]
    with every_tenant():
        assert [one.idempotency_key for one in Attempt.objects.order_by("created_at")][1:] == [key]
        assert Attempt.objects.get(idempotency_key=key).retry_of_id == UUID(first)


def test_without_a_role_people_do_not_replay_and_strangers_never_find_it(cast: Cast, caller: Any) -> None:
    url = denied(cast, caller, role=None)
    assert problem(replay(cast.session(qa(cast)), url)) == (403, "replay-role-needed")
    assert problem(replay(cast.session(cast.other_operator), url)) == (404, "not-found")
    assert problem(replay(cast.session(cast.nobody), url)) == (403, "scope-missing")
    assert problem(replay(cast.api("ledger:read"), url)) == (403, "scope-missing")
    assert replay(caller, url).status_code == 403
    with every_tenant():
        assert Attempt.objects.count() == 2
