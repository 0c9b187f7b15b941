"""Proposed shutdowns in the chat: every channel that is told about the contract, once."""

from django.utils import timezone

from attempts.notify.services.proposals import proposals_tell
from attempts.proposals.models import ShutdownProposal
from governance.contracts.models import Contract
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.notify.conftest import Chat
from tests.attempts.notify.stand_in import CHANNEL
from tests.governed import open_contract


def proposed(chat: Chat) -> ShutdownProposal:
    now = timezone.now()
    with every_tenant():
        contract = Contract.objects.order_by("id")[0]
        proposal = ShutdownProposal(
            organization=chat.cast.organization,
            contract=contract,
            after=5,
            window_seconds=600,
            evidence={
                "cases": 6,
                "categories": {"adapter_failure": 4, "outcome_unknown": 2},
                "first": now.isoformat(),
                "last": now.isoformat(),
                "newest": [],
            },
            at=now,
        )
        proposal.save()
        return proposal


def tell() -> int:
    return proposals_tell(now=timezone.now, base_url="https://holdpoint.example")


def test_the_channel_of_the_contracts_route_is_told_what_failed_and_where_to_stop_it(chat: Chat) -> None:
    proposal = proposed(chat)
    assert (tell(), tell()) == (1, 0)
    (message,) = chat.slack.of("chat.postMessage")
    assert message["channel"] == CHANNEL
    for words in (str(proposal.contract), "6 attempts", "4 adapter_failure, 2 outcome_unknown", str(proposal.id)):
        assert words in message["text"]


def test_while_the_chat_is_away_it_is_tried_again(chat: Chat) -> None:
    proposed(chat)
    chat.slack.answers["chat.postMessage"] = [(503, {}, b"")]
    assert (tell(), tell(), tell()) == (0, 1, 0)


def test_channels_of_other_contracts_are_not_told(chat: Chat) -> None:
    elsewhere = open_contract(chat.cast, slug="another-case", policy_slug="another")
    route = chat.route(contract_slug=elsewhere.slug, chat_channel="C0OTHER01")
    proposed(chat)
    assert tell() == 1
    assert route.chat_channel not in [message["channel"] for message in chat.slack.of("chat.postMessage")]
