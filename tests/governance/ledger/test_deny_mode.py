"""A record that does not continue what a witness holds stops everything, at once and until a person confirms."""

import json
from pathlib import Path
from threading import Barrier, Thread
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from attempts.execution.models import DispatchIntent
from config.heartbeat import heartbeat_beat
from config.startup import ledger_checked
from governance.ledger.models import LedgerEntry
from governance.sealing.adapters.file import FileWitness
from governance.sealing.configured import known_keys, witnesses_configured
from governance.sealing.models import LedgerCheckpoint, LedgerEpoch
from governance.sealing.selectors.witnesses import epoch_current, ledger_denial
from governance.sealing.services.epoch import epoch_begin
from governance.sealing.tasks import ledger_check_task, ledger_guard, ledger_seal_task, witnesses_push_task
from governance.shutdown.models import Shutdown
from governance.shutdown.services import shutdown_release
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import InvalidInput, ScopeMissing, WrongState
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, asked, contract
from tests.cast import Cast
from tests.governance.ledger.record import append, head, sealed, tampered, verify, witness_in, witnessed
from tests.governance.ledger.sealing import KEY, seal_all
from tests.governance.ledger.test_tamper import cut

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]
SEED = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@pytest.fixture
def witness(tmp_path: Path, settings: Any) -> FileWitness:
    found = witness_in(tmp_path)
    settings.LEDGER_NAME, settings.LEDGER_KEY = KEY.name, SEED
    settings.LEDGER_WITNESSES = json.dumps([{"name": "notary", "url": found.path.as_uri()}])
    return found


@pytest.fixture
def ready(cast: Cast) -> UUID:
    """An attempt that an executor could lease."""
    contract(cast, adapter="external", effect="idempotent")
    return asked(cast.api("attempts:create"), connector="external", runtime_mode="client_driven")


@pytest.fixture
def shorter(witness: FileWitness, ready: UUID) -> int:
    """The witness knows of heads that the record has lost; its size now."""
    size = sealed(4)
    sealed(3, 2)
    witnessed(witness)
    tampered(*cut(size))
    return size


def actions() -> list[str]:
    with every_tenant():
        acts = LedgerEntry.objects.exclude(action="record.rows_changed")  # upkeep that the database noted by itself
        return list(acts.order_by("id").values_list("action", flat=True))


def administrator(cast: Cast) -> Actor:
    return Actor(ActorKind.PERSON, cast.administrator.id)


def confirm(actor: Actor, **more: Any) -> LedgerEpoch:
    with every_tenant():
        return epoch_begin(
            actor=actor,
            at=timezone.now(),
            witnesses=witnesses_configured(),
            keys=known_keys(),
            **({"reason_code": "restored_backup", "installation": True} | more),
        )


def test_a_record_that_continues_its_witnesses_goes_on(witness: FileWitness, cast: Cast, ready: UUID) -> None:
    sealed(3, 2)
    witnessed(witness)
    append(2)
    assert ledger_guard()
    assert ledger_denial() is None
    assert ask(cast.api("attempts:create"), 2, connector="external", runtime_mode="client_driven").status_code == 201


def test_a_shorter_record_takes_nothing_in_and_sends_nothing(cast: Cast, ready: UUID, shorter: int) -> None:
    caller, executor = cast.api("attempts:create"), cast.api("attempts:execute")
    ledger_checked()
    answer = ask(caller, 2, connector="external", runtime_mode="client_driven")
    assert (answer.status_code, answer.json()["reason_code"]) == (403, "ledger_inconsistent")
    leased = executor.post(f"/api/v1/attempts/{ready}/lease", {}, format="json")
    assert (leased.status_code, leased.json()["reason_code"]) == (409, "ledger_inconsistent")
    with every_tenant():
        assert not DispatchIntent.objects.exists()
    assert actions()[-2:] == ["ledger.divergence_found", "shutdown.engaged"]


def test_what_was_found_is_told_by_readiness_api_and_console(cast: Cast, shorter: int) -> None:
    ledger_check_task()
    heartbeat_beat(at=timezone.now())
    ready = Client().get("/health/ready")
    assert ready.status_code == 503
    largest = max(int(text) for text in ready.json()["checks"]["ledger"]["detail"].split() if text.isdigit())
    assert largest > shorter
    told = cast.api("ledger:read").get("/api/v1/ledger/witnesses").json()
    assert (told["denied"], told["findings"][0]["our_size"], told["findings"][0]["witness"]) == (
        True,
        shorter,
        "notary",
    )
    with every_tenant():
        shutdown = Shutdown.objects.get()
    page = cast.console(cast.administrator).get(f"/admin/governance/shutdown/{shutdown.id}/change/")
    assert f"the record has {shorter}" in page.content.decode()
    assert "holdpoint_ledger_denied 1.0" in Client().get("/metrics").content.decode()


def test_nothing_is_sealed_or_pushed_meanwhile(witness: FileWitness, shorter: int) -> None:
    before = witness.path.read_text()
    ledger_check_task()
    append(20)
    ledger_seal_task()
    witnesses_push_task()
    assert LedgerCheckpoint.objects.order_by("-size").first() == head()
    assert (head().size, witness.path.read_text()) == (shorter, before)


def test_the_check_comes_before_the_push(witness: FileWitness, shorter: int) -> None:
    """A head of the other history must not become the newest that the witness has."""
    before = witness.path.read_text()
    append(50)
    seal_all()
    witnesses_push_task()
    assert ledger_denial() is not None
    assert witness.path.read_text() == before


def test_several_that_find_it_at_once_engage_one_shutdown(shorter: int) -> None:
    barrier = Barrier(4)

    def run() -> None:
        barrier.wait(20)
        ledger_guard()
        connection.close()

    threads = [Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    with every_tenant():
        assert Shutdown.objects.count() == 1
    assert actions().count("ledger.divergence_found") == 1


def test_it_is_not_released_like_any_shutdown_and_not_by_itself(cast: Cast, witness: FileWitness, shorter: int) -> None:
    ledger_check_task()
    denial = ledger_denial()
    assert denial is not None
    with every_tenant(), pytest.raises(WrongState):
        shutdown_release(actor=administrator(cast), at=timezone.now(), shutdown_id=denial.id, installation=True)
    witness.path.unlink()
    ledger_check_task()
    assert ledger_denial() is not None, "a witness that forgot is no reason to go on"


def test_only_an_administrator_with_a_known_reason_confirms(cast: Cast, shorter: int) -> None:
    ledger_check_task()
    with pytest.raises(ScopeMissing):
        confirm(cast.actor(cast.operator, [cast.organization]), installation=False)
    with pytest.raises(InvalidInput):
        confirm(administrator(cast), reason_code="because")
    assert ledger_denial() is not None
    assert epoch_current() == 1


def test_confirming_names_the_loss_begins_an_epoch_and_goes_on(
    cast: Cast, witness: FileWitness, ready: UUID, shorter: int
) -> None:
    ledger_check_task()
    with every_tenant():
        lost_to = Shutdown.objects.get().preview["findings"][0]["size"]
    epoch = confirm(administrator(cast))
    assert (epoch.number, epoch.kept, epoch.lost_to) == (2, shorter, lost_to)
    assert actions()[-2:] == ["ledger.divergence_confirmed", "shutdown.released"]
    assert ledger_denial() is None
    sealed(lost_to)
    witnesses_push_task()
    assert ledger_guard(), "the new history is what the witness has from now on"
    found = verify("--witnesses")
    assert found["valid"], found["wrong"]
    assert f"entries {shorter} to {lost_to - 1}" in found["notes"][0]
    assert found["witnesses"][0]["lost"] > 0
    assert "\nepoch 2\n" in head().text
    assert ask(cast.api("attempts:create"), 2, connector="external", runtime_mode="client_driven").status_code == 201


def test_the_console_confirms_with_a_reason_and_only_for_administrators(cast: Cast, shorter: int) -> None:
    ledger_check_task()
    denial = ledger_denial()
    assert denial is not None
    act = f"/admin/governance/shutdown/{denial.id}/act/confirm/"
    assert cast.console(cast.operator).post(act, {"reason_code": "restored_backup"}).status_code in {403, 404}
    administrator = cast.console(cast.administrator)
    assert f"the record has {shorter}" in administrator.get(act).content.decode()
    assert administrator.post(act, {"reason_code": ""}).status_code == 200
    assert ledger_denial() is not None
    assert administrator.post(act, {"reason_code": "restored_backup", "note": ""}).status_code == 302
    assert ledger_denial() is None
    assert epoch_current() == 2


def test_a_lease_of_the_epoch_before_is_refused(cast: Cast, witness: FileWitness, ready: UUID) -> None:
    executor = cast.api("attempts:execute")
    token = executor.post(f"/api/v1/attempts/{ready}/lease", {}, format="json").json()["lease_token"]
    beat = executor.post(f"/api/v1/attempts/{ready}/heartbeat", {"lease_token": token}, format="json")
    call_command("epoch_bump", "--reason", "restored_backup")
    late = executor.post(f"/api/v1/attempts/{ready}/heartbeat", {"lease_token": token}, format="json")
    done = executor.post(f"/api/v1/attempts/{ready}/complete", {"lease_token": token}, format="json")
    assert (beat.status_code, late.status_code, done.status_code) == (200, 409, 409)
    assert late.json()["type"].endswith("lease-lost")
    assert "ledger.epoch_begun" in actions()


def test_the_command_refuses_a_reason_that_does_not_exist(witness: FileWitness) -> None:
    with pytest.raises(CommandError, match="reason"):
        call_command("epoch_bump", "--reason", "because")


def test_a_witness_longer_than_what_was_confirmed_stops_again(cast: Cast, witness: FileWitness, shorter: int) -> None:
    """It was away when the loss was confirmed."""
    lines = witness.path.read_text().splitlines(keepends=True)
    witness.path.write_text("".join(lines[:-1]))
    ledger_check_task()
    confirm(administrator(cast))
    assert ledger_guard()
    witness.path.write_text("".join(lines))
    assert not ledger_guard()
    with every_tenant():
        assert Shutdown.objects.get(state="engaged").preview["findings"][0]["kind"] == "unconfirmed_loss"
    assert confirm(administrator(cast)).number == 3
    assert ledger_guard()


def test_another_history_is_kept_up_to_where_they_part(cast: Cast, witness: FileWitness, shorter: int) -> None:
    with every_tenant():
        lost = json.loads(witness.path.read_text().splitlines()[-1])["size"]
    append(lost - shorter + 5)
    seal_all()
    assert not ledger_guard()
    with every_tenant():
        assert Shutdown.objects.get().preview["findings"][0]["kind"] == "inconsistent"
    epoch = confirm(administrator(cast))
    assert (epoch.kept, epoch.lost_to) == (shorter, head().size)
    sealed(2)
    witnesses_push_task()
    found = verify("--witnesses")
    assert found["valid"], found["wrong"]


def test_heads_that_nobody_signed_do_not_stop_anything(witness: FileWitness) -> None:
    """Otherwise whoever can write to a witness could stop the system."""
    sealed(2)
    witnessed(witness)
    witness.push(head().text.replace(f"\n{head().size}\n", "\n999999\n"), size=999999, epoch=1)
    assert ledger_guard()
    assert not verify("--witnesses")["valid"]
