"""Delegations as objects: the API, who sees and ends them, what ends them, and what the database refuses."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone

from attempts.notify.selectors import people_to_mail
from attempts.reviews import tasks
from attempts.reviews.models import Delegation
from attempts.reviews.services.delegate import delegations_expire
from governance.ledger.models import LedgerEntry
from governance.ledger.services import person_commitment
from governance.people.services.people import person_deactivate, person_role_take
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import REVIEWER, TIER, Clinic, do, problem, violations
from tests.cast import Cast

URL = "/api/v1/delegations"


@pytest.fixture
def dora(cast: Cast) -> Any:
    return cast.session(cast.person("dora", REVIEWER))


def asked(**changes: Any) -> dict[str, Any]:
    ends = timezone.now() + timedelta(days=2)
    return {"tier": TIER, "to_username": "dora", "reason_code": "handover", "ends_at": ends.isoformat()} | changes


def create(client: Any, **changes: Any) -> Any:
    return client.post(URL, asked(**changes), format="json")


def end(client: Any, id_: str) -> Any:
    return client.post(f"{URL}/{id_}/end", {}, format="json")


def listed(client: Any, query: str = "") -> list[tuple[str, str, str]]:
    found = client.get(f"{URL}?{query}").json()["results"]
    return [(row["from_username"], row["to_username"], row["state"]) for row in found]


def last_entry(action: str) -> LedgerEntry:
    with every_tenant():
        return LedgerEntry.objects.filter(action=action).order_by("-id")[0]


def in_hours(hours: float) -> str:
    return (timezone.now() + timedelta(hours=hours)).isoformat()


def test_a_reviewer_plans_an_absence_and_both_sides_and_operators_see_it(cast: Cast, rita: Any, dora: Any) -> None:
    answer = create(rita, starts_at=in_hours(24), ends_at=in_hours(48))
    assert answer.status_code == 201, answer.content
    assert (answer.json()["state"], answer.json()["end_cause"]) == ("planned", "")
    row = [("rita", "dora", "planned")]
    assert listed(rita) == listed(dora) == listed(cast.session(cast.operator)) == row
    assert listed(cast.session(cast.auditor)) == row
    assert listed(cast.session(cast.person("emil", REVIEWER))) == []
    assert listed(cast.session(cast.person("otto", "operator", organization=cast.other))) == []
    assert (listed(rita, "direction=given"), listed(rita, "direction=received")) == (row, [])
    assert (listed(dora, "state=active"), listed(dora, "state=planned&tier=" + TIER)) == ([], row)
    assert problem(rita.get(f"{URL}?state=gone"))[0] == 400


def test_candidates_are_those_who_have_the_tier_and_are_there(cast: Cast, rita: Any, dora: Any) -> None:
    cast.person("quinn", "reviewer:sa_qa")
    cast.person("emil", REVIEWER)
    cast.person("otto", REVIEWER, organization=cast.other)
    address = f"{URL}/candidates"
    found = rita.get(address).json()["results"]
    assert [(row["tier"], row["usernames"], row["delegated"]) for row in found] == [(TIER, ["dora", "emil"], False)]
    create(dora, to_username="emil")
    assert [row["usernames"] for row in rita.get(address).json()["results"]] == [["emil"]]
    assert [row["delegated"] for row in dora.get(address).json()["results"]] == [True]
    assert cast.session(cast.operator).get(address).json()["results"] == []


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"ends_at": in_hours(-1)}, "/ends_at"),
        ({"ends_at": in_hours(0.1)}, "/ends_at"),
        ({"ends_at": in_hours(15 * 24)}, "/ends_at"),
        ({"starts_at": in_hours(91 * 24), "ends_at": in_hours(92 * 24)}, "/starts_at"),
        ({"starts_at": in_hours(30), "ends_at": in_hours(29)}, "/ends_at"),
        ({"reason_code": "reviewer_wrong_target"}, "/reason_code"),
        ({"to_username": "rita"}, "/to_username"),
        ({"to_username": "nobody-known"}, "/to_username"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_pointer(
    cast: Cast, rita: Any, dora: Any, changes: Any, pointer: str
) -> None:
    refused = create(rita, **changes)
    assert problem(refused) == (400, "invalid-input")
    assert [row["pointer"] for row in refused.json()["errors"]] == [pointer]
    with every_tenant():
        assert not Delegation.objects.exists()


@pytest.mark.parametrize("role", ["operator", "auditor", "reviewer:sa_qa", "owner:privacy"])
def test_only_a_holder_gives_and_only_a_holder_gets_a_tier(cast: Cast, rita: Any, dora: Any, role: str) -> None:
    other = cast.session(cast.person("other", role))
    assert problem(create(other)) == (403, "not-a-reviewer")
    assert problem(create(rita, to_username="other")) == (403, "delegate-without-tier")
    assert violations() == ["unauthorized_decision"] * 2


def test_another_organization_and_keys_find_no_door(cast: Cast, rita: Any, dora: Any) -> None:
    made = create(rita).json()
    otto = cast.session(cast.person("otto", REVIEWER, organization=cast.other))
    assert problem(create(otto, org_id=str(cast.organization.id))) == (404, "not-found")
    assert problem(end(otto, made["id"])) == (404, "not-found")
    assert set(violations()) == {"cross_tenant"}
    key = cast.api()
    for answer in (key.get(URL), create(key), end(key, made["id"])):
        assert problem(answer) == (403, "scope-missing")
    assert problem(end(rita, str(uuid4()))) == (404, "not-found")


@pytest.mark.parametrize(
    ("who", "cause"), [("rita", "by_delegator"), ("dora", "by_delegate"), ("alice", "by_operator")]
)
def test_either_side_and_an_operator_end_it_at_once(cast: Cast, rita: Any, dora: Any, who: str, cause: str) -> None:
    made = create(rita).json()
    client = {"rita": rita, "dora": dora, "alice": cast.session(cast.operator)}[who]
    ended = end(client, made["id"])
    assert ended.status_code == 200, ended.content
    assert (ended.json()["state"], ended.json()["ended_by"], ended.json()["end_cause"]) == ("ended", who, cause)
    assert problem(end(client, made["id"])) == (409, "wrong-state")
    entry = last_entry("delegation.ended")
    assert (str(entry.subject_id), entry.payload["cause"]) == (made["id"], cause)
    assert entry.payload["to"] == person_commitment(user_id=UUID(str(cast.person("dora").id)))
    assert create(rita).status_code == 201


@pytest.mark.parametrize("role", [REVIEWER, "auditor", "owner:privacy"])
def test_somebody_else_cannot_end_it_and_the_try_is_on_record(cast: Cast, rita: Any, dora: Any, role: str) -> None:
    made = create(rita).json()
    assert problem(end(cast.session(cast.person("emil", role)), made["id"])) == (403, "not-your-delegation")
    assert violations() == ["unauthorized_decision"]
    assert listed(rita) == [("rita", "dora", "active")]


@pytest.mark.parametrize("who", ["rita", "dora"])
@pytest.mark.parametrize("how", ["role_taken", "deactivated"])
def test_who_loses_the_tier_or_access_gives_and_gets_no_more(
    cast: Cast, rita: Any, dora: Any, who: str, how: str
) -> None:
    assert create(rita).status_code == 201
    person = cast.person(who)
    with every_tenant():
        if how == "role_taken":
            person_role_take(
                actor=SYSTEM, at=timezone.now(), user=person, organization=cast.organization, role=REVIEWER
            )
        else:
            alice = cast.actor(cast.operator, [cast.organization])
            person_deactivate(actor=alice, at=timezone.now(), user_id=person.id, reason_code="person_left")
    assert listed(cast.session(cast.operator)) == [("rita", "dora", "ended")]
    assert last_entry("delegation.ended").payload["cause"] == how


def test_losing_another_role_ends_nothing(cast: Cast, rita: Any, dora: Any) -> None:
    person = cast.person("dora", "owner:privacy", "reviewer:sa_qa")
    create(rita)
    with every_tenant():
        for role in ("owner:privacy", "reviewer:sa_qa"):
            person_role_take(actor=SYSTEM, at=timezone.now(), user=person, organization=cast.organization, role=role)
    assert listed(rita) == [("rita", "dora", "active")]


def test_one_that_ran_out_is_put_on_record_with_its_own_time(cast: Cast, rita: Any, dora: Any) -> None:
    create(rita, ends_at=in_hours(1))
    with every_tenant(), unguarded():
        start = timezone.now() - timedelta(hours=3)
        Delegation.objects.update(starts_at=start, ends_at=start + timedelta(hours=1))
    assert listed(rita) == [("rita", "dora", "ended")]
    tasks.delegations_expire_task()
    assert delegations_expire(at=timezone.now()) == 0
    entry = last_entry("delegation.ended")
    assert (entry.at, entry.actor_kind, entry.payload["cause"]) == (start + timedelta(hours=1), "clock", "ran_out")
    assert create(rita).status_code == 201


def test_past_its_end_it_counts_no_more_also_before_that_is_on_record(cast: Cast, clinic: Clinic, dora: Any) -> None:
    review = clinic.hold()
    create(cast.session(clinic.responsible))
    assert problem(do(dora, review, "approve")) == (403, "own-work")
    with every_tenant(), unguarded():
        start = timezone.now() - timedelta(hours=3)
        Delegation.objects.update(starts_at=start, ends_at=start + timedelta(hours=1))
    assert do(dora, review, "approve").status_code == 200


def test_a_new_one_need_not_wait_for_the_task(cast: Cast, rita: Any, dora: Any) -> None:
    create(rita)
    with every_tenant(), unguarded():
        start = timezone.now() - timedelta(hours=3)
        Delegation.objects.update(starts_at=start, ends_at=start + timedelta(hours=1))
    assert create(rita).status_code == 201
    assert sorted(listed(rita)) == [("rita", "dora", "active"), ("rita", "dora", "ended")]


def test_messages_go_to_who_stands_in_if_they_may_sign(cast: Cast, clinic: Clinic, rita: Any, dora: Any) -> None:
    review = clinic.hold()
    boss = cast.session(clinic.responsible)

    def mailed() -> list[str]:
        with every_tenant():
            found = people_to_mail(review=review, attempt=review.attempt, tier=TIER)
        return sorted(person.username for person in found)

    assert mailed() == ["dora", "rita"]
    create(rita)
    assert mailed() == ["dora"]
    create(boss)
    assert mailed() == ["rita"]


class unguarded:
    """Walks round the database's own rules, as its owner."""

    def __enter__(self) -> None:
        self._do("DISABLE TRIGGER delegation_guard")

    def __exit__(self, *_: object) -> None:
        self._do("ENABLE ALWAYS TRIGGER delegation_guard")

    @staticmethod
    def _do(what: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(f"ALTER TABLE attempts_delegation {what}")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")


FROZEN = {
    "tier": "sa_qa",
    "reason_code": "reviewer_away",
    "starts_at": timezone.now(),
    "ends_at": timezone.now() + timedelta(days=1),
    "created_at": timezone.now(),
}


@pytest.mark.parametrize("column", [*FROZEN, "to_user_id", "from_user_id", "organization_id"])
def test_the_database_lets_only_the_end_be_written(cast: Cast, rita: Any, dora: Any, column: str) -> None:
    create(rita)
    people = {"to_user_id": cast.person("emil", REVIEWER).id, "from_user_id": cast.person("emil").id}
    value = {**FROZEN, **people, "organization_id": cast.other.id}[column]
    with every_tenant():
        with pytest.raises(OperationalError), transaction.atomic():
            Delegation.objects.update(**{column: value})
        gone = {"ended_at": timezone.now(), "end_cause": "by_operator"}
        with pytest.raises(OperationalError), transaction.atomic():
            Delegation.objects.update(**{column: value}, **gone)
        Delegation.objects.update(**gone)
        with pytest.raises(OperationalError), transaction.atomic():
            Delegation.objects.update(ended_at=None, end_cause="")
        with pytest.raises(OperationalError), transaction.atomic():
            Delegation.objects.all().delete()


def test_the_database_refuses_what_the_service_would(cast: Cast, rita: Any, dora: Any) -> None:
    now = timezone.now()
    outsider = cast.person("quinn", "reviewer:sa_qa")
    fine = {
        "organization": cast.organization,
        "tier": TIER,
        "from_user": cast.reviewer,
        "to_user": cast.person("dora"),
        "reason_code": "handover",
        "created_at": now,
        "starts_at": now,
        "ends_at": now + timedelta(days=1),
    }
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"to_user": outsider}, OperationalError),
        ({"from_user": outsider}, OperationalError),
        ({"to_user": cast.reviewer}, OperationalError),
        ({"ends_at": now}, IntegrityError),
        ({"ends_at": now + timedelta(days=14, seconds=1)}, IntegrityError),
        ({"reason_code": ""}, IntegrityError),
        ({"ended_at": now}, IntegrityError),
        ({"end_cause": "by_operator"}, IntegrityError),
    ]
    with every_tenant():
        for changes, error in wrong:
            with pytest.raises(error), transaction.atomic():
                Delegation.objects.create(**(fine | changes))
        Delegation.objects.create(**fine)
        with pytest.raises(IntegrityError), transaction.atomic():
            Delegation.objects.create(**fine)


def test_nobody_signed_in_is_401(client: Any) -> None:
    assert client.get(URL).status_code == 401


def test_the_vote_of_a_requesters_delegate_is_refused_through_the_api_too(
    cast: Cast, clinic: Clinic, dora: Any
) -> None:
    review = clinic.hold()
    made = create(cast.session(clinic.responsible)).json()
    assert problem(do(dora, review, "approve")) == (403, "own-work")
    end(dora, made["id"])
    assert do(dora, review, "approve").status_code == 200
