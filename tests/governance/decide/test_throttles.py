"""Throttles: six kinds of limits, atomic in Valkey, refilled over time, and closed when Valkey is away."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attempts.intake.models import IdempotencyRecord
from attempts.lifecycle.models import Attempt
from governance.contracts.rules.documents import default_documents
from governance.enforcement.models import EnforcementDecision
from governance.outside.valkey import valkey
from governance.people.models import User
from governance.people.services.accounts import api_key_issue
from governance.tenancy.models import Organization
from governance.throttles.services import PREFIX, Limit, strike, throttle_take
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ServiceAccountFactory
from tests.governance.decide.support import intake, problem
from tests.governance.support import in_parallel
from tests.governed import AT, open_contract

WIDE, NARROW = (f"/api/v1/execution/{slug}/1/attempts" for slug in ("wide", "narrow"))
KINDS = ["tenant", "user", "service", "workflow", "context", "region"]


def documents_with(per: str, limit: int) -> dict[str, Any]:
    documents = default_documents()
    for row in documents["throttles_and_misuse"]["limits"]:
        row["limit"] = limit if row["per"] == per else 1000
    return documents


def api_of(cast: Cast, responsible: User) -> Any:
    account = ServiceAccountFactory(organization=cast.organization, responsible=responsible)
    with every_tenant():
        issued = api_key_issue(actor=SYSTEM, at=AT, service_account=account, scopes=["attempts:create"])
    client = cast.api()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {issued.secret}")
    return client


@pytest.mark.parametrize("per", KINDS)
def test_each_kind_of_limit_refuses_with_429_and_says_when_to_come_back(cast: Cast, per: str) -> None:
    open_contract(cast, documents=documents_with(per, 2))
    caller = api_of(cast, cast.operator)
    context = {"patient_context_ref": "ctx-0001"} if per == "context" else {}
    for number, left in ((1, 1), (2, 0)):
        passed = intake(caller, key=f"key-0000000{number}", **context)
        assert passed.status_code == 201, passed.content
        if per == "region":  # what is left of it would tell what other organizations do
            assert '"region"' not in passed["RateLimit"]
        else:
            assert passed["RateLimit"] == f'"{per}";r={left};t=60'
        assert f'"{per}";q=2;w=60' in passed["RateLimit-Policy"]
        assert passed["RateLimit-Policy"].count(";q=") == len(KINDS)
    refused = intake(caller, key="key-00000003", **context)
    assert problem(refused) == (429, "rate-limited")
    assert refused.json()["reason_code"] == "rate_limited"
    wait = int(refused["Retry-After"])
    assert 25 <= wait <= 30  # half a window brings one place back
    assert refused["RateLimit"] == f'"{per}";r=0;t={wait}'
    with every_tenant():
        decision = EnforcementDecision.objects.get(reason_code="rate_limited")
        assert decision.environment["throttle"] == {
            "status": "limited",
            "exceeded": per,
            "retry_after": wait,
            "cap": {"name": per, "limit": 2, "used": 2, "window_seconds": 60},
        }
        said = {"rule": per, "message": "2 requests in 60 seconds are used up", "pointer": f"/limits/throttles/{per}"}
        assert said.items() <= refused.json()["errors"][0].items()
        assert "security-operations" in refused.json()["errors"][0]["remedy"]
        assert Attempt.objects.get(decision=decision).state == "preflight-denied"
        assert not IdempotencyRecord.objects.filter(key="key-00000003").exists()


def test_limits_are_counted_apart_for_different_subjects(cast: Cast) -> None:
    open_contract(cast, documents=documents_with("service", 1))
    first, second = api_of(cast, cast.auditor), api_of(cast, cast.auditor)
    assert intake(first).status_code == 201
    assert intake(first, key="key-00000002").status_code == 429
    assert intake(second, key="key-00000003").status_code == 201


@pytest.mark.parametrize("per", [per for per in KINDS if per != "workflow"])
def test_a_limit_counts_the_subjects_requests_under_every_contract(cast: Cast, per: str) -> None:
    """The narrow contract lets nothing in once the wide one has used up what the narrow one allows its subject."""
    caller = api_of(cast, cast.operator)
    open_contract(cast, slug="wide", policy_slug="wide", documents=documents_with(per, 9))
    open_contract(cast, slug="narrow", policy_slug="narrow", documents=documents_with(per, 4))
    other = api_of(cast, cast.operator) if per in {"tenant", "user", "region"} else caller
    for number in range(1, 5):
        passed = intake(caller, url=WIDE, key=f"key-0000000{number}", patient_context_ref="ctx-0001")
        assert passed.status_code == 201, passed.content
    refused = intake(other, url=NARROW, key="key-00000009", patient_context_ref="ctx-0001")
    assert (refused.status_code, refused.json()["errors"][0]["rule"]) == (429, per)


def test_a_limit_that_many_contracts_share_never_lets_in_one_too_many() -> None:
    wide, narrow = some_limit(60, 3600), some_limit(20, 3600)
    narrow = replace(narrow, subject=wide.subject)

    def ten(limit: Limit) -> list[str]:
        return [throttle_take(limits=[limit]).status for _ in range(10)]

    works = [lambda limit=limit: ten(limit) for limit in [wide, narrow] * 10]
    passed = Counter(status for batch in in_parallel(*works) for status in batch)
    assert passed["ok"] == 60
    assert throttle_take(limits=[narrow]).status == "limited"


def some_limit(limit: int, window_seconds: int, per: str = "tenant") -> Limit:
    return Limit(per, str(uuid7()), limit, window_seconds)


def test_fifty_at_once_take_exactly_the_ten_places() -> None:
    limit = some_limit(10, 3600)

    def five() -> list[str]:
        return [throttle_take(limits=[limit]).status for _ in range(5)]

    statuses = [status for batch in in_parallel(*[five] * 10) for status in batch]
    assert (statuses.count("ok"), statuses.count("limited")) == (10, 40)


def test_places_come_back_steadily() -> None:
    limit = some_limit(4, 1)
    assert [throttle_take(limits=[limit]).status for _ in range(5)] == ["ok"] * 4 + ["limited"]
    time.sleep(0.3)  # one interval of 0.25 s
    assert [throttle_take(limits=[limit]).status for _ in range(2)] == ["ok", "limited"]
    time.sleep(1.1)
    assert [throttle_take(limits=[limit]).status for _ in range(5)] == ["ok"] * 4 + ["limited"]


def test_a_request_that_one_limit_refuses_takes_nothing_from_the_others() -> None:
    wide, narrow = some_limit(10, 3600), some_limit(1, 3600, "context")
    statuses = [throttle_take(limits=[wide, narrow]) for _ in range(4)]
    assert [answer.status for answer in statuses] == ["ok", "limited", "limited", "limited"]
    assert statuses[-1].exceeded == "context"
    assert throttle_take(limits=[wide]).remaining[0][1] == 8


def test_valkey_holds_hashes_and_no_reference_of_a_caller(cast: Cast, caller: Any) -> None:
    open_contract(cast)
    assert intake(caller, patient_context_ref="ctx-zebra-0001").status_code == 201
    keys = list(valkey().scan_iter(f"{PREFIX}*"))
    assert keys
    assert not [key for key in keys if "zebra" in key or str(cast.organization.id) in key]
    assert all(re.fullmatch(r"[a-z]+:[0-9a-f]{32}", key.removeprefix(PREFIX)) for key in keys)
    assert all(valkey().pttl(key) != -1 for key in keys)  # -1: never ends; -2: ended since the scan


@pytest.fixture
def without_valkey(settings: Any) -> Iterator[Any]:
    """The address of a server that is not there; `restore()` brings the real one back."""
    real = settings.REDIS_URL

    def use(url: str) -> None:
        settings.REDIS_URL = url
        valkey.cache_clear()

    use("unix:///nonexistent/holdpoint.sock")
    yield lambda: use(real)
    use(real)


def test_without_valkey_the_answer_is_503_on_record_and_the_key_stays_free(
    cast: Cast, caller: Any, without_valkey: Any
) -> None:
    open_contract(cast)
    answer = intake(caller)
    assert problem(answer) == (503, "throttle-unavailable")
    assert (answer.json()["reason_code"], int(answer["Retry-After"])) == ("throttle_unavailable", 5)
    with every_tenant():
        decision = EnforcementDecision.objects.get()
        assert (decision.verdict, decision.reason_code) == ("deny", "throttle_unavailable")
        attempt = Attempt.objects.get(id=answer.json()["attempt_id"])
        assert (attempt.state, attempt.reason_code) == ("preflight-denied", "throttle_unavailable")
        assert not IdempotencyRecord.objects.exists()
    without_valkey()
    assert intake(caller).status_code == 201


def test_without_valkey_a_strike_is_not_counted_and_nothing_breaks(without_valkey: Any) -> None:
    assert strike(subject="somebody", window_seconds=60) is None


def test_the_limits_of_one_organization_do_not_reach_another(cast: Cast) -> None:
    open_contract(cast, documents=documents_with("workflow", 1))
    other = Cast()
    other.organization, other.operator = cast.other, cast.other_operator  # type: ignore[misc]
    open_contract(other, documents=documents_with("workflow", 1))
    for organization in (cast.organization, cast.other):
        client = cast.api("attempts:create", organization=organization)
        assert (intake(client).status_code, intake(client, key="key-00000002").status_code) == (201, 429)
    with every_tenant():
        assert Organization.objects.count() == 2


def test_a_limit_of_a_region_counts_the_requests_of_all_its_organizations_and_tells_nobody_how_many(cast: Cast) -> None:
    other = Cast()
    other.organization, other.operator = cast.other, cast.other_operator  # type: ignore[misc]
    for one in (cast, other):
        open_contract(one, documents=documents_with("region", 3))
    ours, theirs = (cast.api("attempts:create", organization=one) for one in (cast.organization, cast.other))
    answers = [intake(theirs, key=f"key-0000000{number}") for number in (1, 2)] + [intake(ours)]
    assert [answer.status_code for answer in answers] == [201] * 3
    assert not any('"region"' in answer["RateLimit"] for answer in answers)
    refused = intake(ours, key="key-00000002")
    assert (refused.status_code, refused.json()["errors"][0]["rule"]) == (429, "region")
    assert "All organizations of the region share it" in refused.json()["errors"][0]["remedy"]
