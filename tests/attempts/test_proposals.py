"""Proposed shutdowns: too many failures of a contract ask operators, who engage the shutdown or dismiss it."""

from datetime import datetime, timedelta

import pytest
from django.core import mail
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from time_machine import travel

from attempts.notify.services.proposals import proposals_tell
from attempts.proposals.models import ShutdownProposal
from attempts.proposals.rules import reached
from attempts.proposals.services import shutdowns_propose
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.tasks import escalate_due_task
from governance.contracts.models import Contract
from governance.contracts.rules.documents import default_documents
from governance.ledger.models import LedgerEntry
from governance.shutdown.models import Shutdown
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.decide.support import problem
from tests.governance.support import in_parallel
from tests.governed import open_contract
from tests.leaves.support import ask

URL = "/api/v1/shutdown-proposals"


def failing(cast: Cast, cases: int, **rules: int) -> Contract:
    """A contract whose attempts just went to quarantine."""
    documents = default_documents()
    documents["throttles_and_misuse"]["shutdown_rules"] |= {"propose_after_quarantined": 2} | rules
    for limit in documents["throttles_and_misuse"]["limits"]:
        limit["limit"] = 10_000
    contract = open_contract(cast, documents=documents)
    fail(cast, *range(1, cases + 1))
    return contract


def fail(cast: Cast, *numbers: int) -> None:
    caller, executor = cast.api("attempts:create"), cast.api("attempts:execute")
    for number in numbers:
        address = f"/api/v1/attempts/{ask(caller, number).json()['id']}"
        token = executor.post(f"{address}/lease", {}, format="json").json()["lease_token"]
        report = {"lease_token": token, "category": "adapter_failure", "retryable": False}
        answer = executor.post(f"{address}/fail", report | {"reason_code": "adapter_failed"}, format="json")
        assert answer.status_code == 200, answer.content


def propose(**later: int) -> int:
    return shutdowns_propose(at=timezone.now() + timedelta(**later))


def only() -> ShutdownProposal:
    with every_tenant():
        return ShutdownProposal.objects.select_related("contract").get()


def actions() -> list[str]:
    with every_tenant():
        rows = LedgerEntry.objects.filter(subject_type="shutdown_proposal").order_by("id")
        return list(rows.values_list("action", flat=True))


@pytest.mark.parametrize(
    ("cases", "rules"),
    [(2, {"propose_after_quarantined": 2}), (5, {"propose_after_quarantined": 5, "propose_window_seconds": 3600})],
    ids=["count", "window"],
)
def test_after_as_many_cases_as_the_contract_says_a_shutdown_is_proposed(
    cast: Cast, cases: int, rules: dict[str, int]
) -> None:
    failing(cast, 0, **rules)
    with travel(timezone.now() - timedelta(minutes=30 if cases == 5 else 0)):
        fail(cast, *range(1, cases))
    assert propose() == 0
    fail(cast, cases)
    assert propose() == 1
    proposal = only()
    assert (proposal.evidence["cases"], proposal.evidence["categories"]) == (cases, {"adapter_failure": cases})
    assert actions() == ["shutdown.proposed"]
    with every_tenant():
        entry = LedgerEntry.objects.get(action="shutdown.proposed")
        assert (entry.actor_kind, entry.at) == ("clock", proposal.at)
        assert proposal.at == QuarantineCase.objects.latest("opened_at").opened_at


def test_the_same_failures_are_proposed_once_and_after_an_answer_only_new_ones_count(cast: Cast) -> None:
    failing(cast, 2)
    assert (propose(), propose()) == (1, 0)
    client = cast.session(cast.operator)
    answer = client.post(f"{URL}/{only().id}/dismiss", {"note": "The receiver is back"}, format="json")
    assert (answer.status_code, answer.json()["state"]) == (200, "dismissed")
    assert propose() == 0
    fail(cast, 11)
    assert propose() == 0
    fail(cast, 12)
    assert propose() == 1
    assert actions() == ["shutdown.proposed", "shutdown.proposal_dismissed", "shutdown.proposed"]


def test_one_button_engages_the_shutdown_and_nothing_is_accepted_any_more(cast: Cast) -> None:
    contract = failing(cast, 2)
    propose()
    console = cast.console(cast.operator)
    page = f"/admin/attempts/shutdownproposal/{only().id}"
    assert b"Proposed shutdowns" in console.get("/admin/").content
    shown = console.get(f"{page}/change/").content.decode()
    assert "2 quarantine cases within 600 seconds" in shown
    assert "2 adapter_failure" in shown
    assert console.get(f"{page}/act/engage/").status_code == 200
    with every_tenant():
        assert not Shutdown.objects.exists()
    assert console.post(f"{page}/act/engage/").status_code == 302
    with every_tenant():
        shutdown = Shutdown.objects.get()
    assert (shutdown.scope, shutdown.target, shutdown.state) == ("contract", str(contract), "engaged")
    assert problem(ask(cast.api("attempts:create"), 21)) == (403, "attempt-creation-disabled")
    assert propose() == 0
    assert console.post(f"{page}/act/engage/").status_code == 409
    assert actions() == ["shutdown.proposed", "shutdown.proposal_engaged"]


def test_operators_are_told_once_by_mail(cast: Cast) -> None:
    failing(cast, 2)
    cast.operator.email = "alice@example.com"
    cast.operator.save(update_fields=["email"])
    assert proposals_tell(now=timezone.now, base_url="https://holdpoint.example") == 0
    propose()
    assert proposals_tell(now=timezone.now, base_url="https://holdpoint.example") == 1
    assert proposals_tell(now=timezone.now, base_url="https://holdpoint.example") == 0
    (letter,) = mail.outbox
    assert (letter.to, letter.subject) == (["alice@example.com"], "Shut down close-case/1?")
    assert f"https://holdpoint.example/admin/attempts/shutdownproposal/{only().id}/change/" in letter.body
    assert "2 adapter_failure" in letter.body


def test_the_clocks_task_proposes_and_tells(cast: Cast) -> None:
    failing(cast, 2)
    cast.operator.email = "alice@example.com"
    cast.operator.save(update_fields=["email"])
    escalate_due_task()
    assert only().evidence["cases"] == 2
    assert [letter.to for letter in mail.outbox] == [["alice@example.com"]]


@pytest.mark.parametrize("verb", ["engage", "dismiss"])
def test_only_operators_of_the_organization_answer(cast: Cast, verb: str) -> None:
    failing(cast, 2)
    propose()
    url = f"{URL}/{only().id}"
    for person in (cast.auditor, cast.reviewer, cast.nobody):
        assert problem(cast.session(person).post(f"{url}/{verb}")) == (403, "scope-missing")
    assert problem(cast.session(cast.other_operator).post(f"{url}/{verb}")) == (404, "not-found")
    assert problem(cast.api("governance:read").post(f"{url}/{verb}")) == (403, "scope-missing")
    assert problem(cast.session(cast.other_operator).get(url)) == (404, "not-found")
    assert cast.session(cast.auditor).get(url).json()["state"] == "open"
    assert len(cast.api("governance:read").get(f"{URL}?open=true").json()["results"]) == 1
    assert (
        cast.console(cast.auditor).post(f"/admin/attempts/shutdownproposal/{only().id}/act/{verb}/").status_code == 403
    )
    assert cast.session(cast.operator).post(f"{url}/{verb}").status_code in {200, 201}
    assert cast.session(cast.operator).post(f"{url}/{verb}").status_code == 409


@pytest.mark.django_db(transaction=True)
def test_two_clocks_at_once_make_one_proposal(cast: Cast) -> None:
    failing(cast, 2)
    assert sorted(in_parallel(*[propose] * 6)) == [0, 0, 0, 0, 0, 1]


START = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


@pytest.mark.unit
@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 5), st.integers(1, 20))
def test_it_is_reached_exactly_when_some_window_holds_enough(seconds: list[int], after: int, window: int) -> None:
    opened = [START + timedelta(seconds=number) for number in sorted(seconds)]
    length = timedelta(seconds=window)
    full = [end for end in opened if sum(end - length <= one <= end for one in opened) >= after]
    assert reached(opened, after=after, window=length) == (full[0] if full else None)
