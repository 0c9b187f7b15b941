"""API keys: kept only as a hash, and refused from the very next request once they have ended."""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from governance.ledger.models import LedgerEntry
from governance.people.errors import KeyLimitReached
from governance.people.models import ApiKey, ServiceAccount
from governance.people.services.accounts import (
    IssuedKey,
    api_key_issue,
    api_key_revoke,
    api_key_rotate,
    service_account_reinstate,
    service_account_suspend,
)
from governance.tenancy.models import Organization
from governance.tenancy.services import organization_change
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import InvalidInput, NotFound, Refused, WrongState
from reasoncodes.base.tenancy import every_tenant, tenant_scope
from tests.cast import Cast
from tests.factories import ServiceAccountFactory
from tests.governance.support import everything_stored, in_parallel

URL = "/api/v1/reason-codes"


def issue(account: ServiceAccount, *scopes: str, **changes: Any) -> IssuedKey:
    with every_tenant():
        return api_key_issue(
            actor=SYSTEM,
            at=timezone.now(),
            service_account=account,
            scopes=scopes or ("orchestrator:read",),
            **changes,
        )


def status(secret: str, url: str = URL) -> int:
    return int(APIClient().get(url, HTTP_AUTHORIZATION=f"Bearer {secret}").status_code)


@pytest.fixture
def account(cast: Cast) -> ServiceAccount:
    account: ServiceAccount = ServiceAccountFactory(organization=cast.organization)
    return account


def test_the_clear_text_is_nowhere_in_the_database(account: ServiceAccount) -> None:
    issued = issue(account)
    assert status(issued.secret) == 200
    stored = everything_stored()
    assert issued.key.prefix in stored
    random_part = issued.secret.removeprefix(f"hp_{issued.key.prefix}_")
    assert len(random_part) >= 43
    assert random_part not in stored


def test_issuing_rotating_and_revoking_are_on_the_ledger_by_prefix(account: ServiceAccount) -> None:
    first = issue(account)
    with every_tenant():
        second = api_key_rotate(actor=SYSTEM, at=timezone.now(), key_id=first.key.id, overlap=timedelta(0))
        for _ in range(2):  # twice is once
            api_key_revoke(actor=SYSTEM, at=timezone.now(), key_id=second.key.id)
        entries = LedgerEntry.objects.filter(subject_type="api_key").order_by("id")
        assert [(entry.action, entry.payload["prefix"]) for entry in entries] == [
            ("api_key.issued", first.key.prefix),
            ("api_key.rotated", second.key.prefix),
            ("api_key.revoked", second.key.prefix),
        ]
        assert entries[1].payload["replaces"] == str(first.key.id)


def test_a_key_opens_what_its_scopes_say_and_nothing_else(cast: Cast) -> None:
    client = cast.api("orchestrator:read")
    assert client.get(URL).status_code == 200
    refused = client.get("/api/v1/ledger/entries")
    assert refused.status_code == 403
    assert refused.json()["required_scope"] == "ledger:read"
    assert client.post(URL, {}).json()["required_scope"] == "orchestrator:write"


def ended_by_expiry(issued: IssuedKey) -> None:
    with every_tenant():
        ApiKey.objects.filter(id=issued.key.id).update(expires_at=timezone.now())


def ended_by_revocation(issued: IssuedKey) -> None:
    with every_tenant():
        api_key_revoke(actor=SYSTEM, at=timezone.now(), key_id=issued.key.id)


def ended_by_suspension_of_the_account(issued: IssuedKey) -> None:
    with every_tenant():
        service_account_suspend(
            actor=SYSTEM,
            at=timezone.now(),
            service_account_id=issued.key.service_account_id,
            reason_code="incident_response",
        )


def ended_by_suspension_of_the_organization(issued: IssuedKey) -> None:
    organization_change(
        actor=SYSTEM,
        at=timezone.now(),
        organization_id=issued.key.service_account.organization_id,
        changes={"status": Organization.Status.SUSPENDED},
    )


ENDINGS = [
    ended_by_expiry,
    ended_by_revocation,
    ended_by_suspension_of_the_account,
    ended_by_suspension_of_the_organization,
]


@pytest.mark.parametrize("end", ENDINGS)
def test_a_key_that_ended_is_refused_from_the_next_request_exactly_like_an_unknown_one(
    account: ServiceAccount, end: Callable[[IssuedKey], None]
) -> None:
    issued = issue(account)
    assert status(issued.secret) == 200
    end(issued)
    ended = APIClient().get(URL, HTTP_AUTHORIZATION=f"Bearer {issued.secret}")
    unknown = APIClient().get(URL, HTTP_AUTHORIZATION="Bearer hp_0123456789_nobody-has-this-one")
    assert ended.status_code == unknown.status_code == 401
    assert {**ended.json(), "instance": ""} == {**unknown.json(), "instance": ""}
    assert ended["WWW-Authenticate"] == unknown["WWW-Authenticate"] == 'Bearer realm="holdpoint"'


def test_a_reinstated_account_works_again(account: ServiceAccount) -> None:
    issued = issue(account)
    ended_by_suspension_of_the_account(issued)
    assert status(issued.secret) == 401
    with every_tenant():
        service_account_reinstate(actor=SYSTEM, at=timezone.now(), service_account_id=account.id)
    assert status(issued.secret) == 200


def test_a_rotated_key_and_its_successor_overlap_and_then_only_the_successor_is_left(account: ServiceAccount) -> None:
    old, now = issue(account), timezone.now()
    with every_tenant():
        new = api_key_rotate(actor=SYSTEM, at=now, key_id=old.key.id, overlap=timedelta(hours=24))
        assert new.key.scopes == old.key.scopes
        assert ApiKey.objects.get(id=old.key.id).expires_at == now + timedelta(hours=24)
    assert (status(old.secret), status(new.secret)) == (200, 200)
    ended_by_expiry(old)
    assert (status(old.secret), status(new.secret)) == (401, 200)


def test_a_rotation_never_makes_the_old_key_live_longer(account: ServiceAccount) -> None:
    soon = timezone.now() + timedelta(hours=1)
    old = issue(account, expires_at=soon)
    with every_tenant():
        api_key_rotate(actor=SYSTEM, at=timezone.now(), key_id=old.key.id, overlap=timedelta(days=30))
        assert ApiKey.objects.get(id=old.key.id).expires_at == soon


@pytest.mark.parametrize("end", [ended_by_expiry, ended_by_revocation])
def test_an_ended_key_cannot_be_rotated(account: ServiceAccount, end: Callable[[IssuedKey], None]) -> None:
    issued = issue(account)
    end(issued)
    with every_tenant(), pytest.raises(WrongState):
        api_key_rotate(actor=SYSTEM, at=timezone.now(), key_id=issued.key.id, overlap=timedelta(0))


def test_a_third_live_key_is_refused_and_ended_ones_do_not_count(account: ServiceAccount) -> None:
    first, _ = issue(account), issue(account)
    with pytest.raises(KeyLimitReached):
        issue(account)
    with every_tenant(), pytest.raises(KeyLimitReached):
        api_key_rotate(actor=SYSTEM, at=timezone.now(), key_id=first.key.id, overlap=timedelta(0))
    ended_by_revocation(first)
    assert status(issue(account).secret) == 200


@pytest.mark.parametrize("scopes", [("everything",), ("orchestrator:read", "nonsense")])
def test_unknown_scopes_cannot_be_issued(account: ServiceAccount, scopes: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        issue(account, *scopes)


def test_only_an_administrator_of_the_installation_gives_the_scope_that_reaches_everywhere(
    cast: Cast, account: ServiceAccount
) -> None:
    operator = cast.actor(cast.operator, [cast.organization])
    administrator = cast.actor(cast.administrator, [cast.organization])
    wide = ["orchestrator:admin"]
    with every_tenant():
        with pytest.raises(Refused):
            api_key_issue(actor=operator, at=timezone.now(), service_account=account, scopes=wide)
        issued = api_key_issue(actor=administrator, at=timezone.now(), service_account=account, scopes=wide)
        with pytest.raises(Refused):
            api_key_rotate(actor=operator, at=timezone.now(), key_id=issued.key.id, overlap=timedelta(0))
        kept = ApiKey.objects.get(service_account=account)
        assert kept.expires_at == issued.key.expires_at  # the refused rotation changed nothing


def test_a_stranger_cannot_end_or_rotate_somebody_elses_key(cast: Cast, account: ServiceAccount) -> None:
    issued = issue(account)
    actor = cast.actor(cast.other_operator, [cast.other])
    with tenant_scope([cast.other.id]):
        with pytest.raises(NotFound):
            api_key_revoke(actor=actor, at=timezone.now(), key_id=issued.key.id)
        with pytest.raises(NotFound):
            api_key_rotate(actor=actor, at=timezone.now(), key_id=issued.key.id, overlap=timedelta(0))
    assert status(issued.secret) == 200


def test_the_operators_permission_is_asked_for_where_the_scope_is_wider(cast: Cast, account: ServiceAccount) -> None:
    """The console's scope is what a person may see; what they may change is less."""
    issued = issue(account)
    auditor = cast.actor(cast.auditor, [])
    with every_tenant():
        for act in (
            lambda: api_key_issue(actor=auditor, at=timezone.now(), service_account=account, scopes=["ledger:read"]),
            lambda: api_key_revoke(actor=auditor, at=timezone.now(), key_id=issued.key.id),
            lambda: api_key_rotate(actor=auditor, at=timezone.now(), key_id=issued.key.id, overlap=timedelta(0)),
            lambda: service_account_suspend(
                actor=auditor, at=timezone.now(), service_account_id=account.id, reason_code="rehearsal"
            ),
            lambda: service_account_reinstate(actor=auditor, at=timezone.now(), service_account_id=account.id),
        ):
            with pytest.raises(NotFound):
                act()
    assert status(issued.secret) == 200


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer  ",
        "bearer hp_",
        "Basic aGVsbG86d29ybGQ=",
        "Bearer hp_a_b c d",
        "Bearer \x00",
        "Bearer schl\u00fcssel",
        "Bearer \xff\xfe",
        "Bearer " + "x" * 8000,
        "",
        "hp_0123456789_x",
    ],
)
@pytest.mark.parametrize("url", [URL, "/api/v1/ledger/entries", "/api/v1/execution/slug/1/attempts"])
def test_a_malformed_credential_is_401_on_every_door(db: None, header: str, url: str) -> None:
    client = APIClient(raise_request_exception=False)
    answer = (client.post if "execution" in url else client.get)(url, HTTP_AUTHORIZATION=header)
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["type"].endswith("/problems/credential-missing")


def test_last_used_is_kept_to_ten_minutes(account: ServiceAccount) -> None:
    issued = issue(account)

    def use(at: datetime | None = None) -> datetime | None:
        with every_tenant():
            rows = ApiKey.objects.filter(id=issued.key.id)
            if at is not None:
                rows.update(last_used_at=at)
        status(issued.secret)
        with every_tenant():
            return ApiKey.objects.get(id=issued.key.id).last_used_at

    first = use()
    assert first is not None
    assert use() == first
    later = use(at=first - timedelta(minutes=11))
    assert later is not None
    assert later > first


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", ["issue", "rotate"])
def test_two_at_once_cannot_both_take_the_last_place(act: str) -> None:
    """Fails without `select_for_update` on the account: both would count one live key."""
    account: ServiceAccount = ServiceAccountFactory(organization=Cast().organization)
    first = issue(account)
    both_counted = threading.Barrier(2)

    def take_it() -> str:
        with every_tenant(), slow_count(both_counted):
            try:
                if act == "issue":
                    issue(account)
                else:
                    api_key_rotate(actor=SYSTEM, at=timezone.now(), key_id=first.key.id, overlap=timedelta(hours=1))
            except KeyLimitReached:
                return "refused"
            return "issued"

    assert sorted(in_parallel(take_it, take_it)) == ["issued", "refused"]
    with every_tenant():
        assert ApiKey.objects.filter(service_account=account, revoked_at=None).count() == 2


def slow_count(both_counted: threading.Barrier) -> Any:
    """Holds a thread after it has counted the live keys until the other has counted too, or is seen to wait."""

    def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = run(sql, params, many, context)
        if sql.startswith("SELECT COUNT(*)") and "governance_apikey" in sql:
            with suppress(threading.BrokenBarrierError):  # the other one waits for our lock: that is the point
                both_counted.wait(timeout=0.5)
        return result

    return connection.execute_wrapper(execute)
