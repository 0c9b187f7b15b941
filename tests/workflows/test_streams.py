"""The way in by streams: who is believed, what is parked, what a person does about it, and what is trimmed when."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from attempts.execution.adapters.event import STREAM
from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey, ServiceAccount
from governance.people.rules.keys import prefix_of, stream_public_key, stream_sign, stream_signature_fits
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.admin.support import browser
from tests.workflows.running import REGION, Running
from tests.workflows.stream_support import put, signed
from workflows.events.adapters import streams
from workflows.events.adapters.streams import GROUP, Inbox, inbound_types, message_client, stream_of, streams_tidy
from workflows.events.commands import EventConsumer
from workflows.events.models import OutboxEvent, ParkedMessage, WorkflowEvent
from workflows.events.services.messages import MOST_DELIVERIES
from workflows.events.services.outbox import MOST_REFUSALS, outbox_relay
from workflows.events.states import ParkedWhy
from workflows.runs.models import WorkflowInstance

CREATED = "case.created"
CONSENT = "consent.check.completed"
REASON = {"reason_code": "planned_maintenance", "note": ""}
DAY = 24 * 3600 * 1000
SECRET = "Marker-zx81"  # what no row may repeat


@pytest.fixture(autouse=True)
def empty_streams(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("unit"):
        yield
        return
    client: Any = message_client()
    names = [stream_of(name) for name in inbound_types()]
    client.delete(*names)
    yield
    client.delete(*names)


@pytest.fixture
def running(cast: Cast) -> Running:
    return Running(cast, "ai_only")


@pytest.fixture
def key(cast: Cast) -> str:
    return cast.key("orchestrator:write")


def consumer(name: str = "one", *, claim_after_ms: int = 60_000) -> EventConsumer:
    inbox = Inbox(consumer=name, claim_after_ms=claim_after_ms)
    inbox.prepare()
    return EventConsumer(inbox=inbox, now=timezone.now, region=REGION, stop=threading.Event())


def case(running: Running, **changes: Any) -> dict[str, Any]:
    return running.envelope(CREATED, {"patient_id": "pat-1"}, case_id=uuid4(), **changes)


def pending(event_type: str = CREATED) -> tuple[int, int]:
    """Read and not acknowledged; not read."""
    client: Any = message_client()
    (group,) = [one for one in client.xinfo_groups(stream_of(event_type)) if one["name"] == GROUP]
    return group["pending"], group["lag"]


def parked() -> list[ParkedMessage]:
    with every_tenant():
        return list(ParkedMessage.objects.order_by("id"))


def page(model: str, name: str, *arguments: Any) -> str:
    return reverse(f"admin:workflows_{model}_{name}", args=arguments)


@pytest.mark.unit
def test_a_signature_fits_its_own_bytes_and_key_and_nothing_else() -> None:
    secret, other, data = "hp_0123456789_abc_def", "hp_0123456789_abc_deg", '{"a": "é"}'.encode()
    public, signature = stream_public_key(secret), stream_sign(secret=secret, data=data)
    assert (prefix_of(secret), prefix_of("Bearer x"), len(public)) == ("0123456789", "", 32)
    assert stream_signature_fits(public_key=public, data=data, signature=signature)
    for position in range(len(data)):
        flipped = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        assert not stream_signature_fits(public_key=public, data=flipped, signature=signature)
    for bad in ("", "é", signature[:-4], signature.lower(), "x" + signature, "\x00", "A" * 88, "\udcff"):
        assert not stream_signature_fits(public_key=public, data=data, signature=bad), bad
    assert not stream_signature_fits(public_key=stream_public_key(other), data=data, signature=signature)
    assert not stream_signature_fits(public_key=b"", data=data, signature=signature)


@pytest.mark.django_db(transaction=True)
def test_a_signed_message_is_taken_in_like_a_posted_event_and_acknowledged(
    cast: Cast, running: Running, key: str
) -> None:
    """Posted first, then on the stream, then once more: one event, one run."""
    one = consumer()
    envelope = case(running, traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01")
    put(signed(key, envelope), CREATED)
    one.round(block_ms=10)
    again = cast.with_key(key).post("/api/v1/events", envelope, format="json")
    put(signed(key, envelope), CREATED)
    one.round(block_ms=10)
    assert again.status_code == 200
    assert pending() == (0, 0)
    with every_tenant():
        instance = WorkflowInstance.objects.get()
        assert WorkflowEvent.objects.filter(event_id=envelope["event_id"]).count() == 1
        assert (instance.state, instance.organization_id) == ("running", cast.organization.id)
        started = LedgerEntry.objects.get(subject_id=instance.id, action="workflow.started")
        account = ApiKey.objects.get(prefix=prefix_of(key)).service_account_id
        assert (started.actor_kind, started.actor_ref, started.trace_id) == ("service", str(account), "ab" * 16)
    assert parked() == []


def unacceptable(cast: Cast, running: Running, key: str) -> list[tuple[dict[Any, Any], ParkedWhy, bool]]:
    """Fields, why it is parked, and whether its organization is known."""
    good, at = case(running), timezone.now()
    other, reader, revoked, suspended = (
        cast.key("orchestrator:write", organization=cast.other),
        cast.key("orchestrator:read"),
        cast.key("orchestrator:write"),
        cast.key("orchestrator:write"),
    )
    with every_tenant():
        ApiKey.objects.filter(prefix=prefix_of(revoked)).update(revoked_at=at)
        ServiceAccount.objects.filter(keys__prefix=prefix_of(suspended)).update(
            status="suspended", suspended_reason_code="misuse_suspended"
        )
    data = json.dumps(good)
    return [
        ({"data": data}, ParkedWhy.SIGNATURE, False),
        ({"something": SECRET}, ParkedWhy.SIGNATURE, False),
        (signed(key, good, data=data.replace("pat-1", "pat-2")), ParkedWhy.SIGNATURE, False),
        (signed(key, good, key=prefix_of(other)), ParkedWhy.SIGNATURE, False),
        (signed(key, good, key="\x00"), ParkedWhy.SIGNATURE, False),
        (signed(key, good, key=key), ParkedWhy.SIGNATURE, False),
        (signed(revoked, good), ParkedWhy.SIGNATURE, False),
        (signed(suspended, good), ParkedWhy.SIGNATURE, False),
        (signed(reader, good), ParkedWhy.SCOPE, True),
        (signed(key, "{" + SECRET), ParkedWhy.UNREADABLE, True),
        (signed(key, '{"a": 1, "a": 2}'), ParkedWhy.UNREADABLE, True),
        (signed(key, json.dumps(good | {"payload": {"x": "y" * 70_000}})), ParkedWhy.UNREADABLE, True),
        (signed(key, "[" * 9 + "]" * 9), ParkedWhy.UNREADABLE, True),
        ({b"data": b"\xff\xfe", b"key": prefix_of(key).encode(), b"signature": b"\xff"}, ParkedWhy.SIGNATURE, False),
        (signed(key, good | {"event_type": CONSENT}), ParkedWhy.WRONG_STREAM, True),
        (signed(key, "[]"), ParkedWhy.INVALID, True),
        (signed(key, good | {"payload": {"patient": SECRET}}), ParkedWhy.INVALID, True),
        (signed(other, good), ParkedWhy.FOREIGN, True),
    ]


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_believed_or_read_is_parked_once_and_changes_nothing(
    cast: Cast, running: Running, key: str
) -> None:
    one, wrong = consumer(), unacceptable(cast, running, key)
    for fields, _, _ in wrong:
        put(fields, CREATED)
    put(signed(key, case(running)), CREATED)
    one.round(block_ms=10)
    found = parked()
    assert [row.why for row in found] == [why for _, why, _ in wrong]
    assert [row.organization_id is not None for row in found] == [known for *_, known in wrong]
    assert found[-1].organization_id == cast.other.id
    assert pending() == (0, 0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(string_agg(row.*::text, ''), '') FROM workflows_parkedmessage row")
        assert SECRET not in cursor.fetchone()[0]
    with every_tenant():
        assert WorkflowEvent.objects.exclude(event_id=None).count() == 1  # the good one, behind all of them
        assert GovernanceViolation.objects.filter(organization=cast.other).count() == 1
    for row in found:  # killed between the commit and the acknowledgement: delivered again
        message = streams.message_read(event_type=CREATED, entry_id=row.entry_id)
        assert message is not None
        one._handle(message)
    assert len(parked()) == len(wrong)


@pytest.mark.django_db(transaction=True)
def test_a_message_that_nobody_finishes_is_claimed_a_few_times_and_then_parked_without_holding_others_up(
    cast: Cast, running: Running, key: str
) -> None:
    """Its transaction fails by a fault of the database that has nothing to do with an outage."""
    bad, good = case(running), case(running)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF NEW.event_id = '{bad['event_id']}' THEN RAISE 'no'; END IF; RETURN NEW; END $$;"
            "CREATE TRIGGER fail BEFORE INSERT ON workflows_workflowevent FOR EACH ROW EXECUTE FUNCTION fail()"
        )
    try:
        put(signed(key, bad), CREATED)
        put(signed(key, good), CREATED)
        one = consumer(claim_after_ms=1)
        one.round(block_ms=10)
        assert pending() == (1, 0)
        for _ in range(MOST_DELIVERIES):
            assert parked() == []
            one._claim_at = 0
            one.round(block_ms=10)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION fail() CASCADE")
    (row,) = parked()
    assert (row.why, row.deliveries, row.organization_id) == ("deliveries", MOST_DELIVERIES + 1, cast.organization.id)
    assert pending() == (0, 0)
    with every_tenant():
        assert WorkflowInstance.objects.count() == 1
    operator = cast.console(cast.operator)
    answer = operator.post(page("parkedmessage", "act", row.id, "redrive"), REASON)
    assert answer.status_code == 302, answer.content  # the fault is gone
    with every_tenant():
        assert WorkflowInstance.objects.count() == 2
        assert ParkedMessage.objects.get().status == "taken"


@pytest.mark.django_db(transaction=True)
def test_what_a_consumer_leaves_behind_is_taken_over_and_what_it_gives_back_at_once(running: Running, key: str) -> None:
    for _ in range(3):
        put(signed(key, case(running)), CREATED)
    dead, patient = consumer("dead"), consumer("patient")
    assert len(dead.inbox.read(count=2, block_ms=10)) == 2
    patient.round(block_ms=10)
    assert pending() == (2, 0)  # not yet: its reader may be at work
    claimed = list(Inbox(consumer="eager", claim_after_ms=0).claim())
    assert [message.deliveries for message in claimed] == [2, 2]
    consumer("eager").inbox.give_back(claimed)
    patient._claim_at = 0
    patient.round(block_ms=10)
    assert (pending(), patient.taken) == ((0, 0), 3)
    put(signed(key, case(running)), CREATED)
    patient.stop.set()
    patient.round(block_ms=10)  # told to stop between reading and beginning
    assert (pending(), patient.taken) == ((1, 0), 3)
    assert [message.deliveries for message in consumer("next").inbox.claim()] == [2]


@pytest.mark.django_db(transaction=True)
def test_a_message_in_hand_waits_for_the_database_and_is_not_counted_up(running: Running, key: str) -> None:
    """Once its connection is cut while the database goes on, once there is no database for a while."""
    for _ in range(2):
        put(signed(key, case(running)), CREATED)
    one = consumer()
    first, second = one.inbox.read(count=2, block_ms=10)
    with suppress(OperationalError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    one._handle(first)
    assert (one.taken, pending()) == (1, (1, 0))
    connection.close()
    nowhere = {"HOST": "/nonexistent", "OPTIONS": {"connect_timeout": 1}}
    settings_dict = connection.settings_dict
    real = {name: settings_dict[name] for name in nowhere}
    back = threading.Timer(0.6, settings_dict.update, [real])
    settings_dict.update(nowhere)
    back.start()
    one._handle(second)
    back.join()
    assert (one.taken, pending()) == (2, (0, 0))
    assert parked() == []


@pytest.mark.django_db
def test_a_parked_message_is_for_its_organizations_operators_and_an_unsigned_one_for_administrators(
    cast: Cast, running: Running, key: str
) -> None:
    one = consumer()
    put(signed(key, case(running) | {"org_id": str(cast.other.id)}), CREATED)
    put({"data": "{}"}, CREATED)
    one.round(block_ms=10)
    ours, unsigned = parked()
    addresses = {row: page("parkedmessage", "act", row.id, "dismiss") for row in (ours, unsigned)}
    for who, may_see, may_act in (
        ("operator", True, True),
        ("auditor", True, False),
        ("stranger", False, False),
        ("nobody", False, False),
        ("anonymous", False, False),
    ):
        client = browser(cast, who)
        shown = client.get(page("parkedmessage", "change", ours.id))
        assert (shown.status_code == 200) == may_see, who
        assert (client.get(addresses[ours]).status_code == 200) == may_act, who
        assert client.get(page("parkedmessage", "change", unsigned.id)).status_code in {302, 403, 404}, who
        assert client.post(addresses[unsigned], REASON).status_code in {302, 403, 404}, who
        listed = client.get(page("parkedmessage", "changelist")).content.decode()
        assert f"{unsigned.id}/change" not in listed
        assert (f"{ours.id}/change" in listed) == may_see
    api = cast.api("orchestrator:read-instances")
    for query, found in (("", 1), ("?why=foreign&status=parked", 1), ("?why=signature", 0), ("?status=taken", 0)):
        assert len(api.get(f"/api/v1/parked-messages{query}").json()["results"]) == found, query
    for query in (f"?event_type={CREATED}&event_id={ours.event_id}", f"?event_id={uuid4()}"):
        listed = api.get(f"/api/v1/parked-messages{query}").json()["results"]
        assert [row["id"] for row in listed] == ([str(ours.id)] if CREATED in query else [])
    with every_tenant():
        assert {row.status for row in ParkedMessage.objects.all()} == {"parked"}
        before = LedgerEntry.objects.count()
    alice = cast.console(cast.operator)
    for address, code in (("redrive", 409), ("dismiss", 302), ("dismiss", 409), ("redrive", 409)):
        act = page("parkedmessage", "act", ours.id, address)
        assert alice.get(act).status_code == 200
        assert alice.post(act, {"note": ""}).status_code == 200  # asks for the reason
        assert alice.post(act, REASON).status_code == code, address
    root = browser(cast, "administrator")
    assert root.post(addresses[unsigned], REASON).status_code == 302
    with every_tenant():
        entries = list(LedgerEntry.objects.order_by("id").values_list("action", "reason_code", "organization"))[before:]
        done = [("workflow.message_dismissed", "planned_maintenance", who) for who in (cast.organization.id, None)]
        assert [entry for entry in entries if entry[0] != "violation.recorded"] == done


@pytest.mark.django_db
def test_a_parked_message_that_its_stream_has_let_go_of_is_gone(
    cast: Cast, running: Running, key: str, settings: Any
) -> None:
    one = consumer()
    put(signed(key, case(running, schema_version="v9")), CREATED)
    one.round(block_ms=10)
    (row,) = parked()
    assert row.problems[0]["pointer"] == "/schema_version"
    act, alice = page("parkedmessage", "act", row.id, "redrive"), cast.console(cast.operator)
    real, settings.REDIS_URL = settings.REDIS_URL, "unix:///nonexistent/holdpoint.sock"
    message_client.cache_clear()
    assert alice.post(act, REASON).status_code == 503
    settings.REDIS_URL = real
    message_client.cache_clear()
    message_client().delete(stream_of(CREATED))
    assert alice.post(act, REASON).status_code == 410
    assert [one.status for one in parked()] == ["parked"]


@pytest.mark.django_db
def test_streams_are_trimmed_by_age_alone_and_gone_consumers_forgotten_unless_they_hold_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client: Any = message_client()
    seconds, _ = client.time()
    elsewhere = STREAM + "an.operation.of.an.attempt"
    client.delete(elsewhere)
    for name in (stream_of(CREATED), elsewhere):
        for days in (9, 8, 6, 0):
            client.xadd(name, {"data": "{}"}, id=f"{seconds * 1000 - days * DAY}-0")
    for number in range(300):
        client.xadd(elsewhere, {"data": str(number)})
    one, _ = consumer("holder"), consumer("gone")
    assert len(one.inbox.read(count=1, block_ms=10)) == 1
    assert consumer("gone").inbox.read(count=9, block_ms=10)
    client.xack(stream_of(CREATED), GROUP, *[id_ for id_, _ in client.xrange(stream_of(CREATED))][1:])
    monkeypatch.setattr(streams, "FORGOTTEN_MS", -1)
    assert streams_tidy(max_age_ms=7 * DAY) == 4
    assert (client.xlen(stream_of(CREATED)), client.xlen(elsewhere)) == (2, 302)
    assert [one["name"] for one in client.xinfo_consumers(stream_of(CREATED), GROUP)] == ["holder"]
    assert streams_tidy(max_age_ms=7 * DAY) == 0
    assert list(one.inbox.claim()) == []
    client.delete(elsewhere)


@pytest.mark.django_db(transaction=True)
def test_an_event_that_its_stream_refuses_is_parked_and_its_run_waits_for_it_while_others_go_on(
    cast: Cast, running: Running
) -> None:
    """Something else lies where the stream should be."""
    client: Any = message_client()
    blocked, free = running.start(), running.start()
    running.answer(blocked)
    running.answer(blocked)
    first, second = STREAM + "consent.check.requested", STREAM + "case.images_check.requested"
    client.delete(first, second)
    client.set(first, "in the way")
    with every_tenant():
        OutboxEvent.objects.filter(instance=free).update(event_type="workflow.started")
        for _ in range(MOST_REFUSALS):
            outbox_relay(at=timezone.now())
            OutboxEvent.objects.filter(status="pending").update(next_try_at=timezone.now())
        outbox_relay(at=timezone.now())
        rows = list(OutboxEvent.objects.filter(instance=blocked).order_by("number"))
        stuck = [row for row in rows if row.status == "parked"]
        assert [row.event_type for row in stuck] == ["consent.check.requested"]
        assert (stuck[0].refusals, stuck[0].last_error) == (MOST_REFUSALS, "refused by the stream: WRONGTYPE")
        behind = [row.status for row in rows if row.number > stuck[0].number]
        assert set(behind) == {"pending"}
        assert set(OutboxEvent.objects.filter(instance=free).values_list("status", flat=True)) == {"sent"}
    act = page("outboxevent", "act", stuck[0].id, "redrive")
    for who, codes in (("auditor", {403}), ("stranger", {404}), ("nobody", {302, 403}), ("anonymous", {302})):
        assert browser(cast, who).post(act, REASON).status_code in codes, who
    alice = Client(raise_request_exception=False)
    alice.force_login(cast.operator)
    assert alice.get(page("outboxevent", "changelist"), {"status": "parked"}).content.count(b"consent.check.req") == 1
    client.delete(first)
    assert alice.post(act, {"note": ""}).status_code == 200
    assert [alice.post(act, REASON).status_code for _ in range(2)] == [302, 409]
    with every_tenant():
        outbox_relay(at=timezone.now())
        assert not OutboxEvent.objects.exclude(status="sent").exists()
        assert LedgerEntry.objects.filter(
            action="workflow.outgoing_redriven", reason_code="planned_maintenance"
        ).count()
    ids = [client.xrange(name)[0][0] for name in (first, second)]
    assert ids == sorted(ids)


@pytest.mark.django_db(transaction=True)
def test_lag_and_what_is_parked_are_measured_and_a_way_in_that_nobody_reads_is_said(
    cast: Cast, running: Running, key: str, settings: Any
) -> None:
    settings.CONSUMER_LIMIT_MESSAGES = 1
    client: Any = message_client()

    def note() -> str:
        return str(Client().get("/health/ready").json()["checks"]["streams"].get("note", ""))

    assert "ever asked" in note()
    one = consumer()
    for _ in range(3):
        put({"data": "{}"}, CREATED)
    assert len(one.inbox.read(count=1, block_ms=10)) == 1
    client.xgroup_create(stream_of(CREATED), "Not A Name", id="0")
    assert "3 messages behind" in note()
    text = Client().get("/metrics").content.decode()
    for line in (
        f'holdpoint_stream_lag{{event_type="{CREATED}",group="{GROUP}"}} 2.0',
        f'holdpoint_stream_pending{{event_type="{CREATED}",group="{GROUP}"}} 1.0',
        f'holdpoint_stream_lag{{event_type="{CREATED}",group="other"}} 3.0',
        "holdpoint_messages_parked 0.0",
        "holdpoint_outbox_parked 0.0",
        "holdpoint_outbox_lag_seconds 0.0",
    ):
        assert line in text, line
    one.round(block_ms=10)
    assert note() == ""
    assert "holdpoint_messages_parked 2.0" in Client().get("/metrics").content.decode()
