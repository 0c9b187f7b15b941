"""What may follow in a quarantine case now, and how to find out what happened, in words. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from attempts.quarantine.states import InvestigatedOutcome

HAPPENED, DID_NOT = InvestigatedOutcome.HAPPENED.value, InvestigatedOutcome.DID_NOT_HAPPEN.value


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What the next acts depend on. A retry or a compensation is only possible while its contract is open."""

    resolved: bool
    finding: str
    incident_ref: str
    incident_required: bool
    contract_open: bool
    repeatable: bool
    """False: parts of the request were withheld or erased, so it cannot be asked again."""
    compensation: str
    compensation_open: bool
    own: bool = False
    """Whoever looks is responsible for the service that asked: others authorize what it does next."""


@dataclass(frozen=True, slots=True)
class NextAct:
    """`finding`: what the person says with it; empty: they choose, or say nothing."""

    verb: str
    title: str
    explanation: str
    finding: str = ""
    asks_finding: bool = False


def next_acts(facts: CaseFacts) -> list[NextAct]:
    """The acts that can succeed now, by what is known about the case. The services check everything again."""
    if facts.resolved:
        return []
    incident = NextAct(
        "link-incident",
        "Link another incident" if facts.incident_ref else "Link an incident",
        "The case stays open: an incident does not say what follows.",
    )
    if facts.incident_required and not facts.incident_ref:
        return [incident]
    acts = []
    if facts.finding != HAPPENED and facts.contract_open and facts.repeatable and not facts.own:
        acts.append(
            NextAct(
                "authorize-retry",
                "It did not happen: authorize a retry",
                "A new attempt of the same action goes through all checks, and the receiver gets the same key. "
                "You cannot review it yourself. This attempt stays failed.",
                DID_NOT,
            )
        )
    if facts.finding != DID_NOT and facts.compensation and facts.compensation_open and not facts.own:
        acts.append(
            NextAct(
                "compensate",
                "It happened: compensate it",
                f"A new attempt goes through all checks of {facts.compensation}. You cannot review it yourself.",
                HAPPENED,
            )
        )
    accept = "The outcome stays as you found it, and nothing more happens. The case is resolved."
    acts.append(NextAct("accept", "Accept the outcome", accept, asks_finding=not facts.finding))
    if facts.incident_ref:
        acts.append(
            NextAct(
                "hand-over",
                f"Hand over to {facts.incident_ref}",
                "The incident decides what follows, outside Holdpoint. The case is resolved, also if nobody knows yet "
                "what happened. This attempt stays failed, and nothing is sent again.",
            )
        )
    return [*acts, incident]


def not_yet(facts: CaseFacts) -> list[str]:
    """What has to be done before further acts are possible."""
    if facts.resolved:
        return []
    found = []
    if facts.incident_required and not facts.incident_ref:
        found.append("The contract asks for an incident first. Until one is linked, the case cannot be resolved.")
    if facts.own:
        found.append(
            "You are responsible for the service that asked: somebody else authorizes a retry or a compensation."
        )
    if not facts.contract_open:
        found.append("The contract is not open, so no retry can be authorized.")
    if not facts.repeatable:
        found.append("Parts of the request are not on record, so it cannot be asked again.")
    if facts.compensation and not facts.compensation_open:
        found.append(f"The compensation contract {facts.compensation} is not open.")
    if not facts.compensation and facts.finding != DID_NOT:
        found.append("The contract names no compensation. What happened can only be accepted.")
    return found


def how_to_ask(*, connector: str, target_ref: str, keys: Sequence[str], executors: Sequence[str]) -> list[str]:
    """How to find out from the receiver whether the effect happened. `keys`: the effect keys that were sent."""
    if not keys:
        return ["Nothing was sent: there is no dispatch intent, so the action did not happen."]
    named = " or ".join(dict.fromkeys(keys))
    about = f" about {target_ref}" if target_ref else ""
    if connector == "external":
        who = " and ".join(dict.fromkeys(executors)) or "the executor"
        return [f"Ask the executor ({who}) what became of the work{about}. Its lease had the key {named}."]
    return [
        f"Ask the receiver behind the connector {connector}{about}: did a request with the Idempotency-Key {named} "
        "take effect? It got this key with every call.",
        "If the receiver cannot tell, look at the target itself, and note where you looked as evidence.",
    ]
