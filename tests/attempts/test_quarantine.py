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
from governance.people.models import User
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import CLOCK, SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governed import HOLD, make_policy, open_contract


def quarantined(
    cast: Cast,
    *,
    incident_required: bool = False,
    compensation: str | None = None,
    responsible: User | None = None,
) -> QuarantineCase:
    """Audrey is responsible for the service, so that operators may authorize what it does next."""
    documents = default_documents()
    documents["failure_quarantine"] |= {
        "incident_required": incident_required,
        "compensation_contract": compensation,
        "escalation_after_seconds": 60,
    }
    open_contract(cast, documents=documents)
    caller = cast.api("attempts:create", responsible=responsible or cast.auditor)
    attempt_id = post(caller, body()).json()["id"]
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


@pytest.mark.parametrize("finding", [{}, {"finding": "happened"}])
def test_a_case_is_handed_over_to_its_incident_also_without_a_finding(
    cast: Cast, alice: Any, finding: dict[str, str]
) -> None:
    case = quarantined(cast, incident_required=not finding)
    assert kind(act(alice, case, "hand-over")) == "incident-needed"
    assert act(alice, case, "link-incident", incident_ref="INC-17").status_code == 200
    answer = act(alice, case, "hand-over")
    assert (answer.status_code, answer.json()["resolution"], answer.json()["finding"]) == (200, "incident", "")
    assert answer.json()["blocked_action"] is None
    with every_tenant():
        entry = LedgerEntry.objects.get(action="quarantine.handed_over", subject_id=case.id)
        assert entry.payload["incident_ref"] == "INC-17"
        assert Attempt.objects.get(id=case.attempt_id).state == "failed-quarantined"
        assert Attempt.objects.count() == 1
    assert [act(alice, case, verb, **finding).status_code for verb in ("accept", "hand-over")] == [409, 409]


@pytest.mark.parametrize(("verb", "finding"), [("authorize-retry", "did_not_happen"), ("compensate", "happened")])
def test_whoever_is_responsible_for_the_service_does_not_authorize_what_it_does_next(
    cast: Cast, alice: Any, verb: str, finding: str
) -> None:
    case = quarantined(cast, compensation="undo-case/1", responsible=cast.operator)
    open_contract(cast, slug="undo-case")
    refused = act(alice, case, verb, finding=finding)
    assert (refused.status_code, kind(refused)) == (403, "own-work")
    with every_tenant():
        assert GovernanceViolation.objects.filter(kind="own_work_approved", subject_id=case.id).count() == 1
        case.refresh_from_db()
        assert (case.resolution, case.finding) == ("", "")
        assert Attempt.objects.count() == 1
    found = alice.get(f"/api/v1/quarantine-cases/{case.id}").json()
    assert {one["verb"] for one in found["next_acts"]} == {"accept", "link-incident"}
    assert "You are responsible for the service that asked" in found["not_yet"][0]
    page = cast.console(cast.operator).get(f"/admin/attempts/quarantinecase/{case.id}/change/").content.decode()
    assert (f"act/{verb}/" in page, "act/accept/" in page) == (False, True)
    assert act(cast.session(cast.second_operator), case, verb, finding=finding).status_code == 201


@pytest.mark.parametrize("verb", ["authorize-retry", "compensate", "accept", "link-incident", "hand-over"])
def test_only_an_operator_or_the_escalation_owner_resolves(cast: Cast, verb: str) -> None:
    case = quarantined(cast)
    fields = {"incident_ref": "INC-1"} if verb == "link-incident" else {"finding": "did_not_happen"}
    fields = {} if verb == "hand-over" else fields
    privacy = cast.person("paula", "owner:privacy")
    for person in (cast.auditor, cast.reviewer, privacy):
        answer = act(cast.session(person), case, verb, **fields)
        assert (answer.status_code, kind(answer)) == (403, "not-your-case")
    with every_tenant():
        assert GovernanceViolation.objects.filter(kind="unauthorized_decision", subject_id=case.id).count() == 3
    assert act(cast.session(cast.nobody), case, verb, **fields).status_code == 403
    assert act(cast.session(cast.other_operator), case, verb, **fields).status_code == 404
    assert act(cast.api("attempts:create"), case, verb, **fields).status_code == 403


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


@pytest.fixture
def trudy(cast: Cast) -> Any:
    """A member of the escalation owner's group, and nothing else."""
    return cast.person("trudy", "owner:trust-operations")


def test_the_escalation_owners_group_acts_on_its_cases_by_every_door(cast: Cast, trudy: Any) -> None:
    case = quarantined(cast)
    assert act(cast.session(trudy), case, "link-incident", incident_ref="INC-17").status_code == 200
    page = cast.console(trudy).get(f"/admin/attempts/quarantinecase/{case.id}/change/").content.decode()
    assert "act/authorize-retry/" in page
    assert "act/compensate/" not in page
    act_page = f"/admin/attempts/quarantinecase/{case.id}/act/accept/"
    assert cast.console(trudy).get(act_page).status_code == 200
    address = f"/review/cases/{case.id}"
    shown = cast.console(trudy).get(address).content.decode()
    assert "Accept the outcome" in shown
    assert "INC-17" in shown
    done = cast.console(trudy).post(address, {"verb": "accept", "finding": "happened", "evidence_ref": "log-1"})
    assert done.status_code == 302
    with every_tenant():
        case.refresh_from_db()
        assert (case.resolution, case.finding, case.evidence_ref) == ("accepted", "happened", "log-1")


def test_a_group_has_a_queue_of_its_own_cases(cast: Cast, trudy: Any) -> None:
    case, paula = quarantined(cast), cast.person("paula", "owner:privacy")
    mine, every = "/api/v1/quarantine-cases?mine=true", "/api/v1/quarantine-cases"
    assert [row["id"] for row in cast.session(trudy).get(mine).json()["results"]] == [str(case.id)]
    assert cast.session(paula).get(mine).json()["results"] == []
    assert len(cast.session(paula).get(every).json()["results"]) == 1
    assert cast.api("governance:read").get(mine).json()["results"] == []
    for person, seen in ((trudy, True), (paula, False)):
        assert (f"/review/cases/{case.id}" in cast.console(person).get("/review/cases").content.decode()) is seen
    other = cast.console(cast.other_operator)
    assert f"/review/cases/{case.id}" not in other.get("/review/cases?all").content.decode()
    assert other.get(f"/review/cases/{case.id}").status_code == 404
    assert cast.console(cast.nobody).get("/review/cases").status_code == 403
    listed = cast.console(trudy).get("/admin/attempts/quarantinecase/?mine=yes").content.decode()
    assert "case.close" in listed
    assert "case.close" not in cast.console(paula).get("/admin/attempts/quarantinecase/?mine=yes").content.decode()


def test_a_page_of_somebody_elses_case_has_no_button_and_a_forged_post_is_a_violation(cast: Cast) -> None:
    case, paula = quarantined(cast), cast.person("paula", "owner:privacy")
    address = f"/review/cases/{case.id}"
    page = cast.console(paula).get(address).content.decode()
    assert "belongs to trust-operations" in page
    assert 'name="verb"' not in page
    assert cast.console(paula).post(address, {"verb": "accept", "finding": "happened"}).status_code == 403
    assert cast.console(paula).post(f"/admin/attempts/quarantinecase/{case.id}/act/accept/", {}).status_code == 403
    with every_tenant():
        case.refresh_from_db()
        assert case.resolution == ""
        assert GovernanceViolation.objects.filter(kind="unauthorized_decision", subject_id=case.id).count() == 1


def test_the_workbench_says_what_was_sent_how_to_ask_and_only_what_is_possible(cast: Cast, alice: Any) -> None:
    case = quarantined(cast, incident_required=True, compensation="undo-case/1")
    url = f"/api/v1/quarantine-cases/{case.id}"

    def verbs() -> list[str]:
        return [one["verb"] for one in alice.get(url).json()["next_acts"]]

    shown = alice.get(url).json()
    assert (shown["sent"], shown["came_back"], shown["alike"]) == ([], [], 1)
    assert shown["ask_receiver"] == ["Nothing was sent: there is no dispatch intent, so the action did not happen."]
    assert verbs() == ["link-incident"]
    act(alice, case, "link-incident", incident_ref="INC-17")
    assert verbs() == ["authorize-retry", "accept", "hand-over", "link-incident"]
    assert any("undo-case/1 is not open" in one for one in alice.get(url).json()["not_yet"])
    open_contract(cast, slug="undo-case")
    assert verbs() == ["authorize-retry", "compensate", "accept", "hand-over", "link-incident"]
    assert act(alice, case, "compensate", finding="happened").status_code == 201
    assert verbs() == []


def test_an_incident_system_links_its_incident_and_decides_nothing(cast: Cast) -> None:
    case = quarantined(cast)
    system = cast.api("orchestrator:intervene")
    assert act(system, case, "link-incident", incident_ref="INC-17").json()["incident_ref"] == "INC-17"
    assert act(system, case, "accept", finding="happened").status_code == 403
    assert act(cast.api("governance:read"), case, "link-incident", incident_ref="INC-18").status_code == 403
    other = cast.api("orchestrator:intervene", organization=cast.other)
    assert act(other, case, "link-incident", incident_ref="INC-18").status_code == 404
    with every_tenant():
        entry = LedgerEntry.objects.get(action="quarantine.incident_linked")
        assert (entry.actor_kind, entry.payload["incident_ref"]) == ("service", "INC-17")


def test_causes_that_come_again_are_grouped(cast: Cast, alice: Any) -> None:
    quarantined(cast)
    (cause,) = alice.get("/api/v1/quarantine-cases/causes").json()
    named = {name: cause[name] for name in ("workflow_slug", "operation", "category", "count", "open")}
    assert named == {
        "workflow_slug": "close-case",
        "operation": "case.close",
        "category": "outcome_unknown",
        "count": 1,
        "open": 1,
    }
    assert cast.session(cast.other_operator).get("/api/v1/quarantine-cases/causes").json() == []
    assert cast.session(cast.nobody).get("/api/v1/quarantine-cases/causes").status_code == 403


def test_who_authorizes_a_retry_does_not_review_it(cast: Cast) -> None:
    case = quarantined(cast)
    both = cast.person("bea", "owner:trust-operations", "reviewer:customer_clinician", exception=True)
    make_policy(cast, rules=HOLD, publish=True, slug="standard")
    answer = act(cast.session(both), case, "authorize-retry", finding="did_not_happen")
    assert answer.status_code == 202, answer.content
    review = f"/api/v1/reviews/{answer.json()['review']['id']}"
    digest = answer.json()["action_digest"]
    refused = cast.session(both).post(f"{review}/approve", {"action_digest": digest}, format="json")
    assert refused.status_code == 403
    approved = cast.session(cast.reviewer).post(f"{review}/approve", {"action_digest": digest}, format="json")
    assert approved.status_code == 200, approved.content
