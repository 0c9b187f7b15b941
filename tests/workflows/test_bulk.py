"""One intervention for many runs: looked at first, ordered, worked off item by item, whoever dies meanwhile."""

import signal
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from governance.people.models import ApiKey
from governance.tenancy.models import RoleGroup
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.support import in_parallel, row_counts
from tests.processes import ended, start
from tests.stack.support import wait_for
from tests.workflows.run_support import BULK, INTERVENE, READ, entries, in_status, interventions, violations
from tests.workflows.running import Running
from workflows.runs.models import BulkIntervention, BulkItem, WorkflowInstance, WorkflowIntervention
from workflows.runs.selectors.bulk import MOST
from workflows.runs.services.bulk import BATCH, bulk_work, bulks_due
from workflows.runs.services.replay import instance_replay
from workflows.runs.tasks import bulks_resume_task

HALT = {"action": "halt", "reason_code": "planned_maintenance", "filter": {"status": "running"}}


@pytest.fixture
def running(cast: Cast) -> Running:
    return Running(cast)


def order(client: Any, **changes: Any) -> Any:
    return client.post(BULK, HALT | changes, format="json")


def work(bulk_id: str) -> int:
    with every_tenant():
        return bulk_work(bulk_id=UUID(bulk_id), now=timezone.now, region="US")


def results(bulk_id: str) -> list[tuple[str, str]]:
    with every_tenant():
        return list(BulkItem.objects.filter(bulk_id=bulk_id).order_by("id").values_list("status", "problem"))


def copies(first: WorkflowInstance, count: int) -> None:
    """Rows without a history, for what only counts them."""
    rows = []
    for _ in range(count):
        row = WorkflowInstance(**{field.attname: getattr(first, field.attname) for field in first._meta.fields})
        row.id, row.case_id = uuid7(), uuid4()
        rows.append(row)
    with every_tenant():
        WorkflowInstance.objects.bulk_create(rows, batch_size=1000)


def test_a_dry_run_says_what_it_would_touch_and_writes_nothing(running: Running) -> None:
    client = running.cast.api(INTERVENE)
    one, two = running.start(), in_status(running, "waiting_approval")
    in_status(running, "halted")
    before = row_counts()
    answer = order(client, filter={"mode": "active"}, dry_run=True)
    assert answer.status_code == 200
    said = answer.json()
    assert (said["dry_run"], said["total"], said["more"], said["legal"]) == (True, 3, False, 2)
    (refused,) = said["refused"]
    assert (refused["count"], "The instance is halted" in refused["why"]) == (1, True)
    assert [row["instance_id"] for row in said["sample"]][:2] == [str(one.id), str(two.id)]
    assert [bool(row["refusal"]) for row in said["sample"]] == [False, False, True]
    assert row_counts() == before


def test_a_dry_run_of_resuming_foresees_deadlines_and_steps_under_way(running: Running) -> None:
    overdue = in_status(running, "halted")
    with every_tenant():
        WorkflowInstance.objects.filter(id=overdue.id).update(deadline_at=timezone.now() - timedelta(days=1))
    in_status(running, "halted")
    running.start()
    client = running.cast.api(INTERVENE)
    said = order(client, action="retry_step", filter={"mode": "active"}, dry_run=True).json()
    assert (said["total"], said["legal"]) == (3, 1)
    assert {row["why"].split()[1] for row in said["refused"]} == {"workflow's", "step"}
    said = order(client, action="supersede", filter={"mode": "active"}, dry_run=True).json()
    assert said["legal"] == 3
    alice = running.cast.session(running.cast.operator)
    alice.post(f"/api/v1/workflow-definitions/{running.definition.id}/archive", {}, format="json")
    said = order(client, action="supersede", filter={"mode": "active"}, dry_run=True).json()
    assert (said["legal"], said["refused"][0]["why"].startswith("The case's product has no active")) == (0, True)


def test_an_order_is_worked_off_in_the_background_by_whom_gave_it(running: Running) -> None:
    cast = running.cast
    alice = cast.session(cast.operator)
    made = [running.start() for _ in range(3)]
    answer = order(alice, reason_code="incident_response", note="Ticket 17")
    assert answer.status_code == 202
    said = answer.json()
    assert answer["Location"] == f"{BULK}/{said['id']}"
    assert (said["total"], said["done"], said["waiting"], said["finished_at"]) == (3, 0, 3, None)
    assert {running.fresh(row).state for row in made} == {"running"}  # nothing yet
    assert work(said["id"]) == 3
    found = cast.api(READ).get(f"{BULK}/{said['id']}").json()
    assert (found["total"], found["done"], found["refused"], found["ordered_by"]) == (3, 3, 0, "alice")
    assert found["finished_at"] is not None
    (entry,) = entries(UUID(said["id"]))
    assert (entry.action, entry.payload["count"], entry.reason_code) == (
        "workflow.bulk_ordered",
        3,
        "incident_response",
    )
    for row in made:
        (done,) = interventions(row)
        assert (done.action, str(done.bulk_id), done.actor_kind) == ("halt", said["id"], "person")
        assert done.note is not None
        assert (done.note.text, entries(row.id)[-1].payload["bulk"]) == ("Ticket 17", said["id"])
        assert entries(row.id)[-1].actor_ref == entry.actor_ref
    assert {str(done.note_id) for row in made for done in interventions(row)} == {entry.payload["note"]}
    assert work(said["id"]) == 0  # safe twice


def test_each_item_has_its_own_result(running: Running) -> None:
    client = running.cast.api(INTERVENE)
    one, two = running.start(), running.start()
    bulk_id = order(client, action="cancel").json()["id"]
    assert client.post(f"/api/v1/workflow-instances/{one.id}/cancel", {"reason_code": "rehearsal"}).status_code == 200
    work(bulk_id)
    assert results(bulk_id) == [("refused", "intervention-not-legal"), ("done", "")]
    reader = running.cast.api(READ)
    rows = reader.get(f"{BULK}/{bulk_id}/items").json()["results"]
    assert [(row["instance_id"], row["status"]) for row in rows] == [(str(two.id), "done"), (str(one.id), "refused")]
    assert rows[0]["case_id"] == str(two.case_id)
    refused = reader.get(f"{BULK}/{bulk_id}/items", {"status": "refused"}).json()["results"]
    assert [row["problem"] for row in refused] == ["intervention-not-legal"]
    assert len(interventions(one)) == 1  # the person's, not the order's


def test_many_runs_can_be_named_and_superseded(running: Running) -> None:
    client = running.cast.api(INTERVENE)
    made = [in_status(running, "halted") for _ in range(2)]
    ids = [str(row.id) for row in made]
    answer = client.post(BULK, {"action": "supersede", "reason_code": "superseded", "instance_ids": ids}, format="json")
    assert answer.status_code == 202
    work(answer.json()["id"])
    for row in made:
        assert running.instance(row.case_id).id != row.id
        with every_tenant():
            assert instance_replay(instance=running.instance(row.case_id)).differences == []


@pytest.mark.parametrize(
    "body",
    [
        {"filter": {}},
        {"filter": {"status": "running"}, "instance_ids": [str(uuid4())]},
        {"filter": {"state": "running"}},
        {"filter": {"status": "completed"}},  # nothing matches
        {"instance_ids": []},
        {"action": "delete"},
        {"reason_code": "because"},
        {"reason_code": "incident_response"},  # needs a note
        {"note": "x" * 281},
    ],
)
def test_an_order_that_says_too_little_or_too_much_is_refused(cast: Cast, body: dict[str, Any]) -> None:
    given = HALT | body
    if body.keys() == {"instance_ids"}:
        given.pop("filter")
    answer = cast.api(INTERVENE).post(BULK, given, format="json")
    assert answer.status_code == 400, answer.json()
    with every_tenant():
        assert not BulkIntervention.objects.exists()


@pytest.mark.tampers
def test_more_runs_than_an_order_may_have_are_counted_honestly_and_refused(running: Running) -> None:
    copies(in_status(running, "queued"), MOST)
    client = running.cast.api(INTERVENE)
    said = order(client, action="cancel", filter={"status": "queued"}, dry_run=True).json()
    assert (said["total"], said["more"], len(said["sample"])) == (MOST, True, 20)
    answer = order(client, action="cancel", filter={"status": "queued"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/filter")
    with every_tenant():
        assert not BulkIntervention.objects.exists()


def test_a_long_order_takes_turns_and_finishes(running: Running) -> None:
    made = [in_status(running, "queued"), *(running.start() for _ in range(BATCH + 29))]
    bulk_id = order(running.cast.api(INTERVENE), action="cancel", filter={"status": "queued"}).json()["id"]
    assert [work(bulk_id), work(bulk_id), work(bulk_id)] == [BATCH, 30, 0]
    assert set(results(bulk_id)) == {("done", "")}
    with every_tenant():
        assert WorkflowIntervention.objects.filter(bulk_id=bulk_id).count() == len(made)


def test_who_lost_the_role_meanwhile_does_nothing_any_more(running: Running) -> None:
    cast = running.cast
    one = running.start()
    bulk_id = order(cast.session(cast.operator)).json()["id"]
    with every_tenant():
        group = RoleGroup.objects.get(organization=cast.organization, role="operator").group
        cast.operator.groups.remove(group)
    work(bulk_id)
    assert results(bulk_id) == [("refused", "scope-missing")]
    assert (running.fresh(one).state, interventions(one)) == ("running", [])


def test_a_service_whose_key_was_revoked_does_nothing_any_more(running: Running) -> None:
    one = running.start()
    bulk_id = order(running.cast.api(INTERVENE)).json()["id"]
    with every_tenant():
        ApiKey.objects.filter(scopes__contains=[INTERVENE]).update(revoked_at=timezone.now())
    work(bulk_id)
    assert results(bulk_id) == [("refused", "scope-missing")]
    assert running.fresh(one).state == "running"


def test_an_administrator_s_order_in_another_organization_is_carried_out(running: Running) -> None:
    cast, one = running.cast, running.start()
    admin = cast.api(INTERVENE, "orchestrator:admin", organization=cast.other)
    answer = admin.post(f"{BULK}?org_id={cast.organization.id}", HALT, format="json")
    assert answer.status_code == 202
    work(answer.json()["id"])
    assert running.fresh(one).state == "halted"


def test_somebody_else_s_run_cannot_be_named(running: Running) -> None:
    cast, one = running.cast, running.start()
    stranger = cast.api(INTERVENE, organization=cast.other)
    body = {"action": "halt", "reason_code": "rehearsal", "instance_ids": [str(one.id)]}
    for dry_run in (True, False):
        assert stranger.post(BULK, body | {"dry_run": dry_run}, format="json").status_code == 404
    assert violations() == ["cross_tenant", "cross_tenant"]
    assert order(stranger).status_code == 400  # of the stranger's own there is none
    with every_tenant():
        assert not BulkIntervention.objects.exists()


def test_orders_are_read_by_their_organization_and_given_by_operators(running: Running) -> None:
    cast = running.cast
    running.start()
    for client in (cast.api(READ), cast.session(cast.auditor), cast.session(cast.reviewer), cast.session(cast.nobody)):
        assert order(client).status_code == 403
        assert order(client, dry_run=True).status_code == 403
    bulk_id = order(cast.api(INTERVENE)).json()["id"]
    for page in ("", f"/{bulk_id}", f"/{bulk_id}/items"):
        for client in (cast.api(READ), cast.api("orchestrator:read"), cast.session(cast.auditor)):
            assert client.get(BULK + page).status_code == 200
        assert cast.api(INTERVENE).get(BULK + page).status_code == 403
        stranger = cast.api(READ, organization=cast.other).get(BULK + page)
        assert stranger.status_code == (404 if page else 200)
        assert bulk_id not in stranger.content.decode()


def test_an_order_that_nobody_works_on_is_taken_up_by_the_tick(running: Running) -> None:
    one = running.start()
    bulk_id = order(running.cast.api(INTERVENE)).json()["id"]
    with every_tenant():
        assert bulks_due() == []
        BulkIntervention.objects.update(resume_at=timezone.now() - timedelta(seconds=1))
    bulks_resume_task()
    assert running.fresh(one).state == "halted"
    with every_tenant():
        assert BulkIntervention.objects.get(id=bulk_id).finished_at is not None
        BulkIntervention.objects.update(resume_at=timezone.now() - timedelta(seconds=1))
        assert bulks_due() == []


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_do_every_item_once() -> None:
    running = Running(Cast())
    client = running.cast.api(INTERVENE)
    for _ in range(3):
        made = [running.start() for _ in range(6)]
        bulk_id = order(client, action="cancel").json()["id"]
        done = in_parallel(*[lambda: work(bulk_id)] * 3)  # noqa: B023
        assert sum(done) == 6
        assert results(bulk_id) == [("done", "")] * 6
        assert [len(interventions(row)) for row in made] == [1] * 6
        work(bulk_id)
        with every_tenant():
            assert BulkIntervention.objects.get(id=bulk_id).finished_at is not None


@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_in_the_middle_leaves_nothing_half_done_and_the_rest_is_done_later() -> None:
    running = Running(Cast())
    made = [running.start() for _ in range(6)]
    bulk_id = order(running.cast.api(INTERVENE)).json()["id"]
    with transaction.atomic(), every_tenant():  # the fourth run is locked here: the worker waits for it
        WorkflowInstance.objects.select_for_update().get(id=made[3].id)
        worker = start(work_off, bulk_id)
        try:
            wait_for(lambda: elsewhere(bulk_id) == 3, seconds=60, what="three items done")
        finally:
            worker.kill()
            code = ended(worker)
    assert code == -signal.SIGKILL
    assert [running.fresh(row).state for row in made] == ["halted"] * 3 + ["running"] * 3
    assert results(bulk_id) == [("done", "")] * 3 + [("waiting", "")] * 3
    with every_tenant():
        BulkIntervention.objects.update(resume_at=timezone.now() - timedelta(seconds=1))
    bulks_resume_task()
    assert results(bulk_id) == [("done", "")] * 6
    assert [len(interventions(row)) for row in made] == [1] * 6


def elsewhere(bulk_id: str) -> int:
    """What others have committed, seen from a connection of its own."""
    (count,) = in_parallel(lambda: sum(status == "done" for status, _ in results(bulk_id)))
    return int(count)


def work_off(bulk_id: str) -> None:
    while work(bulk_id):
        pass
