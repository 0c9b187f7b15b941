"""The console's pages of runs: what they show, buttons that only a POST presses, many runs at once, kept events."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import browser
from tests.governance.support import row_counts
from tests.governed import HOLD
from tests.workflows.run_support import act, in_status, interventions, log, retry_waits
from tests.workflows.running import Running
from workflows.events.models import OutboxEvent, WorkflowEvent
from workflows.runs.models import BulkIntervention, WorkflowInstance
from workflows.runs.services.bulk import bulk_work

INSIDE = ("operator", "auditor", "owner", "reviewer", "administrator")
OUTSIDE = ("stranger", "nobody", "anonymous")
ACTS = ("retry-step", "halt", "resume", "cancel", "supersede")
REASON = {"reason_code": "planned_maintenance", "note": ""}
LISTS = ("workflowinstance", "workflowevent", "outboxevent", "bulkintervention")


def page(model: str, name: str, *arguments: Any) -> str:
    return reverse(f"admin:workflows_{model}_{name}", args=arguments)


def run_page(instance: WorkflowInstance) -> str:
    return page("workflowinstance", "change", instance.id)


@pytest.fixture
def running(cast: Cast) -> Running:
    return Running(cast)


@pytest.fixture
def alice(cast: Cast) -> Any:
    return cast.console(cast.operator)


def text(answer: Any) -> str:
    """What a person reads, without the marks."""
    assert answer.status_code == 200, answer.content[:2000]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_a_run_shows_where_it_stands_and_how_it_got_there(running: Running, alice: Any) -> None:
    instance = running.start()
    running.answer(instance)
    running.answer(instance)
    shown = alice.get(run_page(instance))
    words, source = text(shown), shown.content.decode()
    assert 'class="wf-graph wf-live"' in source
    assert re.search(r'wf-status-in_progress[^>]*data-step="ai_review"', source)
    assert re.search(r'wf-status-completed[^>]*data-step="consent_gate"', source)
    assert 'href="#step-ai_review"' in source
    assert 'id="step-ai_review"' in source
    for part in (
        "Waits for ai-review. The run continues with ai_review.completed.",
        "The case was created",
        "consent.check.completed arrived for consent_gate, try 1",
        "consent_gate completed on_pass",
        "Attempt for ai_review opened",
        "missing_types",
        "Steps that can still follow: ai_review, branch_confidence, customer_review, emit_done.",
    ):
        assert part in words, part
    assert reverse("admin:attempts_attempt_change", args=[governed(instance)]) in source


def governed(instance: WorkflowInstance) -> Any:
    with every_tenant():
        return instance.steps.exclude(governed_attempt=None).values_list("governed_attempt", flat=True).get()


def test_what_people_did_stands_in_the_timeline_with_their_name_and_words(running: Running, alice: Any) -> None:
    instance = running.start()
    step = running.current(instance)
    session = running.cast.session(running.cast.operator)
    act(running, instance, "halt", session, reason_code="incident_response", note="Ticket 17")
    running.report(
        instance,
        "consent.check.completed",
        {"granted": True, "missing_types": []},
        correlation_id=step.id,  # type: ignore[union-attr]
    )
    words = text(alice.get(run_page(instance)))
    assert re.search(r"alice\s+Halted the run\s+incident_response\s+“Ticket 17”", words)
    assert "Arrived while the run was halted or after it ended. Kept without effect." in words
    assert "Halted. An operator has to resume" in words


def test_a_human_review_and_a_hold_are_linked(cast: Cast, alice: Any) -> None:
    running = Running(cast, rules=HOLD)
    held = running.start()
    running.answer(held)
    running.answer(held)
    source = alice.get(run_page(held)).content.decode()
    assert "/admin/attempts/review/" in source
    assert "Held: a person has to release the request" in source


def test_the_review_of_a_human_step_is_linked_while_it_waits(running: Running, alice: Any) -> None:
    source = alice.get(run_page(in_status(running, "waiting_approval"))).content.decode()
    assert source.count("/admin/attempts/review/0") == 1


def test_drift_is_shown_at_the_top(running: Running, alice: Any) -> None:
    instance = running.start(orchestration_mode="client_driven")
    running.report(instance, "ai_review.completed", {"confidence": 0.9, "diagnoses": [], "raw_response_id": "r-1"})
    words = text(alice.get(run_page(instance)))
    assert "This run did not follow the order of its definition." in words.replace("&#x27;", "'")
    assert "ai_review.completed : a gate was skipped" in words
    assert words.index("a gate was skipped") < words.index("Timeline")


@pytest.mark.parametrize("status", ["queued", "completed", "cancelled", "halted"])
def test_every_status_has_a_page(running: Running, alice: Any, status: str) -> None:
    instance = in_status(running, status)
    words = text(alice.get(run_page(instance)))
    hints = {
        "queued": "Queued until",
        "completed": "The run has ended",
        "cancelled": "The run has ended",
        "halted": "Halted. An operator has to",
    }
    assert hints[status] in words
    offered = {verb for verb in ACTS if page("workflowinstance", "act", instance.id, verb) in hrefs(alice, instance)}
    expected = {
        "queued": {"halt", "cancel", "supersede"},
        "halted": {"resume", "retry-step", "cancel", "supersede"},
    }
    assert offered == expected.get(status, set())


def hrefs(client: Any, instance: WorkflowInstance) -> set[str]:
    return set(re.findall(r'href="([^"]+)"', client.get(run_page(instance)).content.decode()))


def test_looking_at_a_button_changes_nothing_and_says_what_it_will_do(running: Running, alice: Any) -> None:
    instance = running.start()
    running.answer(instance)
    running.answer(instance)
    before = row_counts()
    shown = text(alice.get(page("workflowinstance", "act", instance.id, "halt")))
    assert "Its attempt ends with an unknown outcome and goes to quarantine" in shown
    assert "Planned maintenance (planned_maintenance)" in shown
    assert "Image quality (image_quality)" in shown
    assert row_counts() == before


def test_a_button_intervenes_when_it_is_posted_with_a_reason(running: Running, alice: Any) -> None:
    instance = running.start()
    bare = alice.post(page("workflowinstance", "act", instance.id, "halt"), {"reason_code": ""})
    assert (bare.status_code, running.fresh(instance).state) == (200, "running")
    needs = alice.post(page("workflowinstance", "act", instance.id, "halt"), {"reason_code": "incident_response"})
    assert (needs.status_code, b"requires a note" in needs.content) == (400, True)
    done = alice.post(page("workflowinstance", "act", instance.id, "halt"), REASON)
    assert (done.status_code, done["Location"]) == (302, run_page(instance))
    assert running.fresh(instance).state == "halted"
    again = alice.post(page("workflowinstance", "act", instance.id, "halt"), REASON)
    assert (again.status_code, b"The instance is halted" in again.content) == (409, True)
    for verb, status in (("resume", "running"), ("cancel", "cancelled")):
        assert alice.post(page("workflowinstance", "act", instance.id, verb), REASON).status_code == 302
        assert running.fresh(instance).state == status
    assert [one.actor_kind for one in interventions(instance)] == ["person"] * 3


def test_superseding_from_the_console_names_the_new_run(running: Running, alice: Any) -> None:
    instance = retry_waits(running)
    done = alice.post(page("workflowinstance", "act", instance.id, "supersede"), REASON, follow=True)
    new = running.instance(instance.case_id)
    assert f"The new run is {new.id}." in done.content.decode()
    assert run_page(new) in done.content.decode()


@pytest.mark.parametrize("verb", ACTS)
def test_nobody_but_operators_presses_a_button(running: Running, verb: str) -> None:
    instance = in_status(running, "halted")
    address = page("workflowinstance", "act", instance.id, verb)
    before = log(instance)
    for who in ("auditor", "owner", "reviewer", *OUTSIDE):
        client = browser(running.cast, who)
        for answer in (client.get(address), client.post(address, REASON)):
            assert answer.status_code in {302, 403, 404}, who
    assert (log(instance), running.fresh(instance).state) == (before, "halted")


def test_everybody_with_a_role_reads_a_run_and_nobody_else_finds_it(running: Running) -> None:
    instance = running.start()
    for who in INSIDE:
        assert browser(running.cast, who).get(run_page(instance)).status_code == 200, who
    for who in OUTSIDE:
        answer = browser(running.cast, who).get(run_page(instance))
        assert answer.status_code in {302, 403, 404}, who
        assert str(instance.case_id).encode() not in answer.content, who


def test_lists_show_the_rows_of_ones_own_organization_only(running: Running) -> None:
    instance, event = running.start(), kept(running)
    for model in LISTS:
        for who in INSIDE:
            assert browser(running.cast, who).get(page(model, "changelist")).status_code == 200, (model, who)
        stranger = browser(running.cast, "stranger").get(page(model, "changelist"))
        assert stranger.status_code == 200
        for secret in (str(instance.case_id), str(event.case_id), "consent.check.requested"):
            assert secret not in stranger.content.decode(), (model, secret)
        assert browser(running.cast, "nobody").get(page(model, "changelist")).status_code == 403
        assert browser(running.cast, "anonymous").get(page(model, "changelist")).status_code == 302


def test_the_front_page_counts_what_has_not_ended(running: Running, alice: Any) -> None:
    for status in ("halted", "completed", "waiting_approval"):
        in_status(running, status)
    source = alice.get("/admin/").content.decode()
    counts = dict(re.findall(r"workflowinstance/\?status=(\w+)\">(\d+)", source))
    assert counts == {"queued": "0", "running": "0", "waiting_approval": "1", "halted": "1"}


def test_the_list_is_filtered_and_searched_exactly(running: Running, alice: Any) -> None:
    going, halted = running.start(), in_status(running, "halted")
    listing = page("workflowinstance", "changelist")

    def found(**query: str) -> set[str]:
        source = alice.get(listing, query).content.decode()
        return {str(one.case_id) for one in (going, halted) if str(one.case_id) in source}

    both = {str(going.case_id), str(halted.case_id)}
    assert found() == both
    assert found(status="halted") == found(halt_reason="consent_missing") == {str(halted.case_id)}
    assert found(mode="active") == found(definition=str(running.definition.id)) == both
    assert found(q=str(going.id)) == {str(going.case_id)}
    assert found(q=str(halted.case_id)) == {str(halted.case_id)}
    assert "0 runs" in text(alice.get(listing, {"q": str(going.id)[:8]}))


def test_the_list_costs_the_same_with_five_runs_and_with_twenty(running: Running, alice: Any) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert alice.get(page("workflowinstance", "changelist")).status_code == 200
        return len(found.captured_queries)

    for _ in range(5):
        running.start()
    queries()
    few = queries()
    for _ in range(15):
        running.start()
    assert queries() == few


def test_many_runs_are_ordered_in_two_steps(running: Running, alice: Any) -> None:
    made = [running.start(), running.start()]
    in_status(running, "halted")
    listed = alice.get(page("workflowinstance", "changelist"), {"status": "running"})
    assert page("workflowinstance", "bulk") + "?status=running" in listed.content.decode()
    choice = alice.get(page("workflowinstance", "bulk"), {"status": "running"})
    assert re.search(r'<option value="running" selected', choice.content.decode())
    chosen = {"action": "halt", "organization": str(running.organization.id), "status": "running"}
    before = row_counts()
    shown = alice.get(page("workflowinstance", "bulk"), chosen, follow=True)
    assert "2 runs: 2 would be changed" in text(shown)
    assert row_counts() == before
    address = shown.redirect_chain[-1][0]
    refused = alice.post(page("workflowinstance", "bulk") + address, {"reason_code": "incident_response"})
    assert (refused.status_code, b"requires a note" in refused.content) == (400, True)
    later = running.start()  # began after the preview: not among those that were shown
    done = alice.post(page("workflowinstance", "bulk") + address, REASON)
    with every_tenant():
        bulk = BulkIntervention.objects.get()
    assert (done.status_code, done["Location"]) == (302, page("bulkintervention", "change", bulk.id))
    assert "data-progress" in alice.get(done["Location"]).content.decode()
    with every_tenant():
        bulk_work(bulk_id=bulk.id, now=lambda: bulk.created_at, region="US")
    said = alice.get(page("bulkintervention", "progress", bulk.id)).json()
    assert said == {"total": 2, "done": 2, "refused": 0, "waiting": 0, "finished": True}
    ended = alice.get(done["Location"])
    assert "data-progress" not in ended.content.decode()
    assert str(made[0].case_id) in ended.content.decode()
    assert (running.fresh(later).state, {running.fresh(one).state for one in made}) == ("running", {"halted"})


def test_ticked_runs_are_carried_to_the_preview(running: Running, alice: Any) -> None:
    one, two = running.start(), in_status(running, "halted")
    ticked = {"action": "bulk_selected", "_selected_action": [str(one.id), str(two.id)]}
    sent = alice.post(page("workflowinstance", "changelist"), ticked)
    assert sent.status_code == 302
    assert "What to do" in text(alice.get(sent["Location"]))
    shown = text(alice.get(sent["Location"] + "&action=halt"))
    assert "2 runs: 1 would be changed, the others refused" in shown
    assert "The instance is halted" in shown


def test_a_choice_that_says_nothing_is_not_previewed(running: Running, alice: Any) -> None:
    running.start()
    chosen = {"action": "halt", "organization": str(running.organization.id)}
    nothing = alice.get(page("workflowinstance", "bulk"), chosen | {"ids": "seven"})
    assert nothing.status_code == 400
    strange = alice.get(page("workflowinstance", "bulk"), chosen | {"organization": str(running.cast.other.id)})
    assert strange.status_code == 400
    unknown = alice.get(page("workflowinstance", "bulk"), chosen | {"ids": str(uuid4())})
    assert unknown.status_code == 404
    none = alice.get(page("workflowinstance", "bulk"), chosen | {"status": "completed"}, follow=True)
    assert "No run matches" in text(none)


def test_only_operators_order_for_many(running: Running) -> None:
    running.start()
    address = page("workflowinstance", "bulk")
    chosen = f"?action=halt&organization={running.organization.id}&status=running&created_before=9999-01-01"
    for who in ("auditor", "owner", "reviewer", "nobody"):
        client = browser(running.cast, who)
        assert client.get(address).status_code == 403, who
        assert client.post(address + chosen, REASON).status_code == 403, who
        if who != "nobody":
            listed = client.get(page("workflowinstance", "changelist")).content.decode()
            assert "Intervene in" not in listed, who
    stranger = browser(running.cast, "stranger")
    assert stranger.post(address + chosen, REASON).status_code == 400  # that organization is not among theirs
    with every_tenant():
        assert not BulkIntervention.objects.exists()


def test_the_progress_of_an_order_is_for_its_organization(running: Running) -> None:
    running.start()
    client = running.cast.api("orchestrator:intervene")
    body = {"action": "halt", "reason_code": "rehearsal", "filter": {"status": "running"}}
    bulk_id = client.post("/api/v1/workflow-instances/bulk-interventions", body, format="json").json()["id"]
    for name in ("change", "progress"):
        address = page("bulkintervention", name, bulk_id)
        for who in INSIDE:
            assert browser(running.cast, who).get(address).status_code == 200, who
        for who in OUTSIDE:
            assert browser(running.cast, who).get(address).status_code in {302, 403, 404}, who


def kept(running: Running) -> WorkflowEvent:
    envelope = running.envelope("consent.check.completed", {"granted": True, "missing_types": []}, case_id=uuid4())
    return running.send(envelope).event


def test_a_kept_event_is_driven_again_from_its_page(running: Running, alice: Any) -> None:
    event = kept(running)
    assert str(event.case_id) in alice.get(page("workflowevent", "changelist")).content.decode()
    shown = alice.get(page("workflowevent", "change", event.id))
    assert "granted" in text(shown)
    running.start(case_id=event.case_id, orchestration_mode="client_driven")
    before = row_counts()
    address = page("workflowevent", "act", event.id, "redrive")
    assert alice.get(address).status_code == 200
    assert row_counts() == before
    done = alice.post(address)
    assert (done.status_code, done["Location"]) == (302, run_page(running.instance(event.case_id)))  # type: ignore[arg-type]
    assert str(event.case_id) not in alice.get(page("workflowevent", "changelist")).content.decode()
    again = alice.get(page("workflowevent", "changelist"), {"which": "redriven"})
    assert str(event.case_id) in again.content.decode()
    assert address not in alice.get(page("workflowevent", "change", event.id)).content.decode()
    assert alice.post(address).status_code == 409


def test_a_kept_event_that_still_finds_nothing_is_kept_again(running: Running, alice: Any) -> None:
    event = kept(running)
    done = alice.post(page("workflowevent", "act", event.id, "redrive"), follow=True)
    assert "No run could accept it." in text(done)
    with every_tenant():
        made = WorkflowEvent.objects.get(redrives=event)
    assert page("workflowevent", "change", made.id) == done.redirect_chain[-1][0]


def test_nobody_but_operators_drives_again(running: Running) -> None:
    event = kept(running)
    address = page("workflowevent", "act", event.id, "redrive")
    for who in ("auditor", "owner", "reviewer", *OUTSIDE):
        assert browser(running.cast, who).post(address).status_code in {302, 403, 404}, who
    with every_tenant():
        assert WorkflowEvent.objects.count() == 1


def test_drift_is_listed_beside_the_kept_events(running: Running, alice: Any) -> None:
    instance = running.start(orchestration_mode="client_driven")
    running.report(instance, "ai_review.completed", {"confidence": 0.9, "diagnoses": [], "raw_response_id": "r-1"})
    listing = page("workflowevent", "changelist")
    assert str(instance.case_id) not in alice.get(listing).content.decode()
    assert "a gate was skipped" in text(alice.get(listing, {"which": "drift"}))


def test_the_outbox_is_to_be_read_only(running: Running, alice: Any) -> None:
    instance = running.start()
    with every_tenant():
        row = OutboxEvent.objects.filter(instance=instance).order_by("number").last()
    assert row is not None
    for query in ({}, {"status": "pending"}, {"status": "sent"}):
        listed = alice.get(page("outboxevent", "changelist"), query)
        assert ("consent.check.requested" in listed.content.decode()) == (query != {"status": "sent"})
    shown = alice.get(page("outboxevent", "change", row.id))
    assert b'name="_save"' not in shown.content
    assert run_page(instance) in shown.content.decode()
    assert alice.post(page("outboxevent", "change", row.id), {"status": "sent"}).status_code == 403
    for who in OUTSIDE:
        answer = browser(running.cast, who).get(page("outboxevent", "change", row.id))
        assert answer.status_code in {302, 403, 404}, who
