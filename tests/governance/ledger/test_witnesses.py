"""Witnesses get every signed head once, whatever they are made of; one that is away holds nothing up."""

import json
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from governance.sealing.adapters.base import Witness, WitnessFailed
from governance.sealing.adapters.file import FileWitness
from governance.sealing.configured import witness_entries, witness_from, witnesses_configured
from governance.sealing.models import LedgerCheckpoint, LedgerLeaf, WitnessReceipt
from governance.sealing.selectors.witnesses import witness_standing
from governance.sealing.services.witnesses import witness_push
from governance.sealing.tasks import witnesses_push_task
from tests.governance.ledger.record import append, head, sealed, verify, witness_in, witnessed
from tests.governance.ledger.sealing import KEY, seal_all


class Notary(BaseHTTPRequestHandler):
    """A witness as docs/ledger.md describes it, which remembers what it was sent."""

    kept: list[str]
    status = 201

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.server.status == 201:  # type: ignore[attr-defined]
            self.server.kept.append(text)  # type: ignore[attr-defined]
        self.answer(self.server.status, b"")  # type: ignore[attr-defined]

    def do_GET(self) -> None:
        kept = self.server.kept  # type: ignore[attr-defined]
        if "after=" in self.path:
            after = int(self.path.rpartition("after=")[2])
            page = [text for text in kept if int(text.split("\n")[1]) > after][:2]
            self.answer(200, "".join(json.dumps({"checkpoint": text}) + "\n" for text in page).encode())
        elif kept:
            self.answer(200, kept[-1].encode())
        else:
            self.answer(404, b"")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def notary() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Notary)
    server.kept, server.status = [], 201
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.fixture(params=["file", "storage", "http"])
def witness(request: pytest.FixtureRequest, tmp_path: Path, settings: Any, notary: Any) -> Witness:
    where = {
        "file": (tmp_path / "heads.jsonl").as_uri(),
        "storage": "storage:witness/heads",
        "http": f"http://127.0.0.1:{notary.server_port}/heads",
    }
    folder = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = settings.STORAGES | {"witness": folder}
    settings.LEDGER_NAME = KEY.name
    settings.LEDGER_WITNESSES = json.dumps([{"name": "notary", "url": where[request.param]}])
    return witnesses_configured()[0]


@pytest.mark.django_db(transaction=True)
def test_every_head_is_kept_once_and_read_back(witness: Witness) -> None:
    sealed(3, 2, 4)
    texts = set(LedgerCheckpoint.objects.values_list("text", flat=True))
    first = witness_push(at=timezone.now(), witness=witness)
    again = witness_push(at=timezone.now(), witness=witness)
    assert (first.stored, again.stored) == (len(texts), 0)
    assert set(witness.heads()) == texts
    assert head().text in witness.newest()
    assert WitnessReceipt.objects.filter(result="stored").count() == len(texts)
    found = verify("--witnesses")
    assert found["valid"], found["wrong"]
    assert (found["witnesses"][0]["heads"], found["witnesses"][0]["largest"]) == (len(texts), head().size)


@pytest.mark.django_db(transaction=True)
def test_a_head_sent_twice_changes_nothing(witness: Witness) -> None:
    """A crash between the witness' answer and the receipt."""
    sealed(2)
    witness.push(head().text, size=head().size, epoch=1)
    assert witness_push(at=timezone.now(), witness=witness).failed == ""
    assert set(witness.heads()) == set(LedgerCheckpoint.objects.values_list("text", flat=True))
    assert verify("--witnesses")["valid"]


@pytest.mark.django_db(transaction=True)
def test_nothing_stored_yet_is_no_head(witness: Witness) -> None:
    assert (witness.newest(), list(witness.heads())) == ([], [])


@pytest.mark.django_db(transaction=True)
def test_a_witness_that_is_away_is_on_record_and_left_alone_for_a_while() -> None:
    away = witness_from(url="http://127.0.0.1:9/heads", name="away")
    sealed(2)
    now = timezone.now()
    assert witness_push(at=now, witness=away).failed == "http_ConnectError"
    assert witness_push(at=now + timedelta(seconds=5), witness=away).failed == "", "not asked again so soon"
    assert witness_push(at=now + timedelta(seconds=11), witness=away).failed == "http_ConnectError"
    assert list(WitnessReceipt.objects.values_list("result", flat=True)) == ["failed", "failed"]
    append(1)
    seal_all()
    assert LedgerLeaf.objects.count() == head().size, "sealing goes on"
    standing = witness_standing(witness="away")
    assert (standing.size, standing.behind) == (0, LedgerCheckpoint.objects.count())
    assert standing.alarming(at=now + timedelta(seconds=600), heads=100, seconds=300)
    assert not standing.alarming(at=now, heads=100, seconds=300)
    assert standing.alarming(at=now, heads=0, seconds=300)


@pytest.mark.django_db(transaction=True)
def test_a_witness_that_comes_back_gets_what_it_missed(notary: Any) -> None:
    witness = witness_from(url=f"http://127.0.0.1:{notary.server_port}/", name="notary")
    notary.status = 503
    sealed(1, 1)
    now = timezone.now()
    assert witness_push(at=now, witness=witness).failed == "http_503"
    notary.status = 201
    assert witness_push(at=now + timedelta(minutes=1), witness=witness).stored == LedgerCheckpoint.objects.count()
    assert witness_standing(witness="notary").behind == 0


@pytest.mark.django_db(transaction=True)
def test_a_refusal_is_an_alarm(notary: Any) -> None:
    witness = witness_from(url=f"http://127.0.0.1:{notary.server_port}/", name="notary")
    notary.status = 409
    sealed(1)
    witness_push(at=timezone.now(), witness=witness)
    assert witness_standing(witness="notary").alarming(at=timezone.now(), heads=1000, seconds=1000)


@pytest.mark.django_db(transaction=True)
def test_a_storage_never_gives_a_place_to_another_head(tmp_path: Path, settings: Any) -> None:
    folder = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = settings.STORAGES | {"witness": folder}
    witness = witness_from(url="storage:witness", name="store")
    witness.push("one head", size=7, epoch=1)
    with pytest.raises(WitnessFailed, match="another_head_is_there"):
        witness.push("another head", size=7, epoch=1)
    witness.push("of a new epoch", size=5, epoch=2)
    assert witness.newest() == ["of a new epoch"]


@pytest.mark.django_db(transaction=True)
def test_a_head_that_the_witness_lost_is_named(tmp_path: Path, settings: Any) -> None:
    witness = witness_in(tmp_path)
    settings.LEDGER_WITNESSES = json.dumps([{"name": "notary", "url": witness.path.as_uri()}])
    sealed(1, 1, 1)
    witnessed(witness)
    lines = witness.path.read_text().splitlines(keepends=True)
    witness.path.write_text("".join(lines[:-1]))
    found = verify("--witnesses")
    assert not found["valid"]
    assert f"head of {head().size} entries that it stored is not there" in found["wrong"][0]


@pytest.mark.unit
def test_a_torn_line_is_passed_over_and_a_new_one_begun(tmp_path: Path) -> None:
    witness = FileWitness(name="notary", path=tmp_path / "deep" / "heads.jsonl")
    witness.push("first\n", size=1, epoch=1)
    with witness.path.open("a") as stream:
        stream.write('{"size": 2, "chec')
    witness.push("third\n", size=3, epoch=1)
    assert list(witness.heads()) == witness.newest() == ["first\n", "third\n"]


@pytest.mark.unit
def test_addresses_are_read_and_wrong_ones_refused() -> None:
    assert witness_entries(" file:///a/b , https://w.example/x ") == [
        {"url": "file:///a/b"},
        {"url": "https://w.example/x"},
    ]
    assert witness_entries("") == []
    assert witness_entries('["file:///a", {"url": "https://w.example", "token": "t"}]')[0] == {"url": "file:///a"}
    for wrong in ("ftp://w.example", "file://host/path", "heads.jsonl"):
        with pytest.raises(ImproperlyConfigured):
            witness_from(url=wrong)
    with pytest.raises(ImproperlyConfigured):
        witness_entries("[{]")


@pytest.mark.django_db(transaction=True)
def test_the_clock_pushes_to_all_that_are_configured(tmp_path: Path, settings: Any) -> None:
    witness = witness_in(tmp_path)
    settings.LEDGER_WITNESSES = witness.path.as_uri()
    sealed(2)
    witnesses_push_task()
    assert head().text in witness.newest()
