"""The ten integration tests of S4 9.2: over HTTP, with a real worker, beat, PostgreSQL and Valkey.

The tests play the modules: what is asked of them they read from the streams, what they answer they post.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import redis

from tests.stack.homes import seasoned_stack
from tests.stack.support import RunningStack
from workflows.definitions.rules.starters.starters import definition_starter

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]
STREAM = "holdpoint:events:"
ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "consent.check.requested": ("consent.check.completed", {"granted": True, "missing_types": []}),
    "case.images_check.requested": (
        "case.images_check.completed",
        {"count": 3, "passed": True, "image_ids": [str(uuid4())]},
    ),
    "ai_review.requested": (
        "ai_review.completed",
        {"confidence": 0.93, "diagnoses": [{"code": "L57.0"}], "raw_response_id": "resp-1"},
    ),
}
REASON = {"reason_code": "planned_maintenance"}


class Clinic:
    """A running stack with its demo; the six templates are published, each for a product of its own."""

    def __init__(self, stack: RunningStack) -> None:
        self.stack = stack
        self.demo = stack.demo
        self.streams: Any = redis.Redis.from_url(stack.runtime()["redis_url"], decode_responses=True)
        self.people: dict[str, httpx.Client] = {}

    # The API

    def call(self, method: str, path: str, body: Any = None, *, key: str = "workflows", **query: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.demo['keys'][key]}"}
        url = f"{self.stack.base_url}/api/v1{path}"
        return httpx.request(method, url, headers=headers, json=body, params=query, timeout=40)

    def done(self, method: str, path: str, body: Any = None, **query: str) -> dict[str, Any]:
        answer = self.call(method, path, body, **query)
        assert answer.status_code in {200, 201, 202}, answer.text
        return dict(answer.json())

    def place(self, name: str) -> dict[str, str]:
        """Slug and product under which the template was published."""
        found = self.done("GET", f"/workflow-definitions/{self.demo['definitions'][name]['id']}")
        return {"slug": found["slug"], "product_id": found["product_id"]}

    def active(self, name: str) -> dict[str, Any]:
        product = self.place(name)["product_id"]
        (found,) = self.done("GET", "/workflow-definitions", product_id=product, status="active")["results"]
        return dict(found)

    def publish(self, name: str, document: dict[str, Any]) -> dict[str, Any]:
        """A new version for the template's product; its contract carries the approvals over and is open."""
        draft = self.done("POST", "/workflow-definitions", self.place(name) | {"definition": document})
        published = self.confirmed(draft["id"], "For a test")
        assert published["contract"]["state"] == "open", published["contract"]
        return published

    def confirmed(self, definition_id: str, reason: str = "") -> dict[str, Any]:
        """Proposed with the key, whose responsible person is the administrator; confirmed by an operator."""
        proposed = self.done("POST", f"/workflow-definitions/{definition_id}/publish", {"reason": reason})
        change = proposed["authority_change"]["id"]
        answer = self.signed_in("operator").post(f"/api/v1/authority-changes/{change}/confirm", json={})
        assert answer.status_code == 200, answer.text
        return self.done("GET", f"/workflow-definitions/{definition_id}")

    def begin(self, name: str, **payload: Any) -> dict[str, Any]:
        """A case of the template's product; its run."""
        ids = {one: str(uuid4()) for one in ("event_id", "correlation_id", "case_id")}
        example = self.demo["event_example"]
        envelope = example | ids | {"product_id": self.place(name)["product_id"]}
        envelope["payload"] = example["payload"] | payload
        assert self.call("POST", "/events", envelope).status_code == 202
        (found,) = self.done("GET", "/workflow-instances", case_id=ids["case_id"])["results"]
        return dict(found)

    def instance(self, instance: dict[str, Any]) -> dict[str, Any]:
        return self.done("GET", f"/workflow-instances/{instance['id']}")

    def steps(self, instance: dict[str, Any]) -> list[tuple[str, int, str]]:
        rows = self.done("GET", f"/workflow-instances/{instance['id']}/steps")["results"]
        return [(row["step_id"], row["attempt"], row["status"]) for row in rows if row["attempt"]]

    def until(self, instance: dict[str, Any], *statuses: str, seconds: float = 30) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (found := self.instance(instance))["status"] not in statuses:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found

    def intervene(self, instance: dict[str, Any], action: str) -> dict[str, Any]:
        return self.done("POST", f"/workflow-instances/{instance['id']}/{action}", REASON)

    # The modules

    def asked(self, instance: dict[str, Any], name: str, *, number: int = 1, seconds: float = 30) -> dict[str, Any]:
        """The envelope of the run's `number`th request of this name, once it is on its stream."""
        deadline = time.monotonic() + seconds
        while True:
            entries = [json.loads(fields["data"]) for _, fields in self.streams.xrange(STREAM + name)]
            ours = [one for one in entries if one["case_id"] == instance["case_id"]]
            if len(ours) >= number:
                return dict(ours[number - 1])
            assert time.monotonic() < deadline, f"{name} was not asked for"
            time.sleep(0.05)

    def report(self, request: dict[str, Any], name: str, payload: dict[str, Any], **changes: Any) -> httpx.Response:
        """What a module says about a request."""
        envelope = request | {"event_id": str(uuid4()), "event_type": name, "payload": payload}
        envelope |= {"causation_id": request["event_id"]} | changes
        envelope.pop("traceparent", None)
        return self.call("POST", "/events", envelope)

    def complete(self, instance: dict[str, Any], *names: str, **changes: Any) -> httpx.Response:
        """The modules answer these requests, one after the other; `changes` are the last one's."""
        for name in names:
            event, payload = ANSWERS[name]
            said = payload | (changes if name == names[-1] else {})
            answer = self.report(self.asked(instance, name), event, said)
            assert answer.status_code == 202, answer.text
        return answer

    def reviewer(self) -> httpx.Client:
        return self.signed_in("reviewer")

    def signed_in(self, username: str) -> httpx.Client:
        """Through the console's own form."""
        if username not in self.people:
            client = httpx.Client(base_url=self.stack.base_url, follow_redirects=True, timeout=40)
            client.get("/admin/login/")
            client.headers["Referer"] = self.stack.base_url + "/admin/login/"
            token = {"csrfmiddlewaretoken": client.cookies["csrftoken"]}
            client.post("/admin/login/", data=self.demo["users"][username] | token)
            client.headers["X-CSRFToken"] = client.cookies["csrftoken"]
            self.people[username] = client
        return self.people[username]


@pytest.fixture(scope="module")
def clinic(seasoned_home: Path) -> Iterator[Clinic]:
    """The simulated modules that belong to a stack are told to answer nothing that these tests ask."""
    with seasoned_stack(seasoned_home, HOLDPOINT_MODULES="human-review") as stack:
        found = Clinic(stack)
        yield found
        for client in found.people.values():
            client.close()
        found.streams.close()


GATES = ("consent.check.requested", "case.images_check.requested")


def brief(name: str, **steps: dict[str, Any]) -> dict[str, Any]:
    """A starter with fields of its steps changed."""
    document = definition_starter(name)
    for step_id, fields in steps.items():
        document["steps"][step_id] |= fields
    return document


def test_happy_path_through_ai_with_confidence_escalation(clinic: Clinic) -> None:
    instance = clinic.begin("ai_with_confidence_escalation")
    clinic.complete(instance, *GATES, "ai_review.requested", confidence=0.62)
    found = clinic.until(instance, "waiting_approval")
    assert found["current_steps"][0]["step_id"] == "customer_review"
    person = clinic.reviewer()
    reviews = person.get("/api/v1/reviews", params={"status": "requested"}).json()["results"]
    (review,) = [one for one in reviews if one["origin_step"] == found["current_steps"][0]["correlation_id"]]
    card = person.get(f"/api/v1/reviews/{review['id']}").json()
    said = person.post(f"/api/v1/reviews/{review['id']}/confirm", json={"action_digest": card["action_digest"]})
    assert said.status_code == 200, said.text
    found = clinic.until(instance, "completed")
    assert [status for *_, status in clinic.steps(instance)] == ["completed"] * 6
    assert found["context"]["ai_review"]["confidence"] == 0.62
    assert found["context"]["customer_review"]["decision"] == "confirm"
    final = clinic.asked(instance, "case.workflow.completed")
    assert final["payload"]["final_diagnoses"] == [{"source": "ai_review", "code": "L57.0"}]
    assert clinic.asked(instance, "workflow.completed")["payload"]["instance_id"] == instance["id"]
    assert {one["state"] for one in found["governed_attempts"]} == {"completed"}


def test_step_timeout_halts_the_workflow(clinic: Clinic) -> None:
    clinic.publish("ai_only", brief("ai_only", consent_gate={"timeout_seconds": 1}))
    instance = clinic.begin("ai_only")
    request = clinic.asked(instance, "consent.check.requested")
    found = clinic.until(instance, "halted")  # by beat and worker
    assert (found["halt_reason"], found["halt_step_id"]) == ("step_timed_out", "consent_gate")
    assert clinic.steps(instance) == [("consent_gate", 1, "timed_out")]
    late = clinic.report(request, *ANSWERS["consent.check.requested"])
    assert (late.status_code, late.json()["outcome"]) == (202, "late")
    assert clinic.instance(instance)["status"] == "halted"
    assert clinic.asked(instance, "workflow.halted")["payload"]["reason_code"] == "step_timed_out"


def test_retry_succeeds_on_second_attempt(clinic: Clinic) -> None:
    name = "ai_plus_clinician_plus_sa_qa_sample"
    clinic.publish(name, brief(name, ai_review={"retry_delay_seconds": 1, "retry_backoff": "fixed"}))
    instance = clinic.begin(name)
    clinic.complete(instance, *GATES)
    first = clinic.asked(instance, "ai_review.requested")
    failed = clinic.report(first, "ai_review.failed", {"reason_code": "image_quality", "retryable": True})
    assert failed.json()["outcome"] == "advanced"
    second = clinic.asked(instance, "ai_review.requested", number=2)  # by beat and worker
    assert second["correlation_id"] != first["correlation_id"]
    again = clinic.report(first, "ai_review.failed", {"reason_code": "image_quality", "retryable": True})
    assert again.json()["outcome"] == "stale"  # a success would contradict the failure, and go to a person
    assert clinic.report(second, *ANSWERS["ai_review.requested"]).json()["outcome"] == "advanced"
    clinic.until(instance, "waiting_approval")
    tries = [(attempt, status) for step_id, attempt, status in clinic.steps(instance) if step_id == "ai_review"]
    assert tries == [(1, "failed"), (2, "completed")]


def test_definition_publish_clone_and_activation(clinic: Clinic) -> None:
    template = next(one for one in clinic.done("GET", "/workflow-templates")["results"] if one["slug"] == "ai-only")
    before = clinic.active("clinician_only")
    body = clinic.place("clinician_only") | {"name": "Cloned from a template"}
    draft = clinic.done("POST", f"/workflow-definitions/{template['id']}/clone", body)
    assert (draft["status"], draft["cloned_from"]) == ("draft", template["id"])
    assert draft["version"] > before["version"]
    broken = definition_starter("clinician_only")
    broken["steps"]["consent_gate"]["transitions"]["on_pass"] = "image_chek"
    said = clinic.done("POST", f"/workflow-definitions/{draft['id']}/validate", {"definition": broken})
    assert (said["valid"], said["findings"][0]["suggestion"]) == (False, "image_check")
    change = {"definition": brief("clinician_only", image_check={"params": {"min_count": 1}})}
    clinic.done("PATCH", f"/workflow-definitions/{draft['id']}", change)
    published = clinic.confirmed(draft["id"], "Fewer images")
    assert published["status"] == "active"
    assert clinic.done("GET", f"/workflow-definitions/{before['id']}")["status"] == "archived"
    assert clinic.active("clinician_only")["id"] == draft["id"]
    instance = clinic.begin("clinician_only")
    assert instance["definition_id"] == draft["id"]
    clinic.complete(instance, "consent.check.requested")
    assert clinic.asked(instance, "case.images_check.requested")["payload"] == {"min_count": 1}


def test_client_driven_mode_observes_without_requesting(clinic: Clinic) -> None:
    instance = clinic.begin("ai_escalation_plus_sa_sample", orchestration_mode="client_driven")
    assert instance["mode"] == "client_driven"
    began = clinic.asked(instance, "workflow.started")
    advice = clinic.done("GET", f"/workflow-instances/{instance['id']}/next-step")["next_action"]
    assert (advice["type"], advice["completion_event"]) == ("call_module", "consent.check.completed")
    for name in (*GATES, "ai_review.requested"):
        event, payload = ANSWERS[name]
        unsure = {"confidence": 0.62} if name == "ai_review.requested" else {}
        said = clinic.report(began, event, payload | unsure, correlation_id="the-clients-own")
        assert said.json()["outcome"] == "advanced"
    found = clinic.instance(instance)
    assert (found["status"], found["context"]["ai_review"]["confidence"]) == ("running", 0.62)
    for name in (*GATES, "ai_review.requested"):
        entries = [json.loads(fields["data"]) for _, fields in clinic.streams.xrange(STREAM + name)]
        assert not [one for one in entries if one["case_id"] == instance["case_id"]]
    drift = clinic.report(began, *ANSWERS["consent.check.requested"], correlation_id="again")
    assert drift.json()["outcome"] == "drift"
    assert clinic.instance(instance)["drift"][0]["drift"] == "unrequested_completion"


def test_intervention_retry_step_on_halted_workflow(clinic: Clinic) -> None:
    instance = clinic.begin("ai_plus_clinician")
    first = clinic.asked(instance, "consent.check.requested")
    clinic.complete(instance, "consent.check.requested", granted=False, missing_types=["ai_analysis"])
    assert clinic.until(instance, "halted")["halt_reason"] == "consent_missing"
    done = clinic.intervene(instance, "retry-step")
    assert (done["before_state"]["status"], done["after_state"]["status"]) == ("halted", "running")
    second = clinic.asked(instance, "consent.check.requested", number=2)
    assert second["correlation_id"] != first["correlation_id"]
    assert clinic.report(first, *ANSWERS["consent.check.requested"]).json()["outcome"] == "stale"
    assert clinic.report(second, *ANSWERS["consent.check.requested"]).json()["outcome"] == "advanced"
    assert clinic.steps(instance) == [
        ("consent_gate", 1, "completed"),
        ("halt_consent", 1, "skipped"),
        ("consent_gate", 2, "completed"),
        ("image_check", 1, "in_progress"),
    ]
    (row,) = clinic.done("GET", f"/workflow-instances/{instance['id']}/interventions")["results"]
    assert (row["action"], row["reason_code"]) == ("retry_step", "planned_maintenance")


def test_intervention_supersede_creates_new_instance_against_latest_definition(clinic: Clinic) -> None:
    old = clinic.begin("clinician_only")
    latest = clinic.publish("clinician_only", brief("clinician_only", consent_gate={"timeout_seconds": 77}))
    assert old["definition_id"] != latest["id"]
    done = clinic.intervene(old, "supersede")
    before = done["instance"]
    assert (before["status"], before["cancelled_reason"]) == ("cancelled", f"superseded_by:{before['superseded_by']}")
    new = clinic.done("GET", f"/workflow-instances/{before['superseded_by']}")
    assert (new["case_id"], new["definition_id"], new["status"]) == (old["case_id"], latest["id"], "running")
    clinic.asked(new, "consent.check.requested", number=2)
    assert clinic.asked(old, "workflow.cancelled")["payload"]["instance_id"] == old["id"]


def test_definition_archival_does_not_break_running_case(clinic: Clinic) -> None:
    published = clinic.publish("ai_plus_clinician", brief("ai_plus_clinician", image_check={"timeout_seconds": 55}))
    instance = clinic.begin("ai_plus_clinician")
    archived = clinic.done("POST", f"/workflow-definitions/{published['id']}/archive", {"reason": "No longer offered"})
    assert archived["status"] == "archived"
    clinic.complete(instance, *GATES, "ai_review.requested")
    found = clinic.until(instance, "waiting_approval")
    assert found["definition_snapshot"]["sha256"] == published["snapshot_sha256"]
    clinic.publish("ai_plus_clinician", definition_starter("ai_plus_clinician"))  # offered again


def test_reason_code_registry_per_org_override(clinic: Clinic) -> None:
    document = brief("clinician_only", halt_consent={"params": {"reason_code": "clinic_says_no"}})
    draft = clinic.done("POST", "/workflow-definitions", clinic.place("clinician_only") | {"definition": document})
    refused = clinic.call("POST", f"/workflow-definitions/{draft['id']}/publish", {})
    assert (refused.status_code, refused.json()["type"].rsplit("/", 1)[1]) == (422, "definition-invalid")
    code = {"scope": "halt", "code": "clinic_says_no", "label": "Not in this clinic"}
    clinic.done("POST", "/reason-codes", code)
    clinic.confirmed(draft["id"])
    instance = clinic.begin("clinician_only")
    clinic.complete(instance, "consent.check.requested", granted=False, missing_types=["ai_analysis"])
    assert clinic.until(instance, "halted")["halt_reason"] == "clinic_says_no"
    # The organization's own row of a system code wins over the system's, and only for this organization.
    clinic.done("POST", "/reason-codes", {"scope": "halt", "code": "image_quality", "label": "Our own words"})
    mine = clinic.done("GET", "/reason-codes", scope="halt", page_size="200")["results"]
    labels = {(row["org_id"] is None): row["label"] for row in mine if row["code"] == "image_quality"}
    assert labels == {True: "Image quality", False: "Our own words"}


def test_idempotency_duplicate_completed_does_not_double_advance(clinic: Clinic) -> None:
    instance = clinic.begin("ai_with_confidence_escalation")
    request = clinic.asked(instance, "consent.check.requested")
    event_id = str(uuid4())
    first = clinic.report(request, *ANSWERS["consent.check.requested"], event_id=event_id)
    again = clinic.report(request, *ANSWERS["consent.check.requested"], event_id=event_id)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json() == again.json()
    other = clinic.report(request, *ANSWERS["consent.check.requested"])
    assert (other.status_code, other.json()["outcome"]) == (202, "stale")
    clinic.asked(instance, "case.images_check.requested")
    time.sleep(0.5)
    entries = [
        json.loads(fields["data"]) for _, fields in clinic.streams.xrange(STREAM + "case.images_check.requested")
    ]
    assert len([one for one in entries if one["case_id"] == instance["case_id"]]) == 1
    assert clinic.steps(instance) == [("consent_gate", 1, "completed"), ("image_check", 1, "in_progress")]
    assert json.loads(clinic.stack.manage("replay_instance", "--all", "--json"))["differing"] == []
