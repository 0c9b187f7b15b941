"""Evidence by itself: a bundle when an attempt or a run ends, where the contract says so, and nothing where it does
not."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.utils import timezone

from governance.evidence.models import EvidenceBundle
from governance.evidence.rules.when import wanted_at_end
from governance.evidence.services import at_end
from governance.evidence.services.at_end import AT_END_TASK, evidence_at_end, evidence_sweep
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.evidence.support import build, released_and_done
from tests.governance.ledger.sealing import seal_all
from tests.workflows.run_support import in_status
from tests.workflows.running import Running

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def forgetful() -> None:
    """What a process remembers of contracts ends with the test."""
    at_end._known.clear()


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is sent to workers. The broker is not ours."""
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(
        "celery.current_app.send_task", lambda task, args=(), **_: sent.append((task, args[0] if args else ""))
    )
    return sent


def bundles(subject_id: UUID) -> list[EvidenceBundle]:
    with every_tenant():
        return list(EvidenceBundle.objects.filter(subject_id=subject_id))


def ask(subject_id: UUID) -> bool:
    with every_tenant():
        return evidence_at_end(subject_id=subject_id, at=timezone.now())


def sweep(**later: Any) -> int:
    with every_tenant():
        return evidence_sweep(at=timezone.now() + timedelta(**later))


@pytest.mark.parametrize(
    ("said", "kind", "risk", "wanted"),
    [
        (None, "instance", "", True),
        (None, "attempt", "high", True),
        (None, "attempt", "medium", False),
        ("on_request", "instance", "", False),
        ("on_request", "attempt", "high", False),
        ("at_end", "attempt", "low", True),
    ],
)
def test_the_contract_says_when_evidence_is_made(said: str | None, kind: str, risk: str, wanted: bool) -> None:
    document = {} if said is None else {"evidence": said}
    assert wanted_at_end({"durable_attempt_store": document}, kind=kind, risk_tier=risk) is wanted


def test_a_run_that_ends_gets_its_bundle_once_however_often_it_is_asked_for(cast: Cast, messages: Any) -> None:
    run = in_status(Running(cast), "completed")
    assert (AT_END_TASK, str(run.id)) in messages
    assert ask(run.id)
    assert not ask(run.id), "a second message, or one that comes late, makes nothing"
    (bundle,) = bundles(run.id)
    assert (bundle.actor_kind, bundle.state) == ("system", "requested")
    build(bundle.id)
    seal_all()
    assert build(bundle.id).state == "ready"


def test_a_run_that_goes_on_gets_none(cast: Cast) -> None:
    run = in_status(Running(cast), "halted")
    assert not ask(run.id)
    assert bundles(run.id) == []


def test_an_attempt_of_low_risk_sends_no_message_and_gets_none(cast: Cast, messages: Any) -> None:
    attempt_id = released_and_done(cast)
    assert AT_END_TASK not in {task for task, _ in messages}
    assert not ask(attempt_id)
    assert sweep(minutes=5) == 0
    assert bundles(attempt_id) == []


def test_a_lost_message_is_found_by_the_sweep_and_only_after_its_time(cast: Cast) -> None:
    run = in_status(Running(cast), "completed")
    assert sweep() == 0, "its worker has time yet"
    assert sweep(minutes=5) == 1
    assert sweep(minutes=5) == 0
    assert len(bundles(run.id)) == 1


def test_the_backfill_makes_what_is_missing_up_to_its_limit_and_goes_on_where_it_was(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Running(cast)
    runs = [in_status(running, "completed").id for _ in range(3)]
    call_command("evidence_backfill", limit=2)
    assert sum(len(bundles(one)) for one in runs) == 2
    assert "The limit is reached" in capsys.readouterr().out
    call_command("evidence_backfill", limit=10)
    call_command("evidence_backfill", limit=10)
    assert [len(bundles(one)) for one in runs] == [1, 1, 1]
    assert "Done: 0 bundles requested." in capsys.readouterr().out
