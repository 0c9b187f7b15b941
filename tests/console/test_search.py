"""One box finds anything by its id, exactly and by an index, and nothing of another organization."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from attempts.intake.models import IdempotencyRecord
from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governance.support import row_counts
from tests.governed import HOLD, open_contract
from tests.workflows.running import Running
from workflows.events.models import OutboxEvent, WorkflowEvent

SEARCH = "/admin/search/"
TRACE = "0af7651916cd43dd8448eb211c80319c"


def change(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


@pytest.fixture
def attempt(cast: Cast) -> Attempt:
    open_contract(cast, rules=HOLD)
    headers = {"HTTP_TRACEPARENT": f"00-{TRACE}-b7ad6b7169203331-01"}
    held = post(cast.api("attempts:create"), body(), key="key-to-find-1", **headers)
    with every_tenant():
        return Attempt.objects.get(id=held.json()["id"])


def test_every_id_of_an_attempt_leads_straight_to_a_page(cast: Cast, attempt: Attempt) -> None:
    console = cast.console(cast.operator)
    with every_tenant():
        review, entry = Review.objects.get(), LedgerEntry.objects.filter(subject_id=attempt.id)[0]
        record = IdempotencyRecord.objects.get()
        decision = EnforcementDecision.objects.get(id=attempt.decision_id)
    wanted = {
        str(attempt.id): attempt,
        f"  {attempt.id}  ": attempt,
        TRACE: attempt,
        f"00-{TRACE}-b7ad6b7169203331-01": attempt,
        "key-to-find-1": attempt,
        str(review.id): review,
        str(entry.id): entry,
        str(record.id): record,
        str(decision.id): decision,
        str(attempt.contract_id): attempt.contract,
        "close-case": attempt.contract,
    }
    for term, row in wanted.items():
        answer = console.get(SEARCH, {"q": term})
        assert (answer.status_code, answer.get("Location")) == (302, change(row)), term


def test_a_run_is_found_by_its_case_its_steps_and_its_events(cast: Cast) -> None:
    running = Running(cast)
    instance = running.start()
    running.answer(instance)
    console = cast.console(cast.operator)
    with every_tenant():
        first = WorkflowEvent.objects.filter(instance=instance).order_by("number")[0]
        step, sent = running.current(instance), OutboxEvent.objects.filter(instance=instance)[0]
        answered = WorkflowEvent.objects.filter(instance=instance, number=2).get()
    assert step is not None
    wanted = {
        str(instance.id): instance,
        str(instance.case_id): instance,
        str(step.id): instance,
        str(first.correlation_id): instance,
        str(first.event_id): first,
        str(answered.event_id): answered,
        str(sent.id): sent,
        instance.definition.slug: None,
    }
    for term, row in wanted.items():
        answer = console.get(SEARCH, {"q": term})
        if row is None:  # the definition and the contract that was made for it
            assert answer.status_code == 200
            assert change(instance.definition) in answer.content.decode()
            assert change(instance.contract) in answer.content.decode()
        else:
            assert (answer.status_code, answer.get("Location")) == (302, change(row)), term


def test_a_stranger_and_a_nobody_find_nothing(cast: Cast, attempt: Attempt) -> None:
    strangers = [cast.console(cast.other_operator), cast.console(cast.nobody)]
    before = row_counts()
    for console in strangers:
        for term in (str(attempt.id), TRACE, "key-to-find-1", "close-case", str(attempt.contract_id)):
            answer = console.get(SEARCH, {"q": term})
            assert answer.status_code == 200
            assert "Nothing that you can see" in answer.content.decode()
    assert Client().get(SEARCH, {"q": str(attempt.id)}).status_code == 302
    assert row_counts() == before


def test_what_a_role_may_not_read_is_not_found_by_it(cast: Cast, attempt: Attempt) -> None:
    with every_tenant():
        entry = LedgerEntry.objects.filter(subject_id=attempt.id)[0]
    found = cast.console(cast.reviewer).get(SEARCH, {"q": str(entry.id)})
    assert (found.status_code, "Nothing that you can see" in found.content.decode()) == (200, True)
    assert cast.console(cast.auditor).get(SEARCH, {"q": str(entry.id)}).status_code == 302


def test_two_attempts_of_one_trace_are_listed(cast: Cast, attempt: Attempt) -> None:
    headers = {"HTTP_TRACEPARENT": f"00-{TRACE}-b7ad6b7169203331-01"}
    payload = body(patient_context_ref="ctx-0002", action={"target_ref": "case-0002"})
    assert post(cast.api("attempts:create"), payload, key="key-to-find-2", **headers).status_code == 202
    listed = cast.console(cast.operator).get(SEARCH, {"q": TRACE}).content.decode()
    with every_tenant():
        rows = list(Attempt.objects.all())
    assert len(rows) == 2
    assert all(change(row) in listed for row in rows)


def test_a_whole_key_of_the_api_is_not_looked_for_and_the_person_is_told(cast: Cast) -> None:
    secret = cast.key("ledger:read")
    console = cast.console(cast.operator)
    shown = console.get(SEARCH, {"q": secret})
    with every_tenant():
        row = ApiKey.objects.get()
    assert "rotate it" in shown.content.decode()
    assert secret.split("_", 2)[2] not in shown.content.decode()
    assert change(row) in shown.content.decode()
    assert console.get(SEARCH, {"q": f"hp_{row.prefix}"})["Location"] == change(row)


def test_nothing_is_searched_without_a_term_and_every_page_has_the_box(cast: Cast, attempt: Attempt) -> None:
    console = cast.console(cast.operator)
    assert "Type or paste" in console.get(SEARCH).content.decode()
    for path in ("/admin/", change(attempt), "/admin/attempts/attempt/", "/admin/start/", SEARCH):
        assert f'action="{SEARCH}"' in console.get(path).content.decode(), path
    assert console.get(SEARCH, {"q": str(uuid4())}).status_code == 200


@pytest.mark.parametrize("term", ["\x00", "'\"; --", "%", "🙂", "a" * 5000, "-1", "null", "../../etc", "hp_"])
def test_whatever_is_typed_is_answered(cast: Cast, term: str) -> None:
    assert cast.console(cast.operator).get(SEARCH, {"q": term}).status_code == 200


def test_the_number_of_queries_does_not_grow_with_what_is_found(cast: Cast, attempt: Attempt) -> None:
    console = cast.console(cast.operator)
    console.get(SEARCH, {"q": str(uuid4())})
    with CaptureQueriesContext(connection) as nothing:
        console.get(SEARCH, {"q": str(uuid4())})
    assert len(nothing.captured_queries) < 75  # one for each kind of page
    for sql in (query["sql"] for query in nothing.captured_queries):
        assert "COUNT(*)" not in sql
        assert "LIKE" not in sql
        assert "UPPER(" not in sql
