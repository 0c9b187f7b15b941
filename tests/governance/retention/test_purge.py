"""Purge: only what is over and free, only by a person's order; what is left still proves itself."""

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from attempts.intake.models import IdempotencyRecord
from governance.enforcement.models import EnforcementDecision, snapshot_load
from governance.enforcement.services import decision_replay
from governance.ledger.models import LedgerEntry
from governance.retention.models import ErasureItem
from governance.retention.services import erasure as purge
from governance.retention.services.erasure import purge_order, purge_preview
from governance.sealing.services.verify import ledger_verify
from reasoncodes.base.errors import InvalidInput, NotFound
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, asked, contract
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all
from tests.governance.retention.support import (
    LONG_AGO,
    RECENT,
    Clinic,
    actions,
    at_time,
    attempt,
    payloads,
    results,
    work,
)
from tests.governance.support import everything_stored, row_counts
from tests.governed import ALLOW


def test_the_stamp_is_the_regions_and_set_at_admission(clinic: Clinic) -> None:
    row = attempt(clinic.denied())
    assert row.retention_until == datetime(2022, 3, 1, 10, tzinfo=UTC)


def test_a_contract_may_keep_longer_and_the_stamp_says_so(cast: Cast) -> None:
    contract(cast, adapter="external", effect="none", changes={"regional_compliance": {"retention_years": 30}})
    with at_time(LONG_AGO):
        row = attempt(asked(cast.api("attempts:create"), connector="external"))
    assert row.retention_until == datetime(2042, 3, 1, 10, tzinfo=UTC)


def test_a_preview_says_what_is_over_and_writes_nothing(clinic: Clinic) -> None:
    clinic.denied(1), clinic.denied(2), clinic.denied(3, moment=RECENT)
    clinic.hold("context", "ctx-0002")
    before = row_counts()
    with every_tenant():
        (preview,) = purge_preview(actor=clinic.operator, at=timezone.now())
    assert (preview.over, preview.blocked, preview.more) == ({"attempt": 1}, {"legal_hold": 1}, False)
    assert preview.regions == "US"
    assert row_counts() == before


def test_a_purge_removes_payloads_and_references_and_leaves_the_skeleton(clinic: Clinic) -> None:
    first, second = clinic.denied(1), clinic.denied(2, moment=RECENT)
    order = work(clinic.order())
    assert results(order) == [("done", "")]
    assert order.finished_at is not None
    row = attempt(first)
    assert row.erased_at is not None
    assert (row.patient_context_ref, row.target_ref, row.payload_ref, row.metadata, row.fields) == ("", "", "", {}, [])
    assert (row.state, row.reason_code, row.workflow_slug) == ("preflight-denied", "policy_denied", "never")
    assert payloads(first)[:3] == [None] * 3
    assert actions("attempt.")[:3] == ["attempt.received", "attempt.deduplicated", "attempt.denied"]
    assert None not in payloads(second)
    stored = everything_stored()
    for gone in ("ctx-0001", "case-0001", "payload-0001"):
        assert gone not in stored
    assert "ctx-0002" in stored


def test_the_key_stays_as_a_tombstone_so_that_nothing_runs_twice(clinic: Clinic) -> None:
    clinic.denied(1)
    work(clinic.order())
    with every_tenant():
        record = IdempotencyRecord.objects.get()
    assert (record.key, record.body, record.fingerprint) == ("key-00000001", "", "")
    assert ask(clinic.client, 1, slug="never").status_code == 410


@pytest.mark.django_db(transaction=True)
def test_the_ledger_verifies_after_a_purge_and_says_how_many_payloads_went() -> None:
    clinic = Clinic(Cast())
    first = clinic.denied(1)
    seal_all()
    order = work(clinic.order())
    seal_all()
    with every_tenant():
        verified = ledger_verify()
        item = ErasureItem.objects.get(order=order)
        gone = LedgerEntry.objects.filter(payload__isnull=True).count()
    assert (verified.faults, verified.wrong) == (0, [])
    assert verified.erased == item.entries == gone > 0
    out = StringIO()
    call_command("verify_ledger", "--processes", "1", stdout=out)
    assert f"{gone} payloads were erased by order" in out.getvalue()
    assert attempt(first).erased_at


@pytest.mark.django_db(transaction=True)
@pytest.mark.tampers
def test_a_payload_that_went_without_an_order_is_named() -> None:
    clinic = Clinic(Cast())
    clinic.denied(1)
    second = clinic.denied(2, moment=RECENT)
    work(clinic.order())
    seal_all()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE governance_ledgerentry DISABLE TRIGGER append_only_rows")
        cursor.execute("UPDATE governance_ledgerentry SET payload = NULL WHERE subject_id = %s", [second])
        cursor.execute("ALTER TABLE governance_ledgerentry ENABLE ALWAYS TRIGGER append_only_rows")
    with every_tenant():
        verified = ledger_verify()
    assert verified.faults == 1
    assert all("gone without an order" in text for text in verified.wrong)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO governance_erasedpayload SELECT id, (SELECT id FROM governance_erasureitem LIMIT 1)"
            " FROM governance_ledgerentry WHERE subject_id = %s",
            [second],
        )
    with every_tenant():
        (wrong,) = ledger_verify().wrong
    assert "other payloads are gone than the ledger says" in wrong


def test_a_purged_decision_replays_as_purged_and_not_as_different(clinic: Clinic) -> None:
    row = attempt(clinic.denied(1))
    order = work(clinic.order())
    snapshot_load.cache_clear()
    with every_tenant():
        replay = decision_replay(row=EnforcementDecision.objects.get(id=row.decision_id))
    assert (replay.agrees, replay.erased_by) == (True, order.id)
    out = StringIO()
    call_command("replay_decision", str(row.decision_id), stdout=out)
    assert f"{row.decision_id} was purged by order {order.id}" in out.getvalue()
    assert "0 decisions re-evaluated, 0 differ." in out.getvalue()


def test_the_decisions_before_the_acts_are_erased_with_the_attempt(cast: Cast, clinic: Clinic) -> None:
    contract(cast, adapter="external", slug="done", policy_slug="done", rules=ALLOW)
    executor = cast.api("attempts:execute")
    with at_time(LONG_AGO):
        found = ask(clinic.client, 7, slug="done", connector="external").json()["id"]
        token = executor.post(f"/api/v1/attempts/{found}/lease", {}, format="json").json()["lease_token"]
        done = executor.post(f"/api/v1/attempts/{found}/complete", {"lease_token": token}, format="json")
        assert done.json()["state"] == "completed"
    work(clinic.order())
    assert attempt(found).erased_at
    snapshot_load.cache_clear()
    with every_tenant():
        row = EnforcementDecision.objects.get(subject_id=found)
        assert (row.request, row.request_sha256) == (None, "")
        assert decision_replay(row=row).agrees


@pytest.mark.tampers
def test_a_decision_whose_request_is_missing_without_an_order_differs(clinic: Clinic) -> None:
    row = attempt(clinic.denied(1))
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE governance_enforcementdecision DISABLE TRIGGER append_only_rows")
        cursor.execute("UPDATE governance_enforcementdecision SET request = 'null'")
    with every_tenant():
        replay = decision_replay(row=EnforcementDecision.objects.get(id=row.decision_id))
    assert not replay.agrees


def test_another_tenants_records_are_untouched(clinic: Clinic) -> None:
    clinic.denied(1)
    cast = clinic.cast
    with every_tenant():
        with pytest.raises(NotFound):
            purge_order(
                actor=clinic.operator,
                at=timezone.now(),
                organization_id=cast.other.id,
                reason_code="retention_over",
            )
        before = list(LedgerEntry.objects.filter(organization=cast.other).values_list("id", "payload"))
    work(clinic.order())
    with every_tenant():
        assert list(LedgerEntry.objects.filter(organization=cast.other).values_list("id", "payload")) == before


def test_what_is_held_does_not_hide_what_comes_after_it(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "PAGE", 2)
    for number in range(1, 8):
        clinic.denied(number)
    for number in range(1, 5):
        clinic.hold("context", f"ctx-{number:04}")
    with every_tenant():
        (preview,) = purge_preview(actor=clinic.operator, at=timezone.now())
    assert (preview.over, preview.blocked, preview.more) == ({"attempt": 3}, {"legal_hold": 4}, False)


def test_nothing_over_means_nothing_ordered(clinic: Clinic) -> None:
    clinic.denied(1, moment=RECENT)
    with pytest.raises(InvalidInput):
        clinic.order()


def test_unfinished_and_held_are_not_purged_however_old(cast: Cast, clinic: Clinic) -> None:
    contract(cast, adapter="external", effect="none")
    with at_time(LONG_AGO):
        waiting = asked(cast.api("attempts:create"), 7, connector="external")
    kept = clinic.denied(1)
    clinic.hold("attempt", str(kept))
    with every_tenant():
        (preview,) = purge_preview(actor=clinic.operator, at=timezone.now())
    assert (preview.over, preview.blocked) == ({}, {"legal_hold": 1, "not_finished": 1})
    assert attempt(waiting).erased_at is None


def test_whoever_lost_the_permission_meanwhile_purges_nothing(clinic: Clinic) -> None:
    first = clinic.denied(1)
    order = clinic.order()
    clinic.cast.operator.groups.clear()
    assert results(work(order)) == [("refused", "not_authorized")]
    assert attempt(first).erased_at is None


def test_every_act_is_on_the_ledger(clinic: Clinic) -> None:
    clinic.denied(1)
    work(clinic.order())
    assert actions("erasure.") == ["erasure.ordered", "erasure.done", "erasure.finished"]


def command(*args: Any) -> str:
    out = StringIO()
    call_command("purge_retention", *args, stdout=out)
    return out.getvalue()


def test_the_command_previews_and_changes_nothing_without_an_order(clinic: Clinic) -> None:
    first = clinic.denied(1)
    said = command()
    assert "clinic (US): 1 attempts over and free." in said
    assert "Region US: 1 over and free, 0 blocked." in said
    assert attempt(first).erased_at is None


def test_the_command_performs_what_a_named_person_orders(clinic: Clinic) -> None:
    first = clinic.denied(1)
    said = command("--order", "--as", clinic.cast.operator.username, "--reason-code", "retention_over")
    assert "1 erased" in said
    assert attempt(first).erased_at is not None


@pytest.mark.parametrize("who", ["audrey", "nobody-here"])
def test_the_command_refuses_who_may_not_order(clinic: Clinic, who: str) -> None:
    first = clinic.denied(1)
    assert clinic.cast.auditor
    with pytest.raises(CommandError):
        command("--order", "--as", who, "--reason-code", "retention_over")
    assert attempt(first).erased_at is None
