"""Every call outwards has one limit for all of it, looking the name up too: a name that hangs, or a server that says a
word now and then, keeps no worker. Each call here returns while its other side still hangs."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.core.mail import EmailMessage, get_connection

from attempts.execution.adapters.base import OutcomeKind
from attempts.execution.adapters.email import EmailAdapter
from attempts.execution.adapters.http import HttpAdapter
from attempts.execution.adapters.slack import SlackAdapter
from governance.outside import names
from governance.outside.names import NameNotFoundInTime, addresses_of
from tests.attempts.execution.test_adapters import ROUTE, call, raw_server, slack
from workflows.webhooks.adapters import TIMEOUT, WebhookRequest, webhook_send

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]
SECONDS = 0.3
TIMED = "governance.outside.mail.TimedEmailBackend"


class HangingNames:
    """Names that end in `hangs.example` are looked up for ever; others are this machine."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.over = threading.Event()

    def look_up(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        if host.endswith("hangs.example"):
            self.over.wait(60)
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingNames]:
    found = HangingNames()
    monkeypatch.setattr(socket, "getaddrinfo", found.look_up)
    yield found
    assert not found.over.is_set()
    found.over.set()
    while names._under_way:
        time.sleep(0.01)


def test_a_name_that_hangs_ends_each_adapters_call_and_nothing_was_sent(hanging: HangingNames, settings: Any) -> None:
    settings.HOLDPOINT_HTTP_TARGETS = {ROUTE: "https://target.hangs.example/"}
    slack(settings, "https://chat.hangs.example/api/")
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = TIMED, "mail.hangs.example", 25
    settings.HOLDPOINT_EMAIL_TARGETS = {ROUTE: "desk@clinic.example"}
    for adapter, retryable in ((HttpAdapter(), True), (SlackAdapter(), False), (EmailAdapter(), False)):
        outcome = adapter.call(call(seconds=SECONDS))
        assert (outcome.kind, outcome.retryable) == (OutcomeKind.FAILURE, retryable), adapter.name
        assert outcome.response_metadata == {"failure": "no_connection"}
    hook = WebhookRequest("https://hook.hangs.example/", b"{}", {}, frozenset(), SECONDS)
    assert webhook_send(hook).outcome == TIMEOUT
    assert hanging.asked == [f"{name}.hangs.example" for name in ("target", "chat", "mail", "hook")]


def test_a_name_that_hangs_keeps_one_thread_however_often_it_is_asked_for(hanging: HangingNames) -> None:
    for _ in range(5):
        with pytest.raises(NameNotFoundInTime):
            addresses_of("a.hangs.example", 443, seconds=0.01)
    assert hanging.asked == ["a.hangs.example"]
    assert addresses_of("here.example", 443, seconds=5) == ["127.0.0.1"]


def test_names_that_hang_take_no_more_threads_than_a_limit(
    hanging: HangingNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "MOST_UNDER_WAY", 3)
    for number in range(5):
        with pytest.raises(NameNotFoundInTime):
            addresses_of(f"{number}.hangs.example", 443, seconds=0.01)
    assert len(hanging.asked) == 3


def test_a_name_that_does_not_exist_is_still_told_so() -> None:
    with pytest.raises(OSError):
        addresses_of("nowhere.invalid", 443, seconds=10)


def words(first: bytes, *, greeted: bool) -> Callable[[socket.socket], None]:
    """A mail server that never comes to an end: a line now and then, at the greeting or after it."""

    def talk(connection: socket.socket) -> None:
        with suppress(OSError):
            if greeted:
                connection.sendall(b"220 ready\r\n")
                connection.recv(65536)
            while True:
                connection.sendall(first)
                time.sleep(0.02)

    return talk


@pytest.mark.parametrize(("greeted", "kind"), [(False, OutcomeKind.FAILURE), (True, OutcomeKind.UNKNOWN)])
def test_a_mail_server_that_says_a_word_now_and_then_ends_the_call(
    settings: Any, greeted: bool, kind: OutcomeKind
) -> None:
    line = b"250-and another thing\r\n" if greeted else b"220-wait\r\n"
    with raw_server(words(line, greeted=greeted)) as port:
        settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = TIMED, "127.0.0.1", port
        settings.HOLDPOINT_EMAIL_TARGETS = {ROUTE: "desk@clinic.example"}
        assert EmailAdapter().call(call(seconds=SECONDS)).kind is kind


def test_the_time_of_one_mail_is_limited_also_on_a_connection_for_many(settings: Any) -> None:
    with raw_server(words(b"250-and another thing\r\n", greeted=True)) as port:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
        way = get_connection(TIMED, timeout=SECONDS)
        way.open()
        with pytest.raises(OSError):
            way.send_messages([EmailMessage("a", "b", to=["desk@clinic.example"])])
        way.close()
