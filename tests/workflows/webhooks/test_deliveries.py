"""From an event to a receiver: made once, signed, in order, tried again, given up, sent again by a person."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from jsonschema import Draft202012Validator
from standardwebhooks import Webhook

from config.waiting import render_waiting
from governance.ledger.models import LedgerEntry
from governance.retention.models import ErasureItem
from governance.shutdown.models import Shutdown
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.attempts.test_tick_cost import copy_rows, cost
from tests.emptying import fresh_indexes
from tests.governance.ledger.sealing import seal_all
from tests.governance.support import in_parallel
from tests.governed import DENY, open_contract
from tests.workflows.running import Running
from tests.workflows.webhooks.support import REASON, Hooks, attempts, deliveries, entries, fresh
from workflows.events.models import OutboxEvent
from workflows.events.services.outbox import outbox_relay
from workflows.webhooks.adapters import WebhookResult
from workflows.webhooks.models import WebhookAttempt, WebhookCursor, WebhookDelivery, WebhookSecret
from workflows.webhooks.rules.delivery import DELAYS, PATIENCE
from workflows.webhooks.rules.events import TYPES, webhook_schema
from workflows.webhooks.selectors import DUE
from workflows.webhooks.services.deliver import attempts_settle, deliveries_take
from workflows.webhooks.services.endpoints import (
    endpoint_disable,
    endpoint_enable,
    endpoint_secret_rotate,
    endpoint_test,
)
from workflows.webhooks.services.gather import deliveries_erase, deliveries_trim, ledger_gather, outbox_told
from workflows.webhooks.services.redeliver import delivery_redeliver, failed_redeliver

LATER = timedelta(hours=25)  # longer than any single wait


def emitting() -> dict[str, Any]:
    """A definition that says something to webhooks and ends."""
    return {
        "name": "Telling",
        "description": "Tells.",
        "default_mode": "active",
        "workflow_timeout_seconds": 3600,
        "start_step": "tell",
        "steps": {
            "tell": {
                "kind": "emit_webhook",
                "params": {"event_name": "case.seen", "payload_template": {"stage": "first"}},
                "timeout_seconds": 60,
                "transitions": {"on_complete": "done"},
            },
            "done": {
                "kind": "emit_final",
                "params": {"include_diagnoses": False},
                "timeout_seconds": 60,
                "transitions": {"on_complete": "TERMINAL"},
            },
        },
    }


def test_a_run_is_told_in_order_signed_thin_and_once(hooks: Hooks) -> None:
    running = Running(hooks.cast, emitting())
    made = hooks.endpoint("workflow.*", "case.seen")
    hooks.endpoint("attempt.*")  # wants something else
    hooks.endpoint("*", organization=hooks.cast.other)
    run = running.start()
    with every_tenant():
        outbox_relay(at=timezone.now())
        rows = list(OutboxEvent.objects.filter(instance=run))
        with transaction.atomic():  # the relay died before it could mark them: told again
            outbox_told(rows, timezone.now())
    assert hooks.send() == 3
    assert [said["type"] for _, said in hooks.got] == ["workflow.started", "case.seen", "workflow.completed"]
    published = {str(row.id): row for row in rows}
    for request in hooks.target.requests:
        said = Webhook(made.secret).verify(request["raw"], request["headers"])
        row = published[request["headers"]["webhook-id"]]
        known = TYPES[said["type"] if said["type"] in TYPES else row.event_type]
        Draft202012Validator(webhook_schema(known)).validate(said)
        assert said["data"]["instance_id"] == str(run.id)
        assert said["timestamp"] == row.envelope["occurred_at"]
    assert hooks.got[1][1]["data"]["payload"] == {"stage": "first"}
    assert (hooks.send(), len(hooks.target.requests)) == (0, 3)
    for one in deliveries():
        (tried,) = attempts(one)
        assert (one.state, one.why, tried.outcome, tried.status) == ("delivered", "delivered", "delivered", 200)
        request = next(r for r in hooks.target.requests if r["headers"]["webhook-id"] == str(one.event_id))
        assert bytes(one.body) == request["raw"]  # the log has the exact bytes, and the headers that went with them
        assert tried.headers.items() <= {name.lower(): value for name, value in request["headers"].items()}.items()


@pytest.mark.django_db(transaction=True)
def test_the_sealed_record_is_told_once_and_from_the_endpoints_first_moment_on(hooks: Hooks) -> None:
    cast = hooks.cast
    open_contract(cast, rules=DENY)
    post(cast.api("attempts:create"), body(), key="before-anybody-listened")
    seal_all()
    with every_tenant():
        assert ledger_gather(at=timezone.now()) == 0  # nobody listens: the cursor goes to the end at once
    hooks.endpoint("attempt.*", "shutdown.*")
    theirs = hooks.endpoint("shutdown.engaged", organization=cast.other)
    denied = post(cast.api("attempts:create"), body()).json()["attempt_id"]
    with every_tenant():
        assert ledger_gather(at=timezone.now()) == 0  # not sealed yet
        shutdown = shutdown_engage(
            actor=SYSTEM,
            at=timezone.now(),
            scope=ShutdownScope.GLOBAL,
            target="",
            organization_id=None,
            reason_code="operator_shutdown",
            note="drill of the tests",
            installation=True,
        )
    seal_all()
    with every_tenant():
        counts = in_parallel(*[lambda: _gather() for _ in range(3)])
        assert sum(counts) == 3
        assert ledger_gather(at=timezone.now()) == 0
        WebhookCursor.objects.update(position=0)  # a restored cursor: nothing is made twice
        ledger_gather(at=timezone.now())
        told = WebhookDelivery.objects.exclude(event_type__startswith="attempt.received")
        assert {(row.event_type, row.subject_id) for row in told} >= {
            ("attempt.denied", UUID(denied)),
            ("shutdown.engaged", shutdown.id),
        }
        found = WebhookDelivery.objects.get(event_type="attempt.denied", subject_id=denied)
        assert LedgerEntry.objects.get(id=found.event_id).action == "attempt.denied"
    for one in deliveries():
        said = json.loads(bytes(one.body))
        Draft202012Validator(webhook_schema(TYPES[one.event_type])).validate(said)
    (far,) = deliveries(endpoint=theirs.endpoint)
    assert json.loads(bytes(far.body))["data"] == {
        "shutdown_id": str(shutdown.id),
        "status": "engaged",
        "reason_code": "operator_shutdown",
    }
    with every_tenant():
        assert Shutdown.objects.count() == 1


def _gather() -> int:
    with every_tenant():
        return ledger_gather(at=timezone.now())


def test_a_failure_is_tried_again_by_the_schedule_with_the_same_id_until_it_is_given_up(hooks: Hooks) -> None:
    made = hooks.endpoint()
    hooks.tell([uuid7()])
    hooks.target.statuses = [503, 500, 302, 404] + [500] * 20
    before = timezone.now()
    assert hooks.send() == 1
    (one,) = deliveries()
    assert (one.state, one.why, one.tries, one.ended_at) == ("pending", "refused", 1, None)
    assert 4 < (one.next_try_at - before).total_seconds() < 7
    assert (hooks.send(), hooks.send(after=timedelta(seconds=10))) == (0, 1)
    while deliveries()[0].state == "pending":
        assert fresh(made.endpoint).enabled
        assert hooks.send_next() == 1
    (one,) = deliveries()
    assert (one.state, one.failures, one.why) == ("failed", len(DELAYS) + 1, "refused")
    assert timedelta(hours=75) < hooks.clock - before < timedelta(hours=84)
    assert one.ended_at is not None
    assert [row.outcome for row in attempts(one)][:4] == ["refused", "refused", "redirected", "refused"]
    assert len({identity for identity, _ in hooks.got}) == 1
    assert len({row.headers["webhook-timestamp"] for row in attempts(one)}) > 1  # each try is signed anew
    found = fresh(made.endpoint)  # three days without a good answer
    assert (found.enabled, found.disabled_why, found.failures) == (False, "failing", len(DELAYS) + 1)
    assert entries(found.id)[-1] == ("webhook_endpoint.disabled", "system", "webhook_failing")


def test_410_ends_it_at_once_and_a_person_takes_it_up_again(hooks: Hooks) -> None:
    cast, made = hooks.cast, hooks.endpoint()
    alice = cast.actor(cast.operator, [cast.organization])
    hooks.tell([uuid7() for _ in range(6)])
    hooks.target.statuses = [410]
    hooks.send()
    assert {row.state for row in deliveries()} <= {"failed", "delivered"}
    gone = [row for row in deliveries() if row.why == "gone"]
    dropped = [row for row in deliveries() if row.why == "endpoint_disabled"]
    assert (len(gone), bool(dropped)) == (1, True)
    assert fresh(made.endpoint).disabled_why == "gone"
    front = cast.console(cast.operator).get("/admin/").content.decode()
    assert "webhook endpoints in trouble" in front
    assert 'holdpoint_webhook_endpoints_disabled{why="gone"} 1.0' in render_waiting(at=timezone.now()).decode()
    assert entries(made.endpoint.id)[-1] == ("webhook_endpoint.disabled", "system", "webhook_gone")
    with every_tenant():
        assert hooks.tell([uuid7()]) == 0  # nothing is kept for it meanwhile
        endpoint_enable(actor=alice, at=timezone.now(), endpoint_id=made.endpoint.id)
        failed = [row for row in deliveries() if row.state == "failed"]
        delivery_redeliver(actor=alice, at=timezone.now(), delivery_id=failed[0].id, **REASON)
        again = failed_redeliver(actor=alice, at=timezone.now(), endpoint_id=made.endpoint.id, **REASON)
    assert again == len(failed) - 1
    hooks.send()
    assert {row.state for row in deliveries()} == {"delivered"}
    assert len({identity for identity, _ in hooks.got}) == 6
    assert [action for action, *_ in entries(failed[0].id)] == ["webhook_delivery.redelivered"]
    assert entries(made.endpoint.id)[-1] == ("webhook_endpoint.redelivered", "person", "rehearsal")
    assert attempts(failed[0])[-1].number == len(attempts(failed[0]))


def test_within_a_subject_later_ones_wait_for_the_earlier_one_for_its_first_tries(hooks: Hooks) -> None:
    hooks.endpoint()
    slow, other = uuid7(), uuid7()
    hooks.tell([slow], each=3)
    hooks.target.statuses = [500] * PATIENCE
    assert hooks.send() == 1
    for _ in range(PATIENCE - 2):
        assert hooks.send_next() == 1  # the first of the three, and nothing behind it
    with every_tenant():  # a sender that died is no failure of the receiver's
        due = hooks.clock + timedelta(hours=1)
        assert len(deliveries_take(at=due, most=8, private_hosts=hooks.hosts)) == 1
        later = due + timedelta(minutes=2)
        assert len(deliveries_take(at=later, most=8, private_hosts=hooks.hosts)) == 1
    assert hooks.send(after=later + timedelta(minutes=2) - timezone.now()) == 1
    hooks.tell([other])
    assert [said["data"]["number"] for _, said in hooks.got] == [1] * PATIENCE
    hooks.send(after=timedelta(hours=9))
    order = [said["data"]["number"] for _, said in hooks.got if said["data"]["instance_id"] == str(slow)]
    assert sorted(order[PATIENCE:]) == [1, 2, 3]
    assert {row.state for row in deliveries()} == {"delivered"}


def test_an_endpoint_that_is_down_gets_one_try_at_a_time_and_does_not_hold_up_the_others(hooks: Hooks) -> None:
    down = hooks.endpoint(url=f"http://{hooks.target.host}/down").endpoint
    hooks.endpoint("attempt.held")
    hooks.target.statuses = [500, 500, 500, 500]
    hooks.tell([uuid7() for _ in range(20)])
    hooks.send()
    failures = fresh(down).failures
    assert 1 <= failures <= 4  # what was under way at once, and then no more
    held = fresh(down).held_until
    assert held is not None
    with every_tenant():
        WebhookDelivery.objects.filter(state="pending").update(next_try_at=timezone.now())
    hooks.target.statuses = [500] * 20
    later = held - timezone.now() + timedelta(seconds=1)
    assert (hooks.send(), hooks.send(after=later)) == (0, 1)
    hooks.tell([uuid7()], name="attempt.held")
    hooks.target.statuses = []
    hooks.send()  # the other endpoint's
    assert [row.state for row in deliveries(event_type="attempt.held") if row.endpoint_id != down.id] == ["delivered"]
    hooks.send(after=timedelta(minutes=10))
    assert (fresh(down).failures, fresh(down).failing_since) == (0, None)
    assert {row.state for row in deliveries()} == {"delivered"}


def test_a_secret_is_rotated_without_a_refused_request(hooks: Hooks) -> None:
    cast, made = hooks.cast, hooks.endpoint()
    alice = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        new = endpoint_secret_rotate(
            actor=alice, at=timezone.now(), endpoint_id=made.endpoint.id, overlap=timedelta(hours=24)
        )
    hooks.tell([uuid7()])
    hooks.send()
    request = hooks.target.requests[0]
    for secret in (made.secret, new.secret):
        Webhook(secret).verify(request["raw"], request["headers"])
    hooks.tell([uuid7()])
    hooks.send(after=timedelta(hours=24, seconds=1))
    assert hooks.target.requests[1]["headers"]["webhook-signature"].count("v1,") == 1
    with every_tenant():
        said = json.dumps([row.payload for row in LedgerEntry.objects.filter(subject_id=made.endpoint.id)])
        stored = [bytes(row.salt).hex() for row in WebhookSecret.objects.all()]
    for secret in (made.secret, new.secret):  # neither on the record nor in the rows
        assert secret.removeprefix("whsec_") not in said
        assert secret.removeprefix("whsec_") not in " ".join(stored)
    assert hooks.target.host not in said


def test_a_test_send_is_a_delivery_like_any_other_and_only_for_an_enabled_endpoint(hooks: Hooks) -> None:
    cast, made = hooks.cast, hooks.endpoint("attempt.held")
    alice = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        endpoint_test(actor=alice, at=timezone.now(), endpoint_id=made.endpoint.id, **REASON)
    hooks.send()
    ((_, said),) = hooks.got
    Draft202012Validator(webhook_schema(TYPES["webhook.test"])).validate(said)
    assert entries(made.endpoint.id)[-1] == ("webhook_endpoint.tested", "person", "rehearsal")
    with every_tenant():
        endpoint_disable(actor=alice, at=timezone.now(), endpoint_id=made.endpoint.id, **REASON)
        with pytest.raises(Exception, match="wrong-state"):
            endpoint_test(actor=alice, at=timezone.now(), endpoint_id=made.endpoint.id, **REASON)


def test_what_is_sent_cannot_be_changed_old_rows_go_and_what_is_erased_is_not_sent_again(hooks: Hooks) -> None:
    cast, made = hooks.cast, hooks.endpoint()
    alice = cast.actor(cast.operator, [cast.organization])
    subject = uuid7()
    hooks.tell([subject])
    hooks.send()
    (one,) = deliveries()
    for column, value in (("body", b"{}"), ("event_type", "x.y"), ("body_sha256", "0" * 64), ("state", "failed")):
        with pytest.raises(DatabaseError), every_tenant(), transaction.atomic():
            WebhookDelivery.objects.filter(id=one.id).update(**{column: value})
    item = ErasureItem(organization=cast.organization, subject_id=subject, related=[])
    with every_tenant(), transaction.atomic():
        deliveries_erase(item, alice, timezone.now())
    assert bytes(deliveries()[0].body) == b""
    with every_tenant(), pytest.raises(Exception, match="wrong-state"):
        delivery_redeliver(actor=alice, at=timezone.now(), delivery_id=one.id, **REASON)
    with every_tenant():
        keep = timedelta(days=30)
        assert deliveries_trim(at=timezone.now() + timedelta(days=29), keep=keep) == 0
        assert deliveries_trim(at=timezone.now() + timedelta(days=31), keep=keep) == 1
        assert not WebhookAttempt.objects.exists()
    assert fresh(made.endpoint).enabled


def test_a_late_sender_does_not_undo_what_a_newer_one_found(hooks: Hooks) -> None:
    """Its lease was over, another one took the delivery: a late failure is written down and decides nothing."""
    hooks.endpoint()
    hooks.tell([uuid7()])
    with every_tenant():
        (late,) = deliveries_take(at=timezone.now(), most=8, private_hosts=hooks.hosts)
        assert deliveries_take(at=timezone.now(), most=8, private_hosts=hooks.hosts) == []  # leased
        (new,) = deliveries_take(at=timezone.now() + timedelta(minutes=2), most=8, private_hosts=hooks.hosts)
        attempts_settle(came_back=[(late, WebhookResult("timeout"))], at=timezone.now())
        assert deliveries()[0].next_try_at > timezone.now() + timedelta(minutes=2)  # still the newer one's lease
        attempts_settle(came_back=[(new, WebhookResult("delivered", 200))], at=timezone.now())
        attempts_settle(came_back=[(late, WebhookResult("timeout"))], at=timezone.now())
    assert (deliveries()[0].state, late.sending.headers["webhook-id"]) == (
        "delivered",
        new.sending.headers["webhook-id"],
    )


@pytest.mark.django_db(transaction=True)
def test_several_senders_share_the_work_and_none_is_sent_twice(hooks: Hooks) -> None:
    hooks.endpoint()
    hooks.tell([uuid7() for _ in range(30)])

    def take() -> list[Any]:
        with every_tenant():
            return deliveries_take(at=timezone.now(), most=8, private_hosts=hooks.hosts)

    taken = [job.delivery_id for jobs in in_parallel(*[take] * 6) for job in jobs]
    assert len(taken) == len(set(taken)) >= 4
    with every_tenant():
        WebhookDelivery.objects.update(next_try_at=timezone.now())
        WebhookAttempt.objects.all().delete()
    tries = in_parallel(*[hooks.send] * 3)
    assert sum(tries) == 30
    assert sorted(tries)[:2] == [0, 0]  # one place for senders, so slow receivers cannot take every worker
    assert len({identity for identity, _ in hooks.got}) == len(hooks.got) == 30


@pytest.mark.tampers
def test_looking_for_what_is_due_costs_what_is_due(hooks: Hooks) -> None:
    """However many wait for their retry, or behind an endpoint that is held back."""
    fresh_indexes("workflows_webhookdelivery")
    hooks.endpoint()
    held = hooks.endpoint(url=f"http://{hooks.target.host}/held").endpoint
    hooks.tell([uuid7()])
    mine, theirs = deliveries()
    found = []
    for count in (200, 4000):
        far = {"event_id": "gen_random_uuid()", "subject_id": "gen_random_uuid()"}
        copy_rows("workflows_webhookdelivery", mine.id, count, next_try_at="now() + interval '1 hour'", **far)
        copy_rows("workflows_webhookdelivery", theirs.id, count, **far)
        with every_tenant():
            type(held).objects.filter(id=held.id).update(failures=3, held_until=timezone.now() + LATER)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE workflows_webhookdelivery")
            cursor.execute("SET LOCAL enable_seqscan = off")  # few rows or many, the same way is taken
        given = {"at": timezone.now(), "most": 8, "quick": [], "rooms": "{}", "under_way": "{}", "default": 4}
        given["patient"] = PATIENCE
        found.append(cost(DUE, given))
    assert [one["rows"] for one in found] == [1, 1]
    assert found[1]["pages"] <= found[0]["pages"] + 20, "\n".join(one["plan"] for one in found)
