"""The drill of docs/operations.md with a real dump: back up, go on, restore the older one, see, confirm, go on."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from attempts.lifecycle.models import Attempt
from config.embedded.postgres_cluster import binaries, clean_environment
from config.heartbeat import heartbeat_beat
from config.startup import ledger_checked
from governance.sealing.selectors.witnesses import ledger_denial
from governance.sealing.tasks import ledger_seal_task, witnesses_push_task
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, asked, contract
from tests.cast import Cast
from tests.governance.ledger.record import head, verify, witness_in
from tests.governance.ledger.sealing import KEY, seal_all

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]
THEIRS = {"connector": "external", "runtime_mode": "client_driven"}


def tool(name: str, *arguments: str) -> None:
    """One of PostgreSQL's own programs on the tests' database."""
    facts = connection.settings_dict
    host = facts["HOST"] or facts["OPTIONS"].get("host", "")
    where = {"PGHOST": host, "PGPORT": str(facts["PORT"] or 5432), "PGUSER": facts["USER"]}
    where["PGPASSWORD"] = facts["PASSWORD"]
    done = subprocess.run(
        [str(binaries() / name), *arguments],
        env=clean_environment() | {key: value for key, value in where.items() if value},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def restored(dump: Path) -> None:
    connection.close()
    name = str(connection.settings_dict["NAME"])
    tool("pg_restore", "--clean", "--if-exists", "--single-transaction", f"--dbname={name}", str(dump))


def test_an_older_backup_is_found_confirmed_and_worked_on_with(tmp_path: Path, settings: Any, cast: Cast) -> None:
    witness = witness_in(tmp_path)
    settings.LEDGER_NAME, settings.LEDGER_KEY = KEY.name, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    settings.LEDGER_WITNESSES = json.dumps([{"name": "notary", "url": witness.path.as_uri()}])
    caller, executor, reader = cast.api("attempts:create"), cast.api("attempts:execute"), cast.api("ledger:read")
    contract(cast, adapter="external", effect="idempotent")
    before = asked(caller, 1, **THEIRS)
    seal_all()
    witnesses_push_task()
    kept = head().size

    # 1. The backup, and work that goes on after it: a lease, a second attempt, heads at the witness.
    dump = tmp_path / "backup.dump"
    tool("pg_dump", "--format=custom", f"--file={dump}", str(connection.settings_dict["NAME"]))
    token = executor.post(f"/api/v1/attempts/{before}/lease", {}, format="json").json()["lease_token"]
    after = asked(caller, 2, **THEIRS)
    seal_all()
    witnesses_push_task()
    lost_to = head().size

    # 2. The older backup is restored, and a process starts.
    restored(dump)
    with every_tenant():
        assert set(Attempt.objects.values_list("id", flat=True)) == {before}
    ledger_checked()
    assert ledger_denial() is not None

    # 3. What the operator sees.
    heartbeat_beat(at=timezone.now())
    ready = Client().get("/health/ready")
    assert ready.status_code == 503
    assert f"of {lost_to} entries (epoch 1); the record has {kept}" in ready.json()["checks"]["ledger"]["detail"]
    refused = ask(caller, 3, **THEIRS)
    assert (refused.status_code, refused.json()["reason_code"]) == (403, "ledger_inconsistent")
    assert not verify("--witnesses")["valid"]

    # 4. Confirmed: a new epoch, the old lease is void, the same attempt is leased anew, new work goes on.
    call_command("epoch_bump", "--reason", "restored_backup", "--note", "Drill")
    late = executor.post(f"/api/v1/attempts/{before}/complete", {"lease_token": token}, format="json")
    assert (late.status_code, late.json()["type"].rsplit("/", 1)[-1]) == (409, "lease-lost")
    fresh = executor.post(f"/api/v1/attempts/{before}/lease", {}, format="json").json()["lease_token"]
    still = executor.post(f"/api/v1/attempts/{before}/complete", {"lease_token": token}, format="json")
    assert still.status_code == 409, "also while a new lease has the same fence"
    assert (
        executor.post(f"/api/v1/attempts/{before}/complete", {"lease_token": fresh}, format="json").status_code == 200
    )
    asked(caller, 3, **THEIRS)
    assert reader.get("/api/v1/ledger/witnesses").json()["epoch"] == 2
    assert caller.get(f"/api/v1/attempts/{after}").status_code == 404

    # 5. The record goes on under the witness' eyes, and says what is lost.
    seal_all()
    ledger_seal_task()
    witnesses_push_task()
    found = verify("--witnesses")
    assert found["valid"], found["wrong"]
    assert f"entries {kept} to {lost_to - 1}" in found["notes"][0]
