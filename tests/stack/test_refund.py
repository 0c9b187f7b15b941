"""A case that is not clinical, from `run.requested` to its end: the refund of the demo over HTTP and streams, with its
programs killed between the steps. The test plays the fraud score, the payments and the people of finance.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.stack.homes import seasoned_stack
from tests.stack.support import wait_for
from tests.stack.test_make_run import child_pid
from tests.stack.test_workflows import Clinic

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
WORKERS = ("clock", "dispatch", "adapters", "webhooks")
SCORE, PAY = "module.fraud-score.score", "module.payments.refund"


class Refunds(Clinic):
    def ask(self, cents: int, **changes: Any) -> httpx.Response:
        example = self.demo["run_example"]
        order = f"order-{uuid4().hex[:12]}"
        payload = example["payload"] | {
            "business_key": order,
            "input": example["payload"]["input"] | {"amount_cents": cents, "order_ref": order},
        }
        return self.call("POST", "/events", example | {"event_id": str(uuid4()), "payload": payload} | changes)

    def asked_for(self, cents: int) -> dict[str, Any]:
        answer = self.ask(cents)
        assert answer.status_code == 202, answer.text
        return self.instance({"id": answer.json()["instance_id"]})

    def scored(self, run: dict[str, Any], score: float) -> None:
        answer = self.report(self.asked(run, f"{SCORE}.requested"), f"{SCORE}.completed", {"result": {"score": score}})
        assert answer.status_code == 202, answer.text

    def paid(self, run: dict[str, Any], *, fails: bool = False) -> None:
        request = self.asked(run, f"{PAY}.requested")
        assert request["payload"]["send"]["amount_cents"] == run["input"]["amount_cents"]
        receipt: dict[str, Any] = {"result": {"receipt_ref": "receipt-1"}}
        refusal: dict[str, Any] = {"reason_code": "adapter_failed", "retryable": False}
        name, payload = (f"{PAY}.failed", refusal) if fails else (f"{PAY}.completed", receipt)
        answer = self.report(request, name, payload)
        assert answer.status_code == 202, answer.text

    def decided(self, run: dict[str, Any], outcome: str) -> None:
        """By a person of finance, in the review queue."""
        found = self.until(run, "waiting_approval")
        person, step = self.reviewer(), found["current_steps"][0]["correlation_id"]
        reviews = person.get("/api/v1/reviews", params={"status": "requested", "tier": "finance"}).json()["results"]
        (review,) = [one for one in reviews if one["origin_step"] == step]
        card = person.get(f"/api/v1/reviews/{review['id']}").json()
        word = {"action_digest": card["action_digest"], "outcome": outcome, "form": {"cause": "damaged"}}
        answer = person.post(f"/api/v1/reviews/{review['id']}/decide", json=word)
        assert answer.status_code == 200, answer.text

    def killed(self, *names: str) -> None:
        """kill -9 of programs, all at once; the supervisor starts them again."""
        said = {name: self.stack.text.count(f"{name} runs again") for name in names}
        for name in names:
            os.kill(child_pid(self.stack, name), signal.SIGKILL)
        for name, times in said.items():
            wait_for(
                lambda name=name, times=times: self.stack.text.count(f"{name} runs again") > times,  # type: ignore[misc]
                seconds=60,
                what=f"{name} again",
            )

    def path(self, run: dict[str, Any]) -> list[tuple[str, str]]:
        return [(step_id, status) for step_id, _, status in self.steps(run)]

    def told(self, run: dict[str, Any], name: str) -> dict[str, Any]:
        """What webhook endpoints are told, as it stands on its stream."""
        payload: dict[str, Any] = self.asked(run, "workflow.webhook_emit.requested")["payload"]
        assert payload["event_name"] == name
        return payload

    def replays(self) -> None:
        said = json.loads(self.stack.manage("replay_instance", "--all", "--json"))
        assert said["differing"] == []


@pytest.fixture(scope="module")
def refunds(seasoned_home: Path) -> Iterator[Refunds]:
    with seasoned_stack(seasoned_home, HOLDPOINT_MODULES="human-review", HOLDPOINT_RESTART_DELAY="1") as stack:
        found = Refunds(stack)
        yield found
        for client in found.people.values():
            client.close()
        found.streams.close()


def test_a_small_refund_of_low_risk_is_paid_at_once_though_everything_is_killed_between_its_steps(
    refunds: Refunds,
) -> None:
    run = refunds.asked_for(1999)
    again = refunds.call("GET", "/workflow-instances", business_key=run["business_key"]).json()["results"]
    assert [one["id"] for one in again] == [run["id"]]
    refunds.killed(*WORKERS)
    refunds.scored(run, 0.05)
    refunds.killed("consumer", *WORKERS)
    refunds.paid(run)
    refunds.killed(*WORKERS)
    found = refunds.until(run, "completed", seconds=60)
    assert found["output"] == {"paid": "receipt-1"}
    assert refunds.told(run, "refund.paid")["payload"]["receipt_ref"] == "receipt-1"
    assert ("finance", "completed") not in refunds.path(run)
    assert {one["state"] for one in found["governed_attempts"]} == {"completed"}


def test_a_large_refund_waits_for_finance_and_is_paid_after_their_approval(refunds: Refunds) -> None:
    run = refunds.asked_for(250_000)
    refunds.scored(run, 0.05)
    refunds.until(run, "waiting_approval")
    refunds.killed(*WORKERS)
    refunds.decided(run, "approve")
    refunds.paid(run)
    found = refunds.until(run, "completed", seconds=60)
    assert (found["output"], found["context"]["finance"]["cause"]) == ({"paid": "receipt-1"}, "damaged")


def test_a_rejected_refund_is_not_paid_and_the_caller_is_told(refunds: Refunds) -> None:
    run = refunds.asked_for(250_000)
    refunds.scored(run, 0.05)
    refunds.decided(run, "reject")
    found = refunds.until(run, "completed", seconds=60)
    assert found["output"] == {"paid": ""}
    refunds.told(run, "refund.rejected")
    assert "pay" not in dict(refunds.path(run))


def test_a_payment_that_fails_halts_the_run_for_a_person(refunds: Refunds) -> None:
    run = refunds.asked_for(1000)
    refunds.scored(run, 0.05)
    refunds.killed(*WORKERS)
    refunds.paid(run, fails=True)
    found = refunds.until(run, "halted", seconds=60)
    assert (found["halt_reason"], found["halt_step_id"]) == ("adapter_failed", "halt_unpaid")


def test_a_refund_that_nobody_decides_expires_and_the_caller_is_told(refunds: Refunds) -> None:
    definition = refunds.done("GET", f"/workflow-definitions/{refunds.demo['definitions']['refund']['id']}")
    document = definition["definition"]
    document["steps"]["finance"]["params"]["expires_seconds"] = 2
    place = {"slug": definition["slug"], "product_id": definition["product_id"]}
    draft = refunds.done("POST", "/workflow-definitions", place | {"definition": document})
    assert refunds.confirmed(draft["id"])["contract"]["state"] == "open"
    run = refunds.asked_for(250_000)
    refunds.scored(run, 0.05)
    found = refunds.until(run, "completed", seconds=60)
    assert found["output"] == {"paid": ""}
    refunds.told(run, "refund.rejected")


def test_an_input_that_does_not_fit_starts_nothing_and_every_run_replays(refunds: Refunds) -> None:
    answer = refunds.ask(-5)
    assert answer.status_code == 422
    assert [one["pointer"] for one in answer.json()["errors"]] == ["/payload/input/amount_cents"]
    refunds.replays()
