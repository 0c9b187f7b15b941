"""Proposes the shutdown of a contract after too many quarantine cases, by its `shutdown_rules`, and takes the
operators' answer. The clock only asks; a person engages the shutdown."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from attempts.proposals.models import ProposalAnswer, ShutdownProposal
from attempts.proposals.rules import reached
from attempts.proposals.selectors import cases_since, contracts_failing
from attempts.proposals.states import ProposalVerdict
from governance.boundary.services import note_create
from governance.contracts.models import Contract
from governance.enforcement.models import snapshot_load
from governance.enforcement.selectors import intake_facts
from governance.ledger.services import actor_reference, ledger_append
from governance.shutdown.models import Shutdown
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import CLOCK, Actor
from reasoncodes.base.errors import NotFound, WrongState
from reasoncodes.base.tenancy import every_tenant

# The clock looks every half a minute; after an outage it finds what failed since.
LOOKS_BACK = timedelta(hours=1)
NAMED = 20
REASON = "operator_shutdown"


def shutdowns_propose(*, at: datetime) -> int:
    """Proposes what the contracts' rules ask for, and returns how many proposals there are now that were not before."""
    with every_tenant():
        return sum(_propose(contract_id, at) for contract_id in contracts_failing(since=at - LOOKS_BACK))


def _propose(contract_id: UUID, at: datetime) -> bool:
    with transaction.atomic():
        # One at a time per contract: two clocks at once would both find no open proposal.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"propose {contract_id}"])
        contract = Contract.objects.select_related("organization").get(id=contract_id)
        latest = ShutdownProposal.objects.filter(contract=contract).select_related("answer").first()
        if (latest is not None and not hasattr(latest, "answer")) or not _takes_work(contract):
            return False
        rules = snapshot_load(contract.snapshot_sha256)["documents"]["throttles_and_misuse"]["shutdown_rules"]
        after, window = rules["propose_after_quarantined"], timedelta(seconds=rules["propose_window_seconds"])
        # What was answered does not count again: the same failures would be proposed again and again.
        answered = latest.answer.at if latest is not None else None
        cases = cases_since(contract_id=contract.id, since=at - LOOKS_BACK - window, after=answered)
        moment = reached([opened for _, opened, _ in cases], after=after, window=window)
        if moment is None:
            return False
        counted = [case for case in cases if moment - window <= case[1]]
        proposal = ShutdownProposal(
            organization_id=contract.organization_id,
            contract=contract,
            after=after,
            window_seconds=rules["propose_window_seconds"],
            evidence=_evidence(counted),
            at=moment,
        )
        proposal.save(force_insert=True)
        _record(proposal, "shutdown.proposed", actor=CLOCK, at=moment, cases=len(counted), after=after)
    return True


def _takes_work(contract: Contract) -> bool:
    """Whether there is anything to stop: a contract that is closed or shut down already is not proposed."""
    facts = intake_facts(organization=contract.organization, slug=contract.slug, version=str(contract.version))
    return facts is not None and not facts.closed_by


def _evidence(cases: list[tuple[UUID, datetime, str]]) -> dict[str, Any]:
    return {
        "cases": len(cases),
        "categories": dict(sorted(Counter(category for _, _, category in cases).items())),
        "first": cases[0][1].isoformat(),
        "last": cases[-1][1].isoformat(),
        "newest": [str(id_) for id_, _, _ in cases[-NAMED:]],
    }


def proposal_engage(*, actor: Actor, at: datetime, proposal_id: UUID) -> Shutdown:
    """Engages the shutdown of the contract's version, with the evidence as its note."""
    with transaction.atomic():
        proposal = _open(actor, proposal_id)
        found = proposal.evidence
        shutdown = shutdown_engage(
            actor=actor,
            at=at,
            scope=ShutdownScope.CONTRACT,
            organization_id=proposal.organization_id,
            target=str(proposal.contract),
            reason_code=REASON,
            note=f"As proposed: {found['cases']} quarantine cases within {proposal.window_seconds} seconds.",
        )
        _answer(proposal, ProposalVerdict.ENGAGED, actor=actor, at=at, shutdown=shutdown)
    return shutdown


def proposal_dismiss(*, actor: Actor, at: datetime, proposal_id: UUID, note: str = "") -> ShutdownProposal:
    """Says that the contract goes on. Only failures from now on lead to another proposal."""
    with transaction.atomic():
        proposal = _open(actor, proposal_id)
        _answer(proposal, ProposalVerdict.DISMISSED, actor=actor, at=at, note=note)
    return proposal


def _open(actor: Actor, proposal_id: UUID) -> ShutdownProposal:
    proposal = tenant_get(ShutdownProposal, proposal_id)
    if not actor.may_act_in(proposal.organization_id):
        raise NotFound
    if ProposalAnswer.objects.filter(proposal=proposal).exists():
        raise WrongState("This proposal was answered already.")
    return proposal


def _answer(
    proposal: ShutdownProposal,
    verdict: ProposalVerdict,
    *,
    actor: Actor,
    at: datetime,
    shutdown: Shutdown | None = None,
    note: str = "",
) -> None:
    stored = note_create(organization_id=proposal.organization_id, text=note)
    try:
        with transaction.atomic():
            ProposalAnswer(
                proposal=proposal,
                verdict=verdict.value,
                shutdown=shutdown,
                by_kind=actor.kind.value,
                by_ref=actor_reference(actor),
                note=stored,
                at=at,
            ).save(force_insert=True)
    except IntegrityError as error:
        # Two operators at once: the unique constraint decides, and the second one's shutdown is rolled back with this.
        raise WrongState("This proposal was answered already.") from error
    said = {"shutdown": str(shutdown.id)} if shutdown else {}
    _record(proposal, f"shutdown.proposal_{verdict.value}", actor=actor, at=at, **said)


def _record(proposal: ShutdownProposal, action: str, *, actor: Actor, at: datetime, **facts: Any) -> None:
    ledger_append(
        action=action,
        organization_id=proposal.organization_id,
        subject_type="shutdown_proposal",
        subject_id=proposal.id,
        actor=actor,
        at=at,
        payload={"contract": str(proposal.contract), "window_seconds": proposal.window_seconds, **facts},
    )
