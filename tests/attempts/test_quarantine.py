"""Quarantine: only a person says what happened, and only then something may follow."""

from typing import Any

import pytest
from django.utils import timezone

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.transition import transition_apply
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.services.resolve import quarantine_escalate_due
from governance.contracts.rules.documents import default_documents
from governance.ledger.models import LedgerEntry
from reasoncodes.base.actors import CLOCK, SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import open_contract


def quarantined(cast: Cast, *, incident_required: bool = False, compensation: str | None = None) -> QuarantineCase:
    documents = default_documents()
    documents["failure_quarantine"] |= {
        "incident_required": incident_required,
        "compensation_contract": compensation,
        "escalation_after_seconds": 60,
    }
    open_contract(cast, documents=documents)
    attempt_id = post(cast.api("attempts:create"), body()).json()["id"]
    with every_tenant():
        attempt = Attempt.objects.get(id=attempt_id)
        transition_apply(attempt, "quarantine", actor=SYSTEM, at=timezone.now(), reason_code="outcome_unknown")
        return QuarantineCase.objects.create(
            organization=cast.organization,
            attempt=attempt,
            category="outcome_unknown",
            reason_code="outcome_unknown",
            escalation_owner="trust-operations",
            escalate_at=timezone.now(),
            opened_at=timezone.now(),
        )


def act(client: Any, case: QuarantineCase, verb: str, **fields: Any) -> Any:
    return client.post(f"/api/v1/quarantine-cases/{case.id}/{verb}", fields, format="json")


def kind(answer: Any) -> str:
    return str(answer.json()["type"]).rsplit("/", 1)[1]


@pytest.fixture
def alice(cast: Cast) -> Any:
    return cast.session(cast.operator)


def test_without_a_finding_nothing_follows(cast: Cast, alice: Any) -> None:
    case = quarantined(cast)
    for verb in ("authorize-retry", "accept"):
        answer = act(alice, case, verb)
        assert (answer.status_code, kind(answer)) == (409, "finding-needed")


def test_a_retry_needs_the_finding_that_it_did_not_happen(cast: Cast, alice: Any) -> None:
    case = quarantined(cast)
    assert kind(act(alice, case, "authorize-retry", finding="happened")) == "finding-needed"
    answer = act(alice, case, "authorize-retry", finding="did_not_happen", evidence_ref="log-1")
    assert answer.status_code == 201, answer.content
    with every_tenant():
        case.refresh_from_db()
        again = Attempt.objects.get(id=answer.json()["id"])
        assert again.retry_of_id == case.attempt_id
        assert Attempt.objects.get(id=case.attempt_id).state == "failed-quarantined"
        assert (case.resolution, case.follow_up_id) == ("retry_authorized", again.id)
        actions = LedgerEntry.objects.filter(subject_id=case.id).order_by("id").values_list("action", flat=True)
        assert list(actions)[-2:] == ["quarantine.found", "quarantine.retry_authorized"]
    assert act(alice, case, "accept", finding="happened").status_code == 409


def test_compensation_needs_a_contract_that_is_named_and_open(cast: Cast, alice: Any) -> None:
    case = quarantined(cast, compensation="undo-case/1")
    assert act(alice, case, "compensate", finding="happened").status_code == 403
    open_contract(cast, slug="undo-case")
    answer = act(alice, case, "compensate", finding="happened")
    assert answer.status_code == 201, answer.content
    with every_tenant():
        made = Attempt.objects.get(id=answer.json()["id"])
        assert made.compensates_id == case.attempt_id
        assert made.operation == "compensate.case.close"


def test_an_incident_is_linked_first_where_the_contract_demands_it(cast: Cast, alice: Any) -> None:
    case = quarantined(cast, incident_required=True)
    assert kind(act(alice, case, "accept", finding="happened")) == "incident-needed"
    assert act(alice, case, "link-incident", incident_ref="INC-17").status_code == 200
    answer = act(alice, case, "accept", finding="happened")
    assert (answer.status_code, answer.json()["resolution"]) == (200, "accepted")


@pytest.mark.parametrize("verb", ["authorize-retry", "compensate", "accept", "link-incident"])
def test_only_an_operator_of_the_organization_resolves(cast: Cast, verb: str) -> None:
    case = quarantined(cast)
    fields = {"incident_ref": "INC-1"} if verb == "link-incident" else {"finding": "did_not_happen"}
    for person in (cast.auditor, cast.reviewer, cast.nobody):
        assert act(cast.session(person), case, verb, **fields).status_code == 403
    assert act(cast.session(cast.other_operator), case, verb, **fields).status_code == 404
    assert act(cast.api(), case, verb, **fields).status_code == 403


def test_the_clock_escalates_and_never_resolves(cast: Cast) -> None:
    case = quarantined(cast)
    assert quarantine_escalate_due(at=timezone.now()) == 1
    assert quarantine_escalate_due(at=timezone.now()) == 0
    with every_tenant():
        case.refresh_from_db()
        assert (case.resolution, case.escalated_at is not None) == ("", True)
        entry = LedgerEntry.objects.get(action="quarantine.escalated")
        assert (entry.actor_kind, entry.at) == (CLOCK.kind.value, case.escalate_at)


PAGES = [
    "/admin/attempts/attempt/",
    "/admin/attempts/review/",
    "/admin/attempts/quarantinecase/",
    "/admin/attempts/idempotencyrecord/",
]


def test_the_console_shows_the_case_and_its_attempt_to_its_own_people(cast: Cast) -> None:
    case = quarantined(cast)
    pages = [
        *PAGES,
        f"/admin/attempts/quarantinecase/{case.id}/change/",
        f"/admin/attempts/attempt/{case.attempt_id}/change/",
    ]
    for person in (cast.operator, cast.auditor):
        for page in pages:
            assert cast.console(person).get(page).status_code == 200, page
    stranger = cast.console(cast.other_operator)
    assert str(case.attempt_id) not in stranger.get(PAGES[0]).content.decode()
    assert stranger.get(pages[-1]).status_code in {302, 404}


def test_the_console_resolves_by_a_posted_form_and_never_by_get(cast: Cast) -> None:
    case = quarantined(cast)
    url = f"/admin/attempts/quarantinecase/{case.id}/act/accept/"
    assert cast.console(cast.operator).get(url).status_code == 200
    assert cast.console(cast.auditor).post(url, {"finding": "happened"}).status_code == 403
    with every_tenant():
        case.refresh_from_db()
        assert case.resolution == ""
    assert cast.console(cast.operator).post(url, {"finding": "happened", "evidence_ref": ""}).status_code == 302
    with every_tenant():
        case.refresh_from_db()
        assert case.resolution == "accepted"
