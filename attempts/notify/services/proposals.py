"""Tells operators of proposed shutdowns: by mail, and in the chat channels of the contract's routes."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.notify.adapters.mail import mail_connection, mail_send
from attempts.notify.adapters.slack import slack_call
from attempts.notify.rules.delivery import Trouble
from attempts.notify.rules.letters import proposal_letter
from attempts.notify.selectors import chat_routes_of, mail_modes
from attempts.notify.services.chat_workspace import connection_of
from attempts.proposals.models import ProposalNotice, ShutdownProposal
from attempts.proposals.selectors import proposals_untold
from governance.people.rules.roles import OPERATOR
from governance.people.selectors.people import people_in_role
from reasoncodes.base.tenancy import every_tenant

# After that the message would only surprise; the console shows the proposal anyway.
TELL_WITHIN = timedelta(days=1)


def proposals_tell(*, now: Callable[[], datetime], base_url: str) -> int:
    """Send what was not sent. Returns how many proposals the operators were told of."""
    with every_tenant():
        waiting = proposals_untold(since=now() - TELL_WITHIN)
        if not waiting:
            return 0
        with mail_connection() as mail:
            return sum(_tell(mail, id_, now, base_url) for id_ in waiting)


def _tell(mail: Any, proposal_id: UUID, now: Callable[[], datetime], base_url: str) -> int:
    with transaction.atomic():
        # SKIP LOCKED: another worker is telling it. If this one dies after a message, it is sent again, never lost.
        rows = ShutdownProposal.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        proposal = (
            rows.select_related("contract", "organization").filter(id=proposal_id, notice=None, answer=None).first()
        )
        if proposal is None:
            return 0
        subject, body = proposal_letter(
            contract=str(proposal.contract),
            organization=proposal.organization.slug,
            cases=proposal.evidence["cases"],
            categories=proposal.evidence["categories"],
            window_seconds=proposal.window_seconds,
            link=f"{base_url}/admin/attempts/shutdownproposal/{proposal.id}/change/" if base_url else "",
        )
        answers = [*_mails(mail, proposal, subject, body), *_chats(proposal, f"*{subject}*\n{body}")]
        # A receiver that is away for a moment is tried again with the next run; one that refuses is not.
        if any(isinstance(one, Trouble) and one.pauses for one in answers):
            return 0
        ProposalNotice(proposal=proposal, sent_at=now()).save(force_insert=True)
    return 1


def _mails(mail: Any, proposal: ShutdownProposal, subject: str, body: str) -> list[Any]:
    people = people_in_role(organization_id=proposal.organization_id, role=OPERATOR)
    wanted = mail_modes(people=people)
    return [mail_send(mail, to=one.email, subject=subject, body=body) for one in people if one.id in wanted]


def _chats(proposal: ShutdownProposal, text: str) -> list[Any]:
    found = []
    for workspace, channel in chat_routes_of(
        organization_id=proposal.organization_id, contract_slug=proposal.contract.slug
    ):
        way = connection_of(workspace)
        message = {"channel": channel, "text": text}
        found.append(
            way if isinstance(way, Trouble) else slack_call(connection=way, method="chat.postMessage", body=message)
        )
    return found
