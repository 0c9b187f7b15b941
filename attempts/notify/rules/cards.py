"""The approval card as Slack blocks. Every word of ours or an operator's goes out as plain text: it cannot mention,
link or format."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from attempts.notify.rules.facts import ReviewFacts, age, moment_in_words
from attempts.reviews.states import ReviewStatus

APPROVE, REJECT, OPEN = "holdpoint_approve", "holdpoint_reject", "holdpoint_open"
REJECT_VIEW = "holdpoint_reject_view"
REASON, NOTE = "reason", "note"
MOST_OPTIONS = 100  # Slack's limit of a select
ENDED = {
    ReviewStatus.APPROVED: "Approved",
    ReviewStatus.REJECTED: "Rejected",
    ReviewStatus.CONFIRMED: "Confirmed",
    ReviewStatus.OVERRIDDEN: "Overridden",
    ReviewStatus.EXPIRED: "Expired: nobody decided in time, so it was denied",
    ReviewStatus.CANCELED: "Withdrawn",
}


def _plain_text_block(text: str, limit: int = 150) -> dict[str, Any]:
    flat = " ".join(text.split())
    return {"type": "plain_text", "text": flat if len(flat) <= limit else flat[: limit - 1] + "…", "emoji": False}


def entities(text: str) -> str:
    """Slack's own three characters: without them nothing mentions or links."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped(text: str) -> str:
    """For fields that Slack always formats: also without what would strike or embolden."""
    return " ".join(entities(text).translate({ord(mark): " " for mark in "~*_`"}).split())


def card(facts: ReviewFacts, *, now: datetime, value: str) -> dict[str, Any]:
    """`text` is what a phone's lock screen shows. `value` comes back with a click."""
    return _open_card(facts, now=now, value=value) if facts.open else _ended_card(facts)


def _open_card(facts: ReviewFacts, *, now: datetime, value: str) -> dict[str, Any]:
    lines = [
        f"Tier: {' and '.join(facts.tiers)}",
        f"Risk: {facts.risk}" if facts.risk else "",
        f"Waits for {age(facts.requested_at, now)}, until {moment_in_words(facts.expires_at)}",
        f"Signed: {facts.approvals} of {facts.approvals_required}" if facts.approvals_required > 1 else "",
    ]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain_text_block(facts.title.strip() or "A review")},
        {"type": "context", "elements": [_plain_text_block(line) for line in lines if line]},
    ]
    if elements := buttons(facts, value):
        blocks.append({"type": "actions", "elements": elements})
    return {"text": f"A review waits: {escaped(facts.title)}", "blocks": blocks}


def buttons(facts: ReviewFacts, value: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if facts.decidable_in_chat:
        approve = {
            "type": "button",
            "action_id": APPROVE,
            "text": _plain_text_block("Approve"),
            "style": "primary",
            "value": value,
        }
        reject = {
            "type": "button",
            "action_id": REJECT,
            "text": _plain_text_block("Reject"),
            "style": "danger",
            "value": value,
        }
        found += [approve, reject]
    if facts.link:
        found.append(
            {"type": "button", "action_id": OPEN, "text": _plain_text_block("Open the card"), "url": facts.link}
        )
    return found


def _ended_card(facts: ReviewFacts) -> dict[str, Any]:
    """Struck through, without buttons: nobody clicks on what is over."""
    word = ENDED.get(facts.status, "Ended")
    title = escaped(facts.title)
    struck = {"type": "mrkdwn", "text": f"~{title}~\n{word}."}
    return {"text": f"{word}: {title}", "blocks": [{"type": "section", "text": struck}]}


def reminder(facts: ReviewFacts, *, now: datetime) -> dict[str, Any]:
    return {
        "text": f"Still waiting, for {age(facts.requested_at, now)}. It expires at {moment_in_words(facts.expires_at)},"
        " and expiry denies."
    }


def reject_view(*, value: str, codes: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Asks for what a rejection needs. `codes`: (code, label)."""
    options = [{"text": _plain_text_block(label, 75), "value": code} for code, label in codes[:MOST_OPTIONS]]
    reason = {
        "type": "static_select",
        "action_id": REASON,
        "options": options,
        "placeholder": _plain_text_block("Choose a reason"),
    }
    note = {"type": "plain_text_input", "action_id": NOTE, "max_length": 280, "multiline": False}
    return {
        "type": "modal",
        "callback_id": REJECT_VIEW,
        "private_metadata": value,
        "title": _plain_text_block("Reject", 24),
        "submit": _plain_text_block("Reject", 24),
        "close": _plain_text_block("Cancel", 24),
        "blocks": [
            {"type": "input", "block_id": REASON, "label": _plain_text_block("Reason"), "element": reason},
            {
                "type": "input",
                "block_id": NOTE,
                "optional": True,
                "label": _plain_text_block("Note, where the reason asks for one"),
                "hint": _plain_text_block("No names, no patient data, no secrets: it is checked."),
                "element": note,
            },
        ],
    }
