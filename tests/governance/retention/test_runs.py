"""Runs and quarantine: what is still open is never purged; an erased run says so instead of differing."""

from datetime import timedelta
from io import StringIO
from uuid import UUID, uuid4

from django.core.management import call_command
from django.utils import timezone

from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.services.resolve import ResolutionOrder, quarantine_accept, quarantine_link_incident
from governance.retention.hooks import subject_kind
from governance.retention.models import ContextReference, ErasureItem, LegalHold
from governance.retention.services.deletion import deletion_accept, deletion_request
from governance.retention.services.erasure import erasure_order, purge_preview
from governance.retention.services.legal_hold import legal_hold_release
from governance.retention.states import ErasureKind
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.retention.support import LONG_AGO, Clinic, at_time, attempt, results, work
from tests.governance.support import everything_stored
from tests.workflows.world import FAILED, World, brief
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance
from workflows.runs.services.replay import instance_replay


def finished_run(cast: Cast) -> tuple[World, WorkflowInstance]:
    world = World(cast, brief())
    with at_time(LONG_AGO):
        run = world.start(patient_id="pat-0815")
        world.complete(run)
    return world, world.fresh(run)


def ordered(clinic: Clinic, kind: str, subject_id: UUID) -> list[tuple[str, str]]:
    """An order for exactly this, whatever the preview thinks: the database decides."""
    with every_tenant():
        subject = subject_kind(kind).get(clinic.organization.id, subject_id)
        assert subject is not None
        order = erasure_order(
            actor=clinic.operator,
            at=timezone.now(),
            organization_id=clinic.organization.id,
            kind=ErasureKind.PURGE,
            subjects=[subject],
            reason_code="retention_over",
            note=None,
        )
    return results(work(order))


def test_a_finished_run_is_purged_with_its_attempts_and_says_so(cast: Cast) -> None:
    world, run = finished_run(cast)
    assert run.state == "completed"
    clinic = Clinic(cast)
    case = str(run.case_id)
    order = work(clinic.order())
    assert {state for state, _ in results(order)} == {"done"}
    with every_tenant():
        kinds = set(ErasureItem.objects.filter(order=order).values_list("kind", flat=True))
    assert kinds == {"attempt", "run"}
    stored = everything_stored()
    assert case not in stored
    assert "pat-0815" not in stored
    erased = world.fresh(run)
    with every_tenant():
        replayed = instance_replay(instance=erased)
    assert (replayed.differences, replayed.erased_by) == ([], order.id)
    out = StringIO()
    call_command("replay_instance", str(run.id), stdout=out)
    assert f"{run.id} was purged by order {order.id}" in out.getvalue()
    page = cast.console(cast.operator).get(f"/admin/workflows/workflowinstance/{run.id}/change/")
    assert page.status_code == 200


def test_a_run_that_is_under_way_is_not_purged_however_old(cast: Cast) -> None:
    world = World(cast, brief())
    with at_time(LONG_AGO):
        run = world.start()
    clinic = Clinic(cast)
    assert ordered(clinic, "run", run.id) == [("refused", "not_finished")]
    assert world.fresh(run).erased_at is None


def test_a_hold_on_a_run_keeps_its_attempts_and_a_hold_on_an_attempt_its_run(cast: Cast) -> None:
    world, run = finished_run(cast)
    clinic = Clinic(cast)
    clinic.hold("run", str(run.id))
    with every_tenant():
        (preview,) = purge_preview(actor=clinic.operator, at=timezone.now())
    assert (preview.over, preview.blocked) == ({}, {"legal_hold": 3})  # the run and its two attempts
    assert ordered(clinic, "run", run.id) == [("refused", "legal_hold")]
    assert world.fresh(run).erased_at is None


def test_a_case_is_deleted_by_its_reference_and_by_its_patients(cast: Cast) -> None:
    world, run = finished_run(cast)
    clinic = Clinic(cast)
    with every_tenant():
        row = deletion_request(
            actor=clinic.operator, at=timezone.now(), organization=cast.organization, context_ref=f"case/{run.case_id}"
        )
        accepted = deletion_accept(
            actor=clinic.second, at=timezone.now(), deletion_id=row.id, reason_code="data_subject_request"
        )
    assert accepted.order is not None
    assert {state for state, _ in results(work(accepted.order))} == {"done"}
    assert str(run.case_id) not in everything_stored()
    assert world.fresh(run).erased_at is not None


def test_an_event_that_found_no_run_is_erased_too(cast: Cast) -> None:
    world, case = World(cast, brief()), uuid4()
    with at_time(LONG_AGO):
        world.send(world.envelope("ai_review.failed", FAILED, case_id=case))
    world.send(world.envelope("ai_review.failed", FAILED, case_id=uuid4()))
    clinic = Clinic(cast)
    assert str(case) in everything_stored()
    order = clinic.order()
    clinic.hold("context", f"case/{case}")
    assert results(work(order)) == [("refused", "legal_hold")]
    with every_tenant():
        hold = LegalHold.objects.get()
        legal_hold_release(actor=clinic.second, at=timezone.now(), hold_id=hold.id, reason_code="hold_ended")
    assert results(work(clinic.order())) == [("done", "")]
    with every_tenant():
        ContextReference.objects.all().delete()
        kept = list(WorkflowEvent.objects.order_by("id").values_list("envelope", "case_id"))
    assert kept[0] == ({}, None)
    assert kept[1][1] is not None
    assert str(case) not in everything_stored()


def test_unresolved_quarantine_never_ages_out(cast: Cast) -> None:
    world = World(cast, brief())
    with at_time(LONG_AGO):
        run = world.start()
        step = world.current(run)
        world.tick("steps_time_out", at=timezone.now() + timedelta(days=30))
    clinic = Clinic(cast)
    row = attempt(step.governed_attempt)
    assert row.state == "failed-quarantined"
    assert ordered(clinic, "attempt", row.id) == [("refused", "quarantine_unresolved")]
    assert ordered(clinic, "run", run.id)[0][0] == "refused"
    with every_tenant():
        (preview,) = purge_preview(actor=clinic.operator, at=timezone.now())
        assert preview.over == {}
        assert preview.blocked["quarantine_unresolved"] >= 1
        case = QuarantineCase.objects.get(attempt=row)
        quarantine_link_incident(actor=clinic.operator, at=timezone.now(), case_id=case.id, incident_ref="inc-17")
        # resolved now: the last activity is now, and retention counts from it
        quarantine_accept(
            actor=clinic.operator,
            at=timezone.now(),
            case_id=case.id,
            order=ResolutionOrder(finding="did_not_happen", evidence_ref="log-17"),
        )
    assert ordered(clinic, "attempt", row.id) == [("refused", "retention_not_over")]
