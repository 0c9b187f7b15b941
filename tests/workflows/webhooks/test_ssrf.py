"""No URL and no resolver turns a webhook inwards. A listener on loopback and a hook on every connect look on."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.attempts.execution.target import CountingTarget
from workflows.webhooks.adapters import WebhookRequest, webhook_send
from workflows.webhooks.services.endpoints import url_problems

pytestmark = pytest.mark.unit
NOBODY: frozenset[str] = frozenset()
PUBLIC = "93.184.216.34"
# {p}: the port of the listener, which would take the connection.
LOOPBACK = [
    "https://127.0.0.1:{p}/",
    "https://127.0.0.1.:{p}/",
    "https://127.1:{p}/",
    "https://127.0.1:{p}/",
    "https://127.000.000.001:{p}/",
    "https://127.8.8.8:{p}/",
    "https://2130706433:{p}/",
    "https://017700000001:{p}/",
    "https://0x7f000001:{p}/",
    "https://0x7f.0x0.0x0.0x1:{p}/",
    "https://0x7f.1:{p}/",
    "https://0177.0.0.1:{p}/",
    "https://0:{p}/",
    "https://0.0.0.0:{p}/",
    "https://[::1]:{p}/",
    "https://[::]:{p}/",
    "https://[0:0:0:0:0:0:0:1]:{p}/",
    "https://[0000:0000:0000:0000:0000:0000:0000:0001]:{p}/",
    "https://[::ffff:127.0.0.1]:{p}/",
    "https://[::ffff:7f00:1]:{p}/",
    "https://[::127.0.0.1]:{p}/",
    "https://[64:ff9b::127.0.0.1]:{p}/",
    "https://[64:ff9b:1::7f00:1]:{p}/",
    "https://[2002:7f00:1::]:{p}/",
    "https://[2001:0:7f00:1::]:{p}/",
    "https://[fe80::1%25lo]:{p}/",
    "https://localhost:{p}/",
    "https://LOCALHOST:{p}/",
    "https://localhost.:{p}/",
    "https://localhost.localdomain:{p}/",
    "https://ip6-localhost:{p}/",
    "https://127.0.0.1.nip.example:{p}/",
    "https://xn--lcalhost-n0a.example:{p}/",
    "https://ⓛocalhost:{p}/",
    "https://①②⑦.⓪.⓪.①:{p}/",
    "https://１２７.０.０.１:{p}/",
    "https://127。0。0。1:{p}/",
]
NETWORKS = [
    "https://10.0.0.1/",
    "https://10.255.255.255/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.0.1/",
    "https://192.168.1.254:8443/",
    "https://169.254.169.254/latest/meta-data/",
    "https://169.254.170.2/v2/credentials",
    "https://2852039166/latest/meta-data/",
    "https://0xa9fea9fe/",
    "https://[::ffff:169.254.169.254]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[fd00:ec2::254]/",
    "https://100.64.0.1/",
    "https://192.0.0.192/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[fc00::1]/",
    "https://[fe80::1]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://metadata.google.internal/computeMetadata/v1/",
    "https://kubernetes.default.svc/",
    "https://router.local/",
]
FORMS = [
    "http://127.0.0.1:{p}/",
    "http://public.example/",
    "HTTP://localhost:{p}/",
    "ftp://127.0.0.1:{p}/",
    "gopher://127.0.0.1:{p}/_x",
    "file:///etc/passwd",
    "unix:///var/run/docker.sock",
    "data:text/plain,x",
    "//127.0.0.1:{p}/",
    "127.0.0.1:{p}",
    "https://",
    "https:///path",
    "https:/127.0.0.1:{p}/",
    "https://public.example@127.0.0.1:{p}/",
    "https://public.example:x@127.0.0.1:{p}/",
    "https://127.0.0.1:{p}@public.example/",
    "https://public.example\\@127.0.0.1:{p}/",
    "https://public.example#@127.0.0.1:{p}/",
    "https://127.0.0.1:{p}\\.public.example/",
    "https://127.0.0.1%00.public.example:{p}/",
    "https://127.0.0.1%2f@public.example:{p}/",
    "https://public.example:0/",
    "https://public.example:99999/",
    "https://public.example:{p}:443/",
    "https://[127.0.0.1]:{p}/",
    "https://[::1/",
    "https://a..b/",
    "https://" + "a" * 70 + ".example/",
    "https://\n127.0.0.1:{p}/",
    "https://127.0.0.1:{p}/\r\nHost: x",
    " https://127.0.0.1:{p}/",
    "",
]
CORPUS = [*LOOPBACK, *NETWORKS, *FORMS]
HARMLESS = {"https://public.example#@127.0.0.1:{p}/"}  # its host is public.example: refused for its fragment


class Watched:
    """The listener, the connects that were tried, and the resolver: names are told by the test, numbers by the C
    library, which knows all their notations."""

    def __init__(self) -> None:
        self.connects: list[Any] = []
        self.asked: list[str] = []
        self.answers: Callable[[str], list[str]] = lambda name: ["127.0.0.1"]
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]

    def resolve(self, host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        self.asked.append(name)
        try:
            return self.real(host, port, *rest, **more | {"flags": socket.AI_NUMERICHOST})
        except socket.gaierror:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in self.answers(name)]

    @property
    def accepted(self) -> int:
        count = 0
        while True:
            try:
                self.listener.accept()[0].close()
            except BlockingIOError:
                return count
            count += 1

    real: Any = staticmethod(socket.getaddrinfo)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    found = Watched()
    connect = socket.socket.connect

    def seen(self: socket.socket, address: Any) -> Any:
        if self.family == socket.AF_UNIX:
            return connect(self, address)
        found.connects.append(address)
        if not str(address[0]).startswith(("127.", "::1")):
            raise ConnectionRefusedError  # nothing of this leaves the machine
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", seen)
    monkeypatch.setattr(socket, "getaddrinfo", found.resolve)
    yield found
    found.listener.close()


def sent_to(url: str, *, private_hosts: frozenset[str] = NOBODY) -> str:
    return webhook_send(
        WebhookRequest(url, b"{}", {"content-type": "application/json"}, private_hosts, seconds=2.0)
    ).outcome


def test_the_corpus_is_large_and_says_everything_once() -> None:
    assert len(CORPUS) == len(set(CORPUS)) >= 90


def test_no_url_of_the_corpus_makes_a_connect(watched: Watched) -> None:
    for url in CORPUS:
        if url in HARMLESS:
            continue
        outcome = sent_to(url.replace("{p}", str(watched.port)))
        assert outcome in {"address_refused", "no_connection"}, url
        assert (watched.connects, watched.accepted) == ([], 0), url


def test_what_shows_at_once_is_refused_when_the_endpoint_is_made(watched: Watched) -> None:
    shown = [url for url in CORPUS if url_problems(url.replace("{p}", str(watched.port)), private_hosts=NOBODY)]
    only_when_resolved = {"https://a..b/", "https://" + "a" * 70 + ".example/"}
    assert set(FORMS) - set(shown) == only_when_resolved
    assert {"https://127.0.0.1:{p}/", "https://[::1]:{p}/", "https://10.0.0.1/"} <= set(shown)
    assert watched.connects == []
    assert url_problems("https://hooks.example.com/x?y=1", private_hosts=NOBODY) == []


def test_the_hook_and_the_listener_would_have_seen_one(watched: Watched) -> None:
    """The control: the same door, opened by an operator."""
    outcome = sent_to(f"http://localhost:{watched.port}/", private_hosts=frozenset({f"localhost:{watched.port}"}))
    assert outcome in {"timeout", "answer_lost"}  # it takes the connection and says nothing
    assert (len(watched.connects), watched.accepted) == (1, 1)


def test_a_name_that_turns_inwards_after_it_was_looked_at_is_refused(watched: Watched) -> None:
    """DNS rebinding: public when the endpoint is made, loopback when it is called."""
    watched.answers = lambda name: [PUBLIC]
    assert url_problems(f"https://rebind.example:{watched.port}/", private_hosts=NOBODY) == []
    watched.answers = lambda name: ["127.0.0.1"]
    assert sent_to(f"https://rebind.example:{watched.port}/") == "address_refused"
    watched.answers = lambda name: [PUBLIC, "127.0.0.1"]
    assert sent_to(f"https://rebind.example:{watched.port}/") == "address_refused"
    assert (watched.connects, watched.accepted) == ([], 0)


def test_a_name_that_alternates_is_asked_once_and_only_what_was_checked_is_called(watched: Watched) -> None:
    for first, allowed in ((PUBLIC, [(PUBLIC, watched.port)]), ("127.0.0.1", [])):
        answers = iter([first, "127.0.0.1" if first == PUBLIC else PUBLIC] * 5)
        watched.answers = lambda name, answers=answers: [next(answers)]  # type: ignore[misc]
        watched.asked.clear()
        watched.connects.clear()
        sent_to(f"https://rebind.example:{watched.port}/")
        assert watched.asked.count("rebind.example") == 1
        assert watched.connects == allowed
    assert watched.accepted == 0


def test_a_redirect_is_not_followed(watched: Watched) -> None:
    target = CountingTarget()
    target.statuses, target.headers = [302, 307, 308, 303, 301], {"Location": f"http://127.0.0.1:{watched.port}/"}
    listed = frozenset({target.host, f"127.0.0.1:{watched.port}"})
    assert [sent_to(target.url, private_hosts=listed) for _ in range(5)] == ["redirected"] * 5
    target.stop()
    assert watched.accepted == 0


def test_a_listed_host_is_that_host_and_port_and_no_other(watched: Watched) -> None:
    listed = frozenset({f"inside.example:{watched.port}"})
    for url in (f"http://inside.example:{watched.port + 1}/", f"http://other.example:{watched.port}/"):
        assert sent_to(url, private_hosts=listed) == "address_refused"
    assert watched.connects == []
