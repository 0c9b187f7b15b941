"""Every cap and every throttle at once, on real connections: 200 requests in parallel under random contracts of two
organizations never get one place too many, and none is refused while its place is free."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Barrier
from typing import Any, TypeVar
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from attempts.lifecycle.models import Attempt, Slot
from attempts.lifecycle.services.slots import Busy, Claim, Subjects, caps_for, slots_reserve
from attempts.lifecycle.states import SlotScope
from governance.throttles.services import Limit, ThrottleAnswer, limits_for, throttle_take
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.attempts.test_tick_cost import copy_rows
from tests.cast import Cast
from tests.factories import ServiceAccountFactory
from tests.governance.support import in_parallel
from tests.properties import examples

T = TypeVar("T")
THREADS, EACH = 20, 10  # 200 requests
CONTRACTS = 3
SOME = st.one_of(st.none(), st.integers(1, 40))
NAMES = ("per_key", "per_context", "per_workflow", "per_user", "per_tenant", "per_region")
DIMENSIONS = ("tenant", "user", "service", "workflow", "context", "region")


@dataclass(frozen=True)
class Asked:
    """A request: of which organization, contract, person and context."""

    organization: int
    contract: int
    person: int
    context: int


REQUESTS = st.lists(
    st.builds(Asked, st.integers(0, 1), st.integers(0, CONTRACTS - 1), st.integers(0, 1), st.integers(0, 3)),
    min_size=THREADS * EACH,
    max_size=THREADS * EACH,
)


def at_once(work: Callable[[int, Asked], T], requests: list[Asked]) -> list[T]:
    """Each thread does its part, all begin together."""
    start = Barrier(THREADS)

    def part(number: int) -> list[T]:
        start.wait()
        return [work(index, one) for index, one in enumerate(requests) if index % THREADS == number]

    parts = in_parallel(*[lambda number=number: part(number) for number in range(THREADS)])
    return [answer for found in parts for answer in found]


def over(passed: Iterable[tuple[tuple[str, str], int]]) -> list[Any]:
    """Of what passed (subject, limit): where more passed than a limit allows. The last that passed under limits up to
    this one counted all the others that did."""
    rows = list(passed)
    return [
        (subject, limit)
        for subject, limit in set(rows)
        if sum(1 for other, its in rows if other == subject and its <= limit) > limit
    ]


Person = tuple[int, int]  # of organization 0 or 1, the person 0 or 1


@dataclass(frozen=True)
class World:
    organizations: tuple[UUID, UUID]
    template: UUID
    accounts: dict[Person, UUID]
    people: dict[Person, UUID]

    def attempts(self, requests: list[Asked]) -> list[UUID]:
        """A stored attempt for each request, without any of the rest of an intake."""
        ids = [uuid7() for _ in requests]
        organizations = [self.organizations[one.organization] for one in requests]
        callers = [self.accounts[one.organization, one.person] for one in requests]
        with every_tenant():
            copy_rows(
                "attempts_attempt",
                self.template,
                len(ids),
                id=listed(ids),
                organization_id=listed(organizations),
                caller_id=listed(callers),
            )
        return ids


def listed(ids: list[UUID]) -> str:
    return f"(ARRAY[{', '.join(repr(str(one)) for one in ids)}]::uuid[])[n]"


@pytest.fixture
def world(transactional_db: Any, cast: Cast) -> World:
    """Two organizations in one region; of each the services of two people."""
    contract(cast, adapter="external")
    assert ask(cast.api("attempts:create"), connector="external").status_code == 201
    organizations = (cast.organization, cast.other)
    keys = [(number, person) for number in (0, 1) for person in (0, 1)]
    with every_tenant():
        people = {
            (number, person): cast.person(f"answers-{number}-{person}", "auditor", organization=organizations[number])
            for number, person in keys
        }
        accounts = {
            key: ServiceAccountFactory(organization=organizations[key[0]], responsible=people[key]).id for key in keys
        }
        template = Attempt.objects.values_list("id", flat=True).get()
    return World((organizations[0].id, organizations[1].id), template, accounts, {key: people[key].id for key in keys})


@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    documents=st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, SOME)), min_size=CONTRACTS, max_size=CONTRACTS),
    organization_caps=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    requests=REQUESTS,
)
def test_no_cap_is_ever_one_over_and_none_refuses_while_a_place_is_free(
    world: World,
    documents: list[dict[str, int | None]],
    organization_caps: tuple[int, int],
    requests: list[Asked],
) -> None:
    with every_tenant():
        Slot.objects.all().delete()
    ids = world.attempts(requests)

    def claim(index: int, one: Asked) -> Claim:
        subjects = Subjects.of(
            slug=f"slug-{one.contract}",
            context=f"ctx-{one.context}",
            key=f"key-{index % 150}",  # some keys twice
            person=world.people[one.organization, one.person],
            regions=["US"],
        )
        caps = caps_for(
            document={"limits": documents[one.contract]},
            organization_cap=organization_caps[one.organization],
            subjects=subjects,
        )
        return Claim(world.organizations[one.organization], ids[index], caps, subjects=subjects)

    def take(index: int, one: Asked) -> tuple[Claim, Busy | None]:
        asked = claim(index, one)
        with every_tenant(), transaction.atomic():
            return asked, slots_reserve(asked).busy

    answers = at_once(take, requests)
    got = [asked for asked, busy in answers if busy is None]
    limited = [(named(asked, cap.scope), cap.limit) for asked in got for cap in asked.caps if cap.limit is not None]
    assert over(limited) == []
    under_way = Counter(named(asked, scope) for asked in got for scope in CAPPED)
    with every_tenant():
        assert Slot.objects.count() == len(got)
        for asked in [asked for asked, busy in answers if busy is not None][:20]:
            # Alone now: refused exactly if one of its caps is full.
            full = [c for c in asked.caps if c.limit is not None and under_way[named(asked, c.scope)] >= c.limit]
            with transaction.atomic():
                again = slots_reserve(asked, keeps=False).busy
            assert (again and again.cap) == (full[0] if full else None)


CAPPED = [scope for scope in SlotScope if scope is not SlotScope.HOLDS]


def named(asked: Claim, scope: SlotScope) -> tuple[str, str]:
    """Whose attempts this cap counts."""
    one = asked.subjects
    assert one is not None
    subject = {
        SlotScope.KEY: one.key,
        SlotScope.CONTEXT: one.context,
        SlotScope.WORKFLOW: one.workflow,
        SlotScope.USER: one.person,
        SlotScope.TENANT: "",
        SlotScope.REGION: "".join(one.regions),
    }[scope]
    return scope, subject if scope is SlotScope.REGION else f"{asked.organization_id} {subject}"


@pytest.mark.django_db
@examples(10)
@given(
    documents=st.lists(
        st.fixed_dictionaries(dict.fromkeys(DIMENSIONS, st.integers(1, 60))), min_size=CONTRACTS, max_size=CONTRACTS
    ),
    requests=REQUESTS,
)
def test_no_throttle_is_ever_one_over(documents: list[dict[str, int]], requests: list[Asked]) -> None:
    run = str(uuid7())  # counters of its own
    day = 86_400

    def limits(one: Asked) -> tuple[Limit, ...]:
        rows = [{"per": per, "limit": limit, "window_seconds": day} for per, limit in documents[one.contract].items()]
        subjects = {
            "tenant": ["all"],
            "user": [str(one.person)],
            "service": [f"{one.person}"],
            "workflow": [str(one.contract)],
            "context": [str(one.context)],
            "region": [run],
        }
        return limits_for({"limits": rows}, scope=f"{run} {one.organization}", subjects=subjects)

    def take(_: int, one: Asked) -> tuple[Asked, ThrottleAnswer]:
        return one, throttle_take(limits=limits(one))

    answers = at_once(take, requests)
    assert {answer.status for _, answer in answers} <= {"ok", "limited"}
    passed = [one for one, answer in answers if answer.status == "ok"]
    taken = [((limit.per, limit.subject), limit.limit) for one in passed for limit in limits(one)]
    assert over(taken) == []
    counted = [subject for subject, _ in taken]
    assert passed
    for _, answer in answers:
        if answer.refused is not None:
            refused = answer.refused
            assert counted.count((refused.per, refused.subject)) >= refused.limit
