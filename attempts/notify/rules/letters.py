"""Subject and text of the mails. A link opens the card after sign-in; nothing in a mail decides. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from attempts.notify.rules.facts import ReviewFacts, age, moment_in_words
from attempts.notify.states import NotifyKind
from attempts.reviews.states import ReviewKind

OTHERWISE = {
    ReviewKind.RELEASE: "the action is denied",
    ReviewKind.HUMAN_REVIEW: "the workflow continues without a judgement, or stops",
    ReviewKind.HUMAN_TASK: "the workflow goes on as its definition says for that, or stops",
}
ESCALATED = (
    "You get this mail as an operator: nobody has claimed the review, or too few reviewers are left who may decide.\n"
)
FOOT = "\nOpening the link decides nothing. Choose which mails you get: {choices}\n"


def letter(facts: Sequence[ReviewFacts], *, kind: NotifyKind, now: datetime, choices: str) -> tuple[str, str]:
    """Subject and body. Several reviews make a digest."""
    foot = FOOT.format(choices=choices) if choices else ""
    if len(facts) > 1:
        body = "\n".join(_lines(one, now=now) for one in facts)
        return f"{len(facts)} reviews wait for you", f"{len(facts)} reviews wait for a decision.\n\n{body}{foot}"
    (one,) = facts
    until = moment_in_words(one.expires_at)
    if kind is NotifyKind.MAIL:
        return (
            f"Review needed: {_one_line(one.title)}",
            f"A review waits for a decision.\n\n{_lines(one, now=now)}{foot}",
        )
    why = ESCALATED if kind is NotifyKind.ESCALATION else ""
    return f"Reminder: a review expires at {until}", f"{_deadline(one)}\n{_lines(one, now=now)}{why}{foot}"


def key_end_letter(*, key: str, account: str, organization: str, ends: datetime, link: str) -> tuple[str, str]:
    """Subject and body of the notice that an API key ends."""
    until = moment_in_words(ends)
    where = f"\n{link}\n" if link else ""
    return (
        f"An API key ends at {until}",
        f"The API key {key} of the service account {account} ({organization}) ends at {until}.\n"
        "From then on every request with it is refused.\n\n"
        "Rotate it in the console: the successor is valid for a year, and both work during the overlap.\n"
        f"If nobody uses it any more, let it end.\n{where}",
    )


def holds_letter(*, organization: str, count: int, cap: int, oldest: datetime | None, link: str) -> tuple[str, str]:
    """Subject and body of the warning that open holds have nearly reached their cap."""
    since = f", the oldest since {moment_in_words(oldest)}" if oldest else ""
    where = f"\n{link}\n" if link else ""
    return (
        f"{count} of {cap} open holds in {organization}",
        f"{count} requests of {organization} wait for people{since}. At {cap} (max_open_holds) further requests that"
        " need a person are refused.\nWhat runs is not affected.\n\nDecide some of them, or let two operators raise"
        f" max_open_holds.\n{where}",
    )


def proposal_letter(
    *, contract: str, organization: str, cases: int, categories: Mapping[str, int], window_seconds: int, link: str
) -> tuple[str, str]:
    """Subject and body of the message that a shutdown is proposed."""
    told = ", ".join(f"{number} {name}" for name, number in categories.items())
    where = f"\n{link}\n" if link else ""
    return (
        f"Shut down {contract}?",
        f"{cases} attempts of the contract {contract} ({organization}) went to quarantine within {window_seconds}"
        f" seconds: {told}.\nBy its rules operators are asked whether to shut it down. Until one of them does, it goes"
        f" on.\n{where}",
    )


def _one_line(text: str) -> str:
    # A line break in a subject would be a second header.
    return " ".join(text.split())[:150]


def _deadline(facts: ReviewFacts) -> str:
    tiers, until = " and ".join(facts.tiers), moment_in_words(facts.expires_at)
    return (
        f"A review of the tier {tiers} waits for a decision until {until}.\n"
        f"After that it expires, and {OTHERWISE[facts.kind]}.\n"
    )


def _asked(facts: ReviewFacts) -> str:
    return "".join(f"  {label}: {' '.join(text.split())}\n" for label, text in facts.lines)


def _lines(facts: ReviewFacts, *, now: datetime) -> str:
    risk = f", {facts.risk} risk" if facts.risk else ""
    where = facts.link or f"Review {facts.review_id} in Holdpoint's queue"
    return (
        f"{_one_line(facts.title)}\n"
        f"{_asked(facts)}"
        f"  Tier {' and '.join(facts.tiers)}{risk}, waiting for {age(facts.requested_at, now)},"
        f" deadline: {moment_in_words(facts.expires_at)}\n"
        f"  {where}\n"
    )
