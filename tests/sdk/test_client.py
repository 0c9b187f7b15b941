"""Both clients against a server that fails in every way: one key, one body, honest results."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from holdpoint_client import (
    Action,
    Allowed,
    AsyncHoldpoint,
    Closed,
    Completed,
    CredentialRefused,
    Denied,
    Held,
    Holdpoint,
    InvalidRequest,
    KeyConflict,
    KeyExpired,
    MemoryKeyStore,
    Quarantined,
    RefUsed,
    Refused,
    RetryPolicy,
    ScopeMissing,
    SettingMissing,
    SQLiteKeyStore,
    StillWaiting,
    TryLater,
    Unreachable,
)

from tests.sdk.stand_in import ID, Say, Server, asked, problem

pytestmark = pytest.mark.unit
QUICK = RetryPolicy(deadline=2.0, first=0.001, longest=0.002)
ACTION = Action("case.close", target_ref="case-1", fields=("status",))
GONE = httpx.ReadTimeout("lost")


def ask(server: Server, *, store: Any = None, **more: Any) -> Any:
    with Holdpoint(
        "https://hp.example", "hp_k", store=store or MemoryKeyStore(), retry=QUICK, transport=server.transport
    ) as one:
        return one.attempt("demo", action=ACTION, **({"ref": "r"} | more))


def ask_async(server: Server, *, store: Any = None, **more: Any) -> Any:
    async def main() -> Any:
        transport = httpx.MockTransport(server.answer)
        client = AsyncHoldpoint(
            "https://hp.example", "hp_k", store=store or MemoryKeyStore(), retry=QUICK, transport=transport
        )
        async with client:
            return await client.attempt("demo", action=ACTION, **({"ref": "r"} | more))

    return asyncio.run(main())


both = pytest.mark.parametrize("run", [ask, ask_async], ids=["sync", "async"])


@both
def test_every_try_has_the_same_key_and_body_until_an_answer_comes(run: Any) -> None:
    lost: list[Say] = [GONE, httpx.ConnectError("no"), problem(503, "record-unavailable"), httpx.Response(502), GONE]
    server = Server(attempts=[*lost, problem(409, "idempotency-in-progress", {"Retry-After": "0"}), asked()])
    assert isinstance(run(server), Allowed)
    assert len(server.requests) == 7
    assert len({(request.headers["Idempotency-Key"], request.content) for request in server.requests}) == 1
    assert server.requests[0].headers["Authorization"] == "Bearer hp_k"


@both
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (asked(), Allowed),
        (asked("review-required", 202), Held),
        (problem(403, "attempt-denied", attempt_id=ID, decision_id=ID, reason_code="policy_denied"), Denied),
        (asked(**{"Idempotent-Replayed": "true", "Attempt-State": "completed"}), Completed),
        (
            asked("review-required", 202, **{"Idempotent-Replayed": "true", "Attempt-State": "failed-quarantined"}),
            Quarantined,
        ),
        (
            asked("review-required", 202, **{"Idempotent-Replayed": "true", "Attempt-State": "approved-for-execution"}),
            Allowed,
        ),
        (asked("review-required", 202, **{"Idempotent-Replayed": "true", "Attempt-State": "preflight-denied"}), Denied),
    ],
)
def test_an_answer_is_what_the_attempt_is_now(run: Any, answer: httpx.Response, kind: type) -> None:
    found = run(Server(attempts=answer))
    assert type(found) is kind
    assert found.attempt.id == ID
    assert found.replayed is ("Idempotent-Replayed" in answer.headers)


@both
@pytest.mark.parametrize(
    ("answer", "error", "sends"),
    [
        (problem(401, "credential-missing"), CredentialRefused, 1),
        (problem(403, "scope-missing"), ScopeMissing, 1),
        (problem(403, "attempt-creation-disabled"), Closed, 1),
        (problem(403, "second-person-needed"), Refused, 1),
        (problem(400, "invalid-input"), InvalidRequest, 1),
        (problem(422, "metadata-boundary"), InvalidRequest, 1),
        (problem(422, "idempotency-conflict"), KeyConflict, 1),
        (problem(410, "idempotency-key-expired"), KeyExpired, 1),
        (problem(429, "rate-limited", {"Retry-After": "3600"}), TryLater, 1),
        (httpx.Response(200, text="<html>a sign-in page</html>"), Refused, 1),
        (httpx.Response(201, json={"hello": "world"}), Refused, 1),
    ],
)
def test_a_refusal_is_raised_once_and_not_tried_again(
    run: Any, answer: httpx.Response, error: type, sends: int
) -> None:
    server = Server(attempts=answer)
    with pytest.raises(error) as caught:
        run(server)
    assert type(caught.value) is error
    assert len(server.requests) == sends


def test_where_every_call_is_a_new_attempt_a_lost_answer_is_not_asked_for_again() -> None:
    server = Server(attempts=[httpx.ConnectError("no"), GONE, asked()])
    with pytest.raises(Unreachable) as caught:
        ask(server, timeline=True)
    assert (len(server.requests), caught.value.sent) == (2, True)  # not connected: again; maybe arrived: no more


def test_without_any_answer_the_deadline_ends_it_and_the_key_stays() -> None:
    store, server = MemoryKeyStore(), Server(attempts=GONE)
    with pytest.raises(Unreachable):
        ask(server, store=store, deadline=0.2)
    (waiting,) = store.pending()
    assert waiting.key == server.requests[0].headers["Idempotency-Key"]
    assert isinstance(ask(Server(attempts=asked()), store=store), Allowed)
    assert store.pending() == []


def test_a_ref_names_one_request_and_an_own_key_is_used_as_it_is() -> None:
    store = MemoryKeyStore()
    ask(Server(attempts=asked()), store=store)
    with pytest.raises(RefUsed):
        ask(Server(attempts=asked()), store=store, metadata={"other": 1})
    server = Server(attempts=asked())
    ask(server, ref=None, key="my-own-key-1")
    assert server.requests[0].headers["Idempotency-Key"] == "my-own-key-1"
    for wrong in ({"ref": None}, {"ref": "r", "key": "k"}):
        with pytest.raises(SettingMissing):
            ask(Server(attempts=asked()), **wrong)


CRASH = """
import os, sys, httpx
from holdpoint_client import Action, Holdpoint, SQLiteKeyStore
def die(request):
    sys.stdout.write(request.headers["Idempotency-Key"]); sys.stdout.flush()
    os._exit(9)
client = Holdpoint("https://hp.example", "hp_k", store=SQLiteKeyStore(sys.argv[1]), transport=httpx.MockTransport(die))
client.attempt("demo", ref="r", action=Action("case.close", target_ref="case-1", fields=("status",)))
"""


def test_a_process_that_dies_while_sending_asks_under_the_same_key_after_its_restart(tmp_path: Path) -> None:
    """The key is on the disk before the first byte leaves: the send itself is where this process dies."""
    path = tmp_path / "keys" / "store.sqlite3"
    command = [sys.executable, "-c", CRASH, str(path)]
    died = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert died.returncode == 9, died.stderr
    server = Server(attempts=asked())
    ask(server, store=SQLiteKeyStore(path))
    assert died.stdout == server.requests[0].headers["Idempotency-Key"]


def environment() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(__file__).parents[2] / "sdk" / "src")}


def test_many_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:  # each call has a connection of its own, as a process would
        found = list(pool.map(lambda _: SQLiteKeyStore(tmp_path / "k").reserve("n", "s").key, range(24)))
    assert len(set(found)) == 1


def test_a_store_that_cannot_write_sends_nothing(tmp_path: Path) -> None:
    store = SQLiteKeyStore(tmp_path / "k")
    with sqlite3.connect(tmp_path / "k") as broken:
        broken.execute("DROP TABLE holdpoint_keys")
    broken.close()
    server = Server(attempts=asked())
    with pytest.raises(sqlite3.OperationalError):
        ask(server, store=store)
    assert server.requests == []


def test_waiting_sleeps_on_the_server_and_comes_back_with_the_decision() -> None:
    held, done = asked("review-required", 200, **{"Preference-Applied": "wait=25"}), asked("preflight-denied", 200)
    server = Server(read=[held, GONE, done])
    with Holdpoint("https://hp.example", "hp_k", retry=QUICK, transport=server.transport) as client:
        assert client.wait(ID).state == "preflight-denied"
        assert [request.headers["Prefer"] for request in server.requests] == ["wait=25"] * 3
    server = Server(read=asked("review-required", 200))
    cancelled = threading.Event()
    cancelled.set()
    with Holdpoint("https://hp.example", "hp_k", retry=QUICK, transport=server.transport) as client:
        for given in ({"timeout": 0.3}, {"timeout": 60, "cancel": cancelled}):
            with pytest.raises(StillWaiting):
                client.wait(ID, **given)


def test_lists_are_read_page_by_page_up_to_the_limit() -> None:
    def page(request: httpx.Request) -> httpx.Response:
        last = request.url.params.get("cursor") == "c2"
        following = None if last else "http://elsewhere.example/api/v1/attempts?cursor=c2&page_size=3"
        return httpx.Response(200, json={"next": following, "results": [{"id": 3}] if last else [{"id": 1}, {"id": 2}]})

    server = Server(attempts=page)
    with Holdpoint("https://hp.example", "hp_k", transport=server.transport) as client:
        assert [row["id"] for row in client.rows("/attempts", most=3, state=None)] == [1, 2, 3]
        assert [row["id"] for row in client.rows("/attempts", most=1)] == [1]
    assert {request.url.host for request in server.requests} == {"hp.example"}  # a key goes nowhere else


def test_without_an_address_or_a_key_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOLDPOINT_URL", "HOLDPOINT_KEY", "HOLDPOINT_EXECUTOR_KEY"):
        monkeypatch.delenv(name, raising=False)
    for given in (
        {},
        {"url": "https://hp.example"},
        {"url": "ftp://hp.example", "key": "k"},
        {"url": "http://[", "key": "k"},
    ):
        with pytest.raises(SettingMissing):
            Holdpoint(**given)  # type: ignore[arg-type]
    with Holdpoint("https://hp.example", "hp_secret") as client:
        assert "hp_secret" not in repr(client.settings)
