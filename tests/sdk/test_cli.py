"""The `holdpoint` command: tables for people, JSON for programs, exit codes for scripts, no key on a command line."""

import io
import json
from typing import Any

import httpx
import pytest
from holdpoint_client import cli
from holdpoint_client.client import Holdpoint
from holdpoint_client.retry import RetryPolicy

from tests.sdk.stand_in import ID, Server, asked, problem

pytestmark = pytest.mark.unit
ROW = {
    "id": ID,
    "state": "completed",
    "reason_code": None,
    "created_at": "2026-11-16T12:00:00.5Z",
    "target_ref": "c\x1b[31m",
}


@pytest.fixture
def holdpoint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any) -> Any:
    monkeypatch.setenv("HOLDPOINT_URL", "https://hp.example")
    monkeypatch.setenv("HOLDPOINT_KEY", "hp_k")
    monkeypatch.setenv("HOLDPOINT_KEY_STORE", str(tmp_path / "keys"))

    def run(server: Server, *arguments: str, typed: str = "") -> tuple[int, str, str]:
        quick = RetryPolicy(deadline=0.1, first=0.001)
        made = lambda url: Holdpoint(url, retry=quick, transport=server.transport)  # noqa: E731
        monkeypatch.setattr(cli, "Holdpoint", made)
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code = cli.main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def page(*rows: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json={"next": None, "previous": None, "results": list(rows)})


def test_a_list_is_a_table_for_people_and_the_servers_rows_for_programs(holdpoint: Any) -> None:
    server = Server(attempts=page(ROW))
    code, out, _ = holdpoint(server, "attempts", "list", "--state", "completed", "--limit", "5")
    assert code == 0
    assert out.splitlines()[0].split()[:2] == ["id", "state"]
    assert ID in out
    assert "2026-11-16 12:00:00" in out
    assert "\x1b" not in out  # what a server sends does not steer a terminal
    assert dict(server.requests[0].url.params) == {"page_size": "5", "state": "completed"}
    code, out, _ = holdpoint(server, "attempts", "list", "--json")
    assert json.loads(out) == [ROW]
    assert holdpoint(Server(attempts=page()), "attempts", "list")[1] == "nothing found\n"


def test_explain_says_what_is_in_the_way(holdpoint: Any) -> None:
    obstacles = [{"kind": "quorum", "detail": "one more clinician", "facts": {}}]
    answer = httpx.Response(200, json={"state": "review-required", "obstacles": obstacles})
    code, out, _ = holdpoint(Server(explain=answer), "attempts", "explain", ID)
    assert (code, "quorum: one more clinician" in out) == (0, True)


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (problem(404, "not-found"), 1, "Help: https://holdpoint.example/problems/not-found"),
        (problem(403, "scope-missing", required_scope="governance:write"), 1, "scope governance:write"),
        (problem(429, "rate-limited", {"Retry-After": "60"}), 4, "Try again in 60 seconds"),
        (problem(503, "record-unavailable"), 4, "record-unavailable"),
        (httpx.ConnectError("no"), 4, "did not answer"),
    ],
)
def test_errors_are_plain_words_with_a_page_that_helps_and_an_exit_code(
    holdpoint: Any, answer: Any, code: int, words: str
) -> None:
    found, out, err = holdpoint(Server(read=answer), "attempts", "show", ID)
    assert (found, out) == (code, "")
    assert words in err
    assert "Traceback" not in err
    _, _, err = holdpoint(Server(read=answer), "attempts", "show", ID, "--json")
    assert json.loads(err)["exit_code"] == code


@pytest.mark.parametrize(
    "command",
    [
        ("reviews", "approve"),
        ("reviews", "reject"),
        ("quarantine", "resolve"),
        ("shutdown", "release"),
        ("holds", "release"),
    ],
)
def test_what_only_people_may_do_is_said_with_the_page_and_nothing_is_sent(
    holdpoint: Any, command: tuple[str, str]
) -> None:
    server = Server()
    code, _, err = holdpoint(server, *command, ID)
    assert (code, server.requests) == (3, [])
    assert "Only" in err
    assert f"https://hp.example/{'review' if command[0] == 'reviews' else 'admin'}/" in err
    assert ID in err


def test_a_reason_code_is_demanded_of_scripts_and_sent(holdpoint: Any) -> None:
    done = httpx.Response(200, json={"instance": {"status": "halted"}})
    server = Server(halt=done)
    code, _, err = holdpoint(server, "instances", "halt", ID)
    assert (code, server.requests, "--reason" in err) == (2, [], True)
    code, out, _ = holdpoint(server, "instances", "halt", ID, "--reason", "rehearsal")
    assert (code, "now halted" in out) == (0, True)
    assert json.loads(server.requests[0].content) == {"reason_code": "rehearsal", "note": ""}


def test_a_shutdown_shows_what_it_stops_and_needs_a_yes_unless_it_is_a_drill(holdpoint: Any) -> None:
    preview = httpx.Response(200, json={"contracts": 2, "organizations": 1, "named": ["demo/close"]})
    server = Server(preview=preview, shutdowns=httpx.Response(201, json={"id": ID, "state": "engaged"}))
    order = ("shutdown", "engage", "contract", "close", "--reason", "rehearsal")
    code, out, _ = holdpoint(server, *order)
    assert (code, "contracts: 2" in out, len(server.sent("shutdowns"))) == (2, True, 0)
    assert holdpoint(server, *order, "--yes")[0] == 0
    assert holdpoint(server, *order, "--drill")[0] == 0
    assert [json.loads(sent.content)["drill"] for sent in server.sent("shutdowns")] == [False, True]


def test_a_replay_is_one_however_often_it_is_asked_for(holdpoint: Any) -> None:
    server = Server(replay=asked())
    for _ in range(2):
        assert holdpoint(server, "attempts", "replay", ID)[0] == 0
    assert holdpoint(server, "attempts", "replay", ID, "--ref", "another")[0] == 0
    keys = [request.headers["Idempotency-Key"] for request in server.requests]
    assert keys[0] == keys[1] != keys[2]


def test_an_event_comes_from_a_file_or_standard_input(holdpoint: Any, tmp_path: Any) -> None:
    server = Server(events=httpx.Response(202, json={"event_id": ID, "outcome": "applied"}))
    (tmp_path / "event.json").write_text('{"event_id": "1"}')
    assert holdpoint(server, "events", "send", str(tmp_path / "event.json"))[0] == 0
    assert holdpoint(server, "events", "send", "-", typed='{"event_id": "2"}')[0] == 0
    assert [json.loads(sent.content)["event_id"] for sent in server.requests] == ["1", "2"]
    assert holdpoint(server, "events", "send", "-", typed="{")[0] == 2
    assert holdpoint(server, "events", "send", str(tmp_path / "none.json"))[0] == 2


def test_a_key_cannot_be_given_on_the_command_line_and_a_missing_one_is_said(
    holdpoint: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as usage:
        cli.main(["attempts", "list", "--key", "hp_k"])
    assert usage.value.code == 2
    monkeypatch.delenv("HOLDPOINT_KEY")
    code, _, err = holdpoint(Server(), "attempts", "list")
    assert (code, "HOLDPOINT_KEY" in err) == (2, True)
