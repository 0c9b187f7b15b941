"""Building bundles over real rows: what is in them, the same bytes again, waiting for the sealer, dying in between."""

import hashlib
import io
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage, storages
from django.db import connection
from django.utils import timezone

from attempts.reviews.models import Review
from governance.evidence.models import EvidenceBundle
from governance.evidence.rules import recompute
from governance.evidence.selectors import bundles_due, entries_sealed
from governance.evidence.services.build import MOST_TRIES, bundle_bytes, draft_read, entries_needed
from governance.evidence.states import EvidenceKind
from governance.evidence.tasks import evidence_resume_task
from governance.ledger.models import LedgerEntry
from governance.people.models import PersonReference
from governance.retention.models import ErasedPayload, ErasureItem, ErasureOrder
from reasoncodes.base.tenancy import every_tenant
from sdk import holdpoint_verify as verifier
from tests.attempts.reviews.support import Clinic, do
from tests.cast import Cast
from tests.governance.evidence.support import (
    COST,
    allowed,
    build,
    built,
    files_of,
    fresh,
    released_and_done,
    request,
    rows,
    stored,
)
from tests.governance.ledger.sealing import KEY, seal_all
from tests.governed import HOLD, make_policy
from tests.workflows.run_support import act, in_status
from tests.workflows.running import Running

pytestmark = pytest.mark.django_db(transaction=True)


def actions(bundle: EvidenceBundle) -> list[str]:
    with every_tenant():
        return list(LedgerEntry.objects.filter(subject_id=bundle.id).order_by("id").values_list("action", flat=True))


def test_a_bundle_has_the_decision_of_each_act_and_of_each_hold(cast: Cast) -> None:
    review = Clinic(cast).hold()
    assert do(cast.session(cast.reviewer), review, "approve").status_code == 200
    make_policy(cast, rules=[HOLD[0] | {"tier": "sa_qa"}])
    executor, address = cast.api("attempts:execute"), f"/api/v1/attempts/{review.attempt_id}"
    assert executor.post(f"{address}/lease", {}, format="json").status_code == 409
    with every_tenant():
        second = Review.objects.get(attempt_id=review.attempt_id, status="requested")
    assert do(cast.session(cast.person("quentin", "reviewer:sa_qa")), second, "approve").status_code == 200
    token = executor.post(f"{address}/lease", {}, format="json").json()["lease_token"]
    assert executor.post(f"{address}/complete", {"lease_token": token}, format="json").status_code == 200
    assert review.attempt_id is not None
    data = stored(built(cast, review.attempt_id))
    report = verifier.verify(data, public_key=KEY.verifier)
    assert report.faults == []
    decisions = rows(data, "decisions")
    assert [(row["act"], row["verdict"]) for row in decisions] == [
        ("", "needs_approval"),
        ("lease", "needs_approval"),
        ("lease", "needs_approval"),
    ]
    assert [row["decision_id"] for row in rows(data, "reviews")] == [decisions[0]["id"], decisions[1]["id"]]
    assert [row["decision_id"] for row in rows(data, "intents")] == [decisions[2]["id"]]


def test_a_bundle_of_an_attempt_holds_its_whole_story_and_verifies(cast: Cast) -> None:
    attempt_id = released_and_done(cast)
    bundle = built(cast, attempt_id)
    data = stored(bundle)
    report = verifier.verify(data, public_key=KEY.verifier)
    assert report.faults == []
    assert report.subject == f"attempt {attempt_id}"
    assert [row["to_state"] for row in rows(data, "transitions")] == [
        "deduplicated",
        "review-required",
        "approved-for-execution",
        "completed",
    ]
    assert [row["verdict"] for row in rows(data, "votes")] == ["approve"]
    assert [row["outcome"] for row in rows(data, "receipts")] == ["success"]
    assert rows(data, "costs") == [
        {"provider": "acme", "model": "m-1", "currency": "USD", "calls": 1, "units": "812", "amount": COST["amount"]}
    ]
    assert recompute(files_of(data)) == []
    assert {"rita"} <= {(row.get("opening") or {}).get("name") for row in rows(data, "people")}
    assert (bundle.sha256, bundle.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert actions(bundle) == ["evidence.requested", "evidence.collected", "evidence.built"]


def test_other_readers_of_zip_files_can_open_it(cast: Cast) -> None:
    data = stored(built(cast, allowed(cast)))
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        assert opened.testzip() is None
        assert opened.namelist() == list(verifier.NAMES)


def test_a_bundle_of_a_run_holds_its_steps_events_interventions_and_attempts(cast: Cast) -> None:
    running = Running(cast)
    instance = in_status(running, "halted")
    assert act(running, instance, "cancel").status_code == 200
    data = stored(built(cast, instance.id, EvidenceKind.INSTANCE))
    assert verifier.verify(data, public_key=KEY.verifier).faults == []
    assert [row["action"] for row in rows(data, "interventions")] == ["cancel"]
    assert [row["status"] for row in rows(data, "instance")] == ["cancelled"]
    assert rows(data, "steps")
    assert len(rows(data, "events")) == 3
    page = files_of(data)["report.html"].decode()
    assert "<svg" in page
    assert "Cancelled" in page or "cancel" in page


def test_a_completed_run_with_governed_steps_verifies(cast: Cast) -> None:
    running = Running(cast)
    data = stored(built(cast, in_status(running, "completed").id, EvidenceKind.INSTANCE))
    assert verifier.verify(data, public_key=KEY.verifier).faults == []
    assert rows(data, "envelope")
    assert len(rows(data, "decisions")) == len(rows(data, "envelope"))


def test_built_twice_from_the_same_rows_the_bytes_are_equal(cast: Cast) -> None:
    bundle = request(cast, released_and_done(cast))
    build(bundle.id)
    seal_all()
    with every_tenant():
        waiting = fresh(bundle.id)
        files, entries = draft_read(waiting)
        ids = entries_needed(waiting, files, entries)
        first = entries_sealed(entry_ids=ids)
        assert first is not None
        once = bundle_bytes(waiting, files, entries, first)
    allowed_later = cast.key("ledger:read")  # the record grows, and a newer head is signed
    assert allowed_later
    seal_all()
    with every_tenant():
        again = entries_sealed(entry_ids=ids)
        assert again is not None
        assert bundle_bytes(waiting, *draft_read(fresh(bundle.id)), again) == once
    assert stored(build(bundle.id)) == once


def test_it_waits_for_the_sealer_and_says_so(cast: Cast) -> None:
    bundle = request(cast, allowed(cast))
    assert bundle.progress == "waiting for a worker"
    waiting = build(bundle.id)
    assert (waiting.state, waiting.progress) == ("building", "waiting for the sealer")
    seal_all()
    with every_tenant():
        EvidenceBundle.objects.filter(id=bundle.id).update(resume_at=timezone.now() - timedelta(seconds=1))
        assert bundles_due() == [bundle.id]
    evidence_resume_task()
    assert fresh(bundle.id).state == "ready"
    with every_tenant():
        assert bundles_due() == []


def test_a_stranded_request_is_taken_up_by_the_tick_and_a_finished_one_is_left_alone(cast: Cast) -> None:
    bundle = request(cast, allowed(cast))
    evidence_resume_task()
    assert fresh(bundle.id).state == "requested"  # its worker has time yet
    with every_tenant():
        EvidenceBundle.objects.update(resume_at=timezone.now() - timedelta(seconds=1))
    evidence_resume_task()
    seal_all()
    ready = build(bundle.id)
    assert ready.state == "ready"
    assert build(bundle.id).built_at == ready.built_at
    assert actions(ready).count("evidence.built") == 1


class Killed(BaseException):
    """Not an Exception: nothing in the program catches it."""


class Dying(FileSystemStorage):
    """Writes the file, and dies before anybody hears of it."""

    def save(self, *args: Any, **kwargs: Any) -> str:
        super().save(*args, **kwargs)
        raise Killed


def test_killed_between_storage_and_commit_the_repeat_overwrites_with_equal_bytes(cast: Cast, tmp_path: Any) -> None:
    bundle = request(cast, released_and_done(cast))
    build(bundle.id)
    seal_all()
    with pytest.raises(Killed):
        build(bundle.id, storage=Dying(location=tmp_path))
    assert fresh(bundle.id).state == "building"
    (left_behind,) = tmp_path.rglob("*.zip")
    before = left_behind.read_bytes()
    ready = build(bundle.id, storage=FileSystemStorage(location=tmp_path))
    assert ready.state == "ready"
    assert [path.read_bytes() for path in tmp_path.rglob("*.zip")] == [before]
    assert hashlib.sha256(before).hexdigest() == ready.sha256


class Away(FileSystemStorage):
    """A storage that does not answer."""

    def exists(self, name: str) -> bool:
        raise OSError("no route to the storage")


def test_a_storage_that_is_away_is_tried_again_and_then_it_failed_with_a_reason(cast: Cast, tmp_path: Any) -> None:
    bundle = request(cast, allowed(cast))
    build(bundle.id)
    seal_all()
    away = Away(location=tmp_path)
    first = build(bundle.id, storage=away)
    assert (first.state, first.tries) == ("building", 1)
    assert "trying again" in first.progress
    assert first.resume_at > timezone.now()
    for _ in range(MOST_TRIES - 1):
        last = build(bundle.id, storage=away)
    assert (last.state, last.problem) == ("failed", "evidence-storage-unavailable")
    assert actions(bundle)[-1] == "evidence.failed"
    assert built(cast, bundle.subject_id).id != bundle.id  # asking again makes a new one


def test_a_storage_that_comes_back_finishes_the_same_bundle(cast: Cast, tmp_path: Any) -> None:
    bundle = request(cast, allowed(cast))
    build(bundle.id)
    seal_all()
    build(bundle.id, storage=Away(location=tmp_path))
    assert build(bundle.id).state == "ready"


@pytest.mark.tampers
def test_rows_that_do_not_agree_with_the_ledger_make_no_bundle(cast: Cast) -> None:
    attempt_id = released_and_done(cast)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE attempts_reviewvote DISABLE TRIGGER append_only_rows")
        cursor.execute("UPDATE attempts_reviewvote SET verdict = 'reject', reason_code = 'other'")
        cursor.execute("ALTER TABLE attempts_reviewvote ENABLE ALWAYS TRIGGER append_only_rows")
    bundle = request(cast, attempt_id)
    build(bundle.id)
    seal_all()
    found = build(bundle.id)
    assert (found.state, found.problem) == ("refused", "evidence-refused")
    assert found.draft is None


def test_more_on_the_record_makes_a_new_bundle_and_nothing_new_the_same(cast: Cast) -> None:
    attempt_id = allowed(cast)
    bundle = request(cast, attempt_id)
    assert request(cast, attempt_id).id == bundle.id
    build(bundle.id)
    assert request(cast, attempt_id).id == bundle.id
    seal_all()
    build(bundle.id)
    assert request(cast, attempt_id).id == bundle.id
    executor = cast.api("attempts:execute")
    assert executor.post(f"/api/v1/attempts/{attempt_id}/lease", {}, format="json").status_code == 200
    assert request(cast, attempt_id).id != bundle.id


def test_a_person_whose_reference_is_gone_shows_as_erased_and_all_still_verifies(cast: Cast) -> None:
    attempt_id = released_and_done(cast)
    named = stored(built(cast, attempt_id))
    with every_tenant():
        PersonReference.objects.filter(user=cast.reviewer).delete()
        EvidenceBundle.objects.update(altered_at=timezone.now())  # so that asking again makes a new one
    data = stored(built(cast, attempt_id))
    assert verifier.verify(data, public_key=KEY.verifier).faults == []
    vote = rows(data, "votes")[0]
    assert [row for row in rows(data, "people") if row["reference"] == vote["voter_ref"]] == [
        {"kind": "person", "reference": vote["voter_ref"], "opening": None}
    ]
    page = files_of(data)["report.html"].decode()
    assert "erased" in page
    assert "rita" not in page
    assert "rita" in files_of(named)["report.html"].decode()
    assert verifier.verify(named, public_key=KEY.verifier).faults == []


def erase_payload(cast: Cast, action: str) -> None:
    """As an order does it, for one entry."""
    with connection.cursor() as cursor, every_tenant():
        cursor.execute("ALTER TABLE governance_ledgerentry DISABLE TRIGGER append_only_rows")
        cursor.execute("UPDATE governance_ledgerentry SET payload = NULL WHERE action = %s", [action])
        cursor.execute("ALTER TABLE governance_ledgerentry ENABLE ALWAYS TRIGGER append_only_rows")
        entry = LedgerEntry.objects.get(action=action)
        order = ErasureOrder.objects.create(
            organization=cast.organization,
            kind="deletion",
            reason_code="deletion_request",
            ordered_by=cast.operator.id,
            created_at=timezone.now(),
            resume_at=timezone.now(),
        )
        item = ErasureItem.objects.create(
            order=order, organization=cast.organization, kind="attempt", subject_id=entry.subject_id
        )
        ErasedPayload.objects.create(entry=entry, item=item)


@pytest.mark.tampers
def test_an_erased_payload_leaves_a_bundle_that_verifies_and_says_so(cast: Cast) -> None:
    attempt_id = released_and_done(cast)
    erase_payload(cast, "review.voted")
    data = stored(built(cast, attempt_id))
    report = verifier.verify(data, public_key=KEY.verifier)
    assert report.faults == []
    assert any("1 with an erased payload" in line for line in report.checked)
    erased = [
        entry for entry in verifier.read_canonical_json(files_of(data)[verifier.ENTRIES]) if entry["payload"] is None
    ]
    assert [entry["nonce"] for entry in erased] == [None]


def test_a_finished_bundle_cannot_be_made_to_say_something_else(cast: Cast) -> None:
    bundle = built(cast, allowed(cast))
    with every_tenant(), pytest.raises(Exception, match="stays as it is"):
        EvidenceBundle.objects.filter(id=bundle.id).update(sha256="0" * 64)
    with every_tenant(), pytest.raises(Exception, match="illegal move"):
        EvidenceBundle.objects.filter(id=bundle.id).update(state="requested")
    with every_tenant(), pytest.raises(Exception, match="stays"):
        EvidenceBundle.objects.filter(id=bundle.id).delete()


def test_the_stored_file_is_the_storage_aliass(cast: Cast) -> None:
    bundle = built(cast, allowed(cast))
    assert storages["evidence"].exists(bundle.storage_name)
    assert bundle.storage_name == f"{cast.organization.id}/{bundle.id}.zip"
