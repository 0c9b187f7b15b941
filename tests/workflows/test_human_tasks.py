"""Steps for people: a task with facts, a form and outcomes of its own; a manual intervention; an assigned reviewer."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from attempts.reviews.models import Review
from attempts.reviews.services.clock import reviews_expire
from governance.ledger.models import LedgerEntry
from governance.ledger.services import person_commitment
from governance.people.models import User
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.config.test_problems import check
from tests.governance.support import in_parallel
from tests.tampering import triggers_off
from tests.workflows.running import REGION
from tests.workflows.test_run_requested import Asking
from tests.workflows.world import World, check_record
from workflows.runs.models import Nudge, WorkflowInstance, WorkflowStep
from workflows.runs.selectors.run import instance_get
from workflows.runs.services.signal_follow import signal_follow

TIER = "customer_clinician"
INPUT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["amount_cents", "currency"],
    "properties": {
        "amount_cents": {"type": "integer", "minimum": 1},
        "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
    },
}
FORM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["cause"],
    "properties": {
        "cause": {"enum": ["damaged", "late", "other"]},
        "share": {"type": "integer", "minimum": 1, "maximum": 100},
        "checked": {"type": "boolean"},
        "since": {"type": "string", "format": "date"},
    },
}
GIVEN = {"amount_cents": 123456, "currency": "EUR"}
END = {"done": {"kind": "emit_final", "transitions": {"on_complete": "TERMINAL"}}}
STOP = {"stop": {"kind": "halt", "params": {"reason_code": "review_rejected"}}}


def task(**params: Any) -> dict[str, Any]:
    asked = {
        "tier": TIER,
        "title": "Release a refund",
        "facts": {"amount_cents": "{{input.amount_cents}}", "currency": "{{input.currency}}"},
        "form": FORM,
        "outcomes": ["approve", "reject", "ask_again"],
    }
    ways = {"on_approve": "done", "on_reject": "stop", "on_ask_again": "done", "on_expired": "stop"}
    return {"kind": "human_task", "params": asked | params, "due_seconds": 600, "transitions": ways}


def document(start: str = "finance", **steps: Any) -> dict[str, Any]:
    return {
        "format": 2,
        "name": "Refund",
        "input": INPUT,
        "start_step": start,
        "steps": (steps or {"finance": task()}) | END | STOP,
    }


class Tasks(Asking, World):
    """A clinic that asks people; `begin` begins a run with a key whose owner is the operator."""

    def begin(self, key: str = "order-1") -> WorkflowInstance:
        return self.run(self.ask(key=key, given=GIVEN))

    def task(self, instance: WorkflowInstance) -> Review:
        with every_tenant():
            steps = WorkflowStep.objects.filter(instance=instance).values("id")
            return Review.objects.get(origin_step__in=steps, status="requested")

    def reviewer(self, name: str = "rita", tier: str = TIER) -> Any:
        return self.cast.session(self.cast.person(name, f"reviewer:{tier}"))

    def decide(self, review: Review, client: Any, outcome: str = "approve", **changes: Any) -> Any:
        word = {"action_digest": review.action_digest, "outcome": outcome, "form": {"cause": "late"}} | changes
        return client.post(f"/api/v1/reviews/{review.id}/decide", word, format="json")

    def ended(self, instance: WorkflowInstance) -> WorkflowInstance:
        World.follow()
        with every_tenant():
            return instance_get(instance_id=instance.id)

    def output(self, instance: WorkflowInstance, step_id: str) -> Any:
        with every_tenant():
            return WorkflowStep.objects.filter(instance=instance, step_id=step_id).latest("number").output


@pytest.fixture
def clinic(cast: Cast) -> Tasks:
    return Tasks(cast, document())


def reference(username: str) -> str:
    return person_commitment(user_id=User.objects.get(username=username).id)


def test_people_see_the_facts_and_their_answer_is_the_output_of_the_step(clinic: Tasks) -> None:
    run, rita = clinic.begin(), clinic.reviewer()
    review = clinic.task(run)
    card = rita.get(f"/api/v1/reviews/{review.id}").json()
    assert (card["kind"], card["task"]["title"], card["may_decide"]["verdicts"]) == (
        "human_task",
        "Release a refund",
        ["answer", "decline"],
    )
    assert [(fact["label"], fact["text"]) for fact in card["task"]["facts"]] == [("Amount", "1,234.56 EUR")]
    assert card["task"]["outcomes"] == ["approve", "reject", "ask_again"]
    answer = clinic.decide(review, rita, form={"cause": "late", "share": 50, "checked": True, "since": "2026-11-01"})
    assert (answer.status_code, answer.json()["status"]) == (200, "approved")
    assert clinic.ended(run).state == "completed"
    assert clinic.output(run, "finance") == {
        "outcome": "approve",
        "reviewer": reference("rita"),
        "cause": "late",
        "share": 50,
        "checked": True,
        "since": "2026-11-01",
    }
    check_record(clinic, run)
    with every_tenant():
        said = LedgerEntry.objects.get(subject_id=review.id, action="review.voted").payload
    assert (said["outcome"], said["verdict"], len(said["form_sha256"])) == ("approve", "answer", 64)


@pytest.mark.parametrize(
    ("outcome", "status", "state"), [("reject", "rejected", "halted"), ("ask_again", "decided", "completed")]
)
def test_every_outcome_has_a_way_of_its_own(clinic: Tasks, outcome: str, status: str, state: str) -> None:
    run = clinic.begin()
    answer = clinic.decide(clinic.task(run), clinic.reviewer(), outcome)
    assert (answer.status_code, answer.json()["status"], clinic.ended(run).state) == (200, status, state)


def test_the_doors_of_releases_take_the_outcomes_of_their_name(clinic: Tasks) -> None:
    rita = clinic.reviewer()
    for key, verb, word, state in (
        ("one", "approve", {}, "completed"),
        ("two", "reject", {"reason_code": "reviewer_already_done"}, "halted"),
    ):
        run = clinic.begin(key)
        review = clinic.task(run)
        url = f"/api/v1/reviews/{review.id}/{verb}"
        body = {"action_digest": review.action_digest, **word}
        refused = check(rita.post(url, body, format="json"), status=400, code="invalid-input")
        assert refused["errors"][0]["pointer"] == "/form/cause"
        assert rita.post(url, body | {"form": {"cause": "other"}}, format="json").status_code == 200
        assert clinic.ended(run).state == state


def test_a_form_that_does_not_fit_is_refused_field_by_field_and_decides_nothing(clinic: Tasks) -> None:
    review, rita = clinic.task(clinic.begin()), clinic.reviewer()
    wrong = {"cause": "zx81marker", "share": 0, "checked": "yes", "since": "soon", "more": 1}
    body = check(clinic.decide(review, rita, form=wrong), status=400, code="invalid-input")
    found = {error["pointer"]: error["rule"] for error in body["errors"]}
    assert found == {
        "/form": "additionalProperties",
        "/form/cause": "enum",
        "/form/checked": "type",
        "/form/share": "minimum",
        "/form/since": "format",
    }
    assert "zx81marker" not in str(body)
    assert clinic.decide(review, rita, "postpone").status_code == 409
    assert clinic.decide(review, rita, action_digest="0" * 64).status_code == 412
    assert clinic.task(instance_of(review)).id == review.id


def instance_of(review: Review) -> WorkflowInstance:
    with every_tenant():
        return WorkflowStep.objects.select_related("instance").get(id=review.origin_step).instance


def test_strangers_other_tiers_and_whoever_asked_cannot_decide(clinic: Tasks) -> None:
    cast, run = clinic.cast, clinic.begin()
    review = clinic.task(run)
    # Alice answers for the service whose key asked for the run.
    cast.person("alice", f"reviewer:{TIER}", exception=True)
    check(clinic.decide(review, cast.session(cast.operator)), status=403, code="own-work")
    check(clinic.decide(review, clinic.reviewer("sam", "sa_qa")), status=403, code="not-a-reviewer")
    check(clinic.decide(review, cast.session(cast.auditor)), status=403, code="not-a-reviewer")
    check(clinic.decide(review, cast.session(cast.other_operator)), status=404, code="not-found")
    assert clinic.decide(review, cast.api("reviews:decide")).status_code == 403
    with every_tenant():
        assert GovernanceViolation.objects.filter(subject_id=review.id).count() >= 3
    assert clinic.decide(review, clinic.reviewer()).status_code == 200


def test_two_people_have_to_choose_the_same_outcome_and_one_who_rejects_is_enough(cast: Cast) -> None:
    clinic = Tasks(cast, document(finance=task(approvals=2)))
    people = [clinic.reviewer(name) for name in ("rita", "ron", "rosa")]
    run = clinic.begin("agree")
    review = clinic.task(run)
    assert clinic.decide(review, people[0], "approve").json()["status"] == "requested"
    check(clinic.decide(review, people[0], "approve"), status=409, code="already-voted")
    assert clinic.decide(review, people[1], "ask_again").json()["quorum"]["missing"] == 1
    last = clinic.decide(review, people[2], "approve", form={"cause": "damaged"})
    assert (last.json()["status"], last.json()["quorum"]["approvals"]) == ("approved", 2)
    clinic.ended(run)
    assert clinic.output(run, "finance") == {"outcome": "approve", "reviewer": reference("rosa"), "cause": "damaged"}
    refused = clinic.begin("refuse")
    review = clinic.task(refused)
    assert clinic.decide(review, people[0], "approve").json()["status"] == "requested"
    assert clinic.decide(review, people[1], "reject").json()["status"] == "rejected"
    assert clinic.ended(refused).state == "halted"


@pytest.mark.tampers
def test_a_task_that_nobody_answers_expires_and_the_definition_goes_on(cast: Cast) -> None:
    clinic = Tasks(cast, document(finance=task(expires_seconds=900)))
    run = clinic.begin()
    review = clinic.task(run)
    assert (review.expires_at - review.requested_at).total_seconds() == 900  # type: ignore[operator]
    assert (review.remind_at - review.requested_at).total_seconds() == 600  # type: ignore[operator]
    past = timezone.now() - timedelta(hours=1)
    with every_tenant(), triggers_off("attempts_review", "workflows_workflowstep"):
        Review.objects.filter(id=review.id).update(expires_at=past, requested_at=past - timedelta(hours=1))
        WorkflowStep.objects.filter(id=review.origin_step).update(timeout_at=past)
    assert reviews_expire(at=timezone.now()) == 1
    ended = clinic.ended(run)
    assert (ended.state, ended.halt_reason, ended.halt_step_id) == ("halted", "review_rejected", "stop")
    with every_tenant():
        assert WorkflowStep.objects.get(id=review.origin_step).outcome == "on_expired"


def test_declining_leaves_the_task_for_somebody_else(clinic: Tasks) -> None:
    run = clinic.begin()
    review, rita = clinic.task(run), clinic.reviewer()
    word = {"action_digest": review.action_digest, "reason_code": "conflict_of_interest"}
    assert rita.post(f"/api/v1/reviews/{review.id}/decline", word, format="json").json()["status"] == "requested"
    check(clinic.decide(review, rita), status=409, code="already-voted")
    assert clinic.decide(review, clinic.reviewer("ron")).status_code == 200


@pytest.mark.parametrize(("outcome", "state"), [("resume", "completed"), ("halt", "halted")])
def test_a_person_lets_the_run_go_on_or_halts_it(cast: Cast, outcome: str, state: str) -> None:
    pause = {
        "kind": "manual_intervention",
        "params": {"tier": TIER, "title": "Look at this run", "reason_code": "image_quality"},
        "transitions": {"on_resume": "done", "on_halt": "stop"},
    }
    clinic = Tasks(cast, document("pause", pause=pause))
    run = clinic.begin()
    answer = clinic.decide(clinic.task(run), clinic.reviewer(), outcome, form={})
    assert (answer.status_code, clinic.ended(run).state) == (200, state)
    assert clinic.output(run, "pause") == {"decided_by": reference("rita")}


def assigning(rule: Any, before: str = "") -> dict[str, Any]:
    """A task, perhaps, then the choice of a reviewer, and the task that is theirs."""
    choose = {
        "kind": "assign_reviewer",
        "params": {"tier": TIER, "rule": rule},
        "transitions": {"on_complete": "second"},
    }
    second = task() | {"transitions": task()["transitions"]}
    if not before:
        return document("choose", choose=choose, second=second)
    first = task()
    first["transitions"] = {**first["transitions"], "on_approve": "choose"}
    return document(before, **{before: first}, choose=choose, second=second)


def test_reviewers_are_assigned_in_turn_and_only_the_assigned_person_decides(cast: Cast) -> None:
    clinic = Tasks(cast, assigning("round_robin"))
    people = {reference_of(clinic, name): clinic.reviewer(name) for name in ("rita", "ron")}
    cast.person("alice", f"reviewer:{TIER}", exception=True)  # she asked for the runs, so it is never her turn
    chosen = []
    for key in ("one", "two", "three"):
        run = clinic.begin(key)
        clinic.ended(run)
        who = clinic.output(run, "choose")["reviewer"]
        chosen.append(who)
        review = clinic.task(run)
        other = next(client for ref, client in people.items() if ref != who)
        check(clinic.decide(review, other), status=403, code="not-assigned")
        card = people[who].get(f"/api/v1/reviews/{review.id}").json()
        (tier,) = card["quorum"]["by_tier"]
        assert tier["may_sign"] == [card["task"]["assigned_to"]]
        assert clinic.decide(review, people[who]).status_code == 200
        assert clinic.ended(run).state == "completed"
        check_record(clinic, run)
    assert (chosen[0], len(set(chosen[:2]))) == (chosen[2], 2)


def reference_of(clinic: Tasks, name: str) -> str:
    clinic.reviewer(name)
    return reference(name)


@pytest.mark.parametrize(("word", "same"), [("same_as", True), ("not", False)])
def test_an_earlier_step_says_who_decides_or_who_does_not(cast: Cast, word: str, same: bool) -> None:
    clinic = Tasks(cast, assigning({word: "first"}, before="first"))
    rita, ron = clinic.reviewer("rita"), clinic.reviewer("ron")
    run = clinic.begin()
    assert clinic.decide(clinic.task(run), rita).status_code == 200
    clinic.ended(run)
    clinic.ended(run)
    assert clinic.output(run, "choose") == {"reviewer": reference("rita" if same else "ron")}
    assert clinic.decide(clinic.task(run), rita if same else ron).status_code == 200
    assert clinic.ended(run).state == "completed"


def test_without_anybody_of_the_tier_the_choice_fails_and_the_run_halts(cast: Cast) -> None:
    clinic = Tasks(cast, assigning("least_loaded"))
    run = clinic.begin()
    ended = clinic.ended(run)
    assert (ended.state, ended.halt_step_id) == ("halted", "choose")


@pytest.mark.django_db(transaction=True)
def test_two_runs_that_choose_at_once_choose_two_people(cast: Cast) -> None:
    clinic = Tasks(cast, assigning("round_robin"))
    refs = {reference_of(clinic, name) for name in ("rita", "ron")}
    runs = [clinic.begin(key) for key in ("one", "two")]
    with every_tenant():
        first, second = Nudge.objects.order_by("id").values_list("id", flat=True)
    begun, done = threading.Event(), threading.Event()

    def holds() -> None:
        with every_tenant(), transaction.atomic():
            assert signal_follow(signal_id=first, at=timezone.now(), region=REGION)
            begun.set()
            done.wait(2)  # the other one is through by then, unless it waits for this commit

    def follows() -> None:
        assert begun.wait(20)
        with every_tenant():
            assert signal_follow(signal_id=second, at=timezone.now(), region=REGION)
        done.set()

    in_parallel(holds, follows)
    assert {clinic.output(run, "choose")["reviewer"] for run in runs} == refs
