"""Caps on real connections: requests in parallel never get one slot too many, whichever contract they come by."""

from collections import Counter

import pytest
from rest_framework.test import APIClient

from attempts.lifecycle.models import Attempt, Slot
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.cast import Cast
from tests.governance.support import in_parallel
from tests.governed import HOLD

pytestmark = pytest.mark.django_db(transaction=True)
THREADS, EACH = 25, 8  # 200 requests
FREE = {"per_key": 1, "per_context": None, "per_workflow": None, "per_tenant": None}


def made(cast: Cast, slug: str, **limits: int) -> None:
    rules = {"limits": FREE | limits}
    contract(cast, slug=slug, policy_slug=slug, adapter="external", changes={"concurrency_and_locks": rules})


def storm(cast: Cast, *slugs: str, context: str = "", first: int = 1) -> Counter[tuple[str, int]]:
    """200 requests by one key of a service, spread over these contracts: how often each was answered with what."""
    secret = cast.key("attempts:create")

    def some(thread: int) -> list[tuple[str, int]]:
        client, answers = APIClient(raise_request_exception=False), []
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
        for number in range(EACH):
            slug = slugs[(thread + number) % len(slugs)]
            more = {"patient_context_ref": context} if context else {}
            answer = ask(client, first + thread * EACH + number, slug=slug, connector="external", **more)
            answers.append((slug, answer.status_code))
        return answers

    works = [lambda thread=thread: some(thread) for thread in range(THREADS)]
    return Counter(answer for answers in in_parallel(*works) for answer in answers)


@pytest.mark.parametrize(
    ("limits", "context", "cap"),
    [
        ({"per_context": 3}, "ctx-0001", 3),
        ({"per_workflow": 5}, "", 5),
        ({"per_user": 6}, "", 6),
        ({"per_tenant": 24}, "", 24),
        ({"per_region": 25}, "", 25),
        ({}, "", 30),
    ],
    ids=["context", "workflow", "user", "tenant", "region", "organization"],
)
def test_two_hundred_at_once_get_as_many_slots_as_the_cap_and_not_one_more(
    cast: Cast, limits: dict[str, int], context: str, cap: int
) -> None:
    with every_tenant():
        Organization.objects.filter(id=cast.organization.id).update(max_concurrency=30)
    made(cast, "close-case", **limits)
    assert storm(cast, "close-case", context=context) == {("close-case", 201): cap, ("close-case", 429): 200 - cap}
    with every_tenant():
        assert Slot.objects.count() == Attempt.objects.filter(state="approved-for-execution").count() == cap


def test_a_cap_counts_what_other_contracts_have_under_way(cast: Cast) -> None:
    made(cast, "wide", per_tenant=9)
    made(cast, "narrow", per_tenant=4)
    answers = storm(cast, "wide", "narrow")
    assert answers["wide", 201] + answers["narrow", 201] == 9
    assert answers["narrow", 201] <= 4
    assert storm(cast, "narrow", first=1001) == {("narrow", 429): 200}


def test_holds_have_a_cap_of_their_own_and_take_no_slot(cast: Cast) -> None:
    with every_tenant():
        Organization.objects.filter(id=cast.organization.id).update(max_open_holds=40, max_concurrency=5)
    contract(cast, slug="held", policy_slug="held", rules=HOLD, adapter="external")
    made(cast, "close-case")
    assert storm(cast, "held") == {("held", 202): 40, ("held", 429): 160}
    assert storm(cast, "close-case")["close-case", 201] == 5


def test_after_a_storm_the_slots_that_became_free_are_given_again(cast: Cast) -> None:
    caller = cast.api("attempts:create")
    made(cast, "close-case", per_tenant=6)
    storm(cast, "close-case")
    with every_tenant():
        Slot.objects.filter(attempt_id__in=Slot.objects.values("attempt_id")[:2]).delete()
    statuses = [ask(caller, 900 + number, connector="external").status_code for number in range(3)]
    assert statuses == [201, 201, 429]


def test_a_cap_of_a_region_counts_what_other_organizations_have_under_way(cast: Cast) -> None:
    elsewhere = Cast()
    elsewhere.organization, elsewhere.operator = cast.other, cast.other_operator  # type: ignore[misc]
    made(elsewhere, "close-case", per_region=40)
    made(cast, "close-case", per_region=4)
    stranger = cast.api("attempts:create", organization=cast.other)
    assert [ask(stranger, number, connector="external").status_code for number in (1, 2, 3)] == [201] * 3
    assert storm(cast, "close-case") == {("close-case", 201): 1, ("close-case", 429): 199}
    (refused,) = ask(cast.api("attempts:create"), 900, connector="external").json()["errors"]
    assert (refused["rule"], refused["message"]) == ("per_region", "4 of 4 are under way")


def test_a_cap_of_a_person_counts_what_all_their_services_have_under_way_and_nobody_elses(cast: Cast) -> None:
    made(cast, "close-case", per_user=2)
    mine = [cast.api("attempts:create", responsible=cast.auditor) for _ in range(3)]
    statuses = [ask(client, number, connector="external").status_code for number, client in enumerate(mine, 1)]
    assert statuses == [201, 201, 429]
    assert ask(cast.api("attempts:create"), 9, connector="external").status_code == 201
