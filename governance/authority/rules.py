"""Which acts need two people, and who can be the second one. One table, shown in the docs, the console and the API.
Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

LIFETIME: Final = timedelta(hours=72)
"""A proposal that nobody confirmed lapses after this time."""
FRESH: Final = timedelta(minutes=10)
"""The second person has proved who they are within this time."""
ENOUGH: Final = 2
"""So many people must be able to confirm for each other; with fewer, an organization is still being founded."""

PROPOSED_FOR: Final = "A service that you answer for, or answered for, proposed this. Another person has to confirm it."


@dataclass(frozen=True, slots=True)
class ActRule:
    """One kind of act that widens authority. `installation`: it reaches beyond one organization, so only people of the
    home organization and administrators of the installation propose and confirm it."""

    kind: str
    title: str
    why: str
    takes_away: str
    """The opposite act, which needs one person and works at once."""
    installation: bool = False


ACTS: Final[dict[str, ActRule]] = {
    rule.kind: rule
    for rule in (
        ActRule("role.give", "Give a role", "A role decides what a person may do.", "take the role"),
        ActRule("person.create", "Create a person", "A new account can be given authority.", "end their access"),
        ActRule("person.reactivate", "Re-activate a person", "Somebody who had left gets back in.", "end their access"),
        ActRule(
            "service_account.create",
            "Create a service account",
            "A service asks in the name of its responsible person.",
            "suspend the account",
        ),
        ActRule(
            "service_account.reinstate",
            "Reinstate a service account",
            "Its live keys work again.",
            "suspend the account",
        ),
        ActRule(
            "service_account.responsible",
            "Name the responsible person of a service account",
            "What the service does counts as theirs, and no longer as somebody else's.",
            "suspend the account",
        ),
        ActRule("api_key.issue", "Issue a key that can write", "Whoever holds the key acts.", "revoke the key"),
        ActRule("policy.publish", "Publish a policy", "It decides every following request.", "archive the policy"),
        ActRule(
            "definition.publish",
            "Publish a workflow definition",
            "It decides what every following run does.",
            "archive the definition",
        ),
        ActRule(
            "module.register",
            "Register a module",
            "Published workflows can call it, and keys that are bound to it can answer steps.",
            "disable the module",
        ),
        ActRule(
            "module.change",
            "Change a module, or release an account from one",
            "It decides where requests go, what they may do, and which events are believed.",
            "disable the module",
        ),
        ActRule("caps.raise", "Raise a cap", "A cap limits what can go wrong at once.", "lower the cap"),
        ActRule(
            "schedule.change",
            "Change the schedule",
            "The clock expires holds, seals the record and checks it.",
            "nothing: the clock cannot be switched off",
            installation=True,
        ),
        ActRule(
            "witness.change",
            "Change the witnesses",
            "Witnesses prove that the record was not cut.",
            "nothing: removing a witness is a change",
            installation=True,
        ),
        ActRule(
            "record.accept",
            "Accept faults of the record",
            "A row is not what the ledger says. Accepting it lets work go on.",
            "nothing: a new fault stops its scope again",
            installation=True,
        ),
        ActRule("sign_in_rules.change", "Change the sign-in rules", "They decide how a person is proven.", "-"),
        ActRule(
            "invitation.show",
            "Show a new invitation",
            "Without mail somebody sees the link, and whoever uses it becomes the person.",
            "withdraw the invitation",
        ),
        ActRule(
            "password_reset.issue",
            "Make a link for a new password",
            "Without mail somebody sees the link, and whoever uses it becomes the person.",
            "reset the sign-in, which ends the link",
        ),
        ActRule(
            "identity_provider.change",
            "Change an identity provider",
            "It says who people are, and which roles they get.",
            "switch the provider off",
        ),
    )
}


def confirm_refusal(
    *,
    proposer: UUID | None,
    confirmer: UUID,
    confirmer_entitled: bool,
    proposer_entitled: bool,
    excluded: Mapping[UUID, str],
) -> str:
    """Why this person cannot be the second one; empty if they can."""
    if confirmer == proposer:
        return "You proposed this. Another person has to confirm it."
    if confirmer in excluded:
        return excluded[confirmer]
    if not confirmer_entitled:
        return "You do not have the right to this act in this organization."
    if not proposer_entitled:
        return "The person who proposed this no longer has the right to it. Somebody else has to propose it again."
    return ""


def is_fresh(authenticated_at: datetime | None, *, at: datetime) -> bool:
    """Whether the person proved who they are a short time ago. A time in the future proves nothing."""
    return authenticated_at is not None and timedelta(0) <= at - authenticated_at <= FRESH
