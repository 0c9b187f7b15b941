"""The approval card, the reminder and the form of a rejection as Slack blocks. Pure.

Text goes out as `plain_text` or escaped: a title must not be able to mention people, link or format.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from attempts.notify.rules.facts import ReviewFacts, age, moment_in_words
from attempts.reviews.states import ReviewStatus

APPROVE, REJECT, OPEN = "holdpoint_approve", "holdpoint_reject", "holdpoint_open"
REJECT_VIEW = "holdpoint_reject_view"
REASON, NOTE = "reason", "note"
MOST_FIELDS = 10  # Slack's limit of a section
MOST_OPTIONS = 100  # Slack's limit of a select
ENDED = {
    ReviewStatus.APPROVED: "Approved",
    ReviewStatus.REJECTED: "Rejected",
    ReviewStatus.CONFIRMED: "Confirmed",
    ReviewStatus.OVERRIDDEN: "Overridden",
    ReviewStatus.DECIDED: "Decided",
    ReviewStatus.EXPIRED: "Expired: nobody decided in time",
    ReviewStatus.CANCELED: "Withdrawn",
}


def plain_text_block(text: str, limit: int = 150) -> dict[str, Any]:
    flat = " ".join(text.split())
    return {"type": "plain_text", "text": flat if len(flat) <= limit else flat[: limit - 1] + "…", "emoji": False}


def entities(text: str) -> str:
    """Escapes Slack's three control characters: without them a text cannot mention or link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped(text: str) -> str:
    """For fields that Slack always formats: also removes the characters that format text."""
    return " ".join(entities(text).translate({ord(mark): " " for mark in "~*_`"}).split())


def card(facts: ReviewFacts, *, now: datetime, value: str) -> dict[str, Any]:
    """The card. `text` is what notifications on a phone show. `value` comes back with a click."""
    return _open_card(facts, now=now, value=value) if facts.open else _ended_card(facts)


def _open_card(facts: ReviewFacts, *, now: datetime, value: str) -> dict[str, Any]:
    lines = [
        f"Tier: {' and '.join(facts.tiers)}",
        f"Risk: {facts.risk}" if facts.risk else "",
        f"Waiting for {age(facts.requested_at, now)}. Deadline: {moment_in_words(facts.expires_at)}",
        f"Approvals: {facts.approvals} of {facts.approvals_required}" if facts.approvals_required > 1 else "",
    ]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": plain_text_block(facts.title.strip() or "A review")},
        {"type": "context", "elements": [plain_text_block(line) for line in lines if line]},
    ]
    blocks += asked_blocks(facts.lines)
    if elements := buttons(facts, value):
        blocks.append({"type": "actions", "elements": elements})
    return {"text": f"Review needed: {escaped(facts.title)}", "blocks": blocks}


def asked_blocks(lines: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """What is asked, line by line. Plain text: Slack formats nothing in it, so a value cannot mention or link."""
    fields = [plain_text_block(f"{label}: {text}", 500) for label, text in lines]
    starts = range(0, len(fields), MOST_FIELDS)
    return [{"type": "section", "fields": fields[start : start + MOST_FIELDS]} for start in starts]


def buttons(facts: ReviewFacts, value: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if facts.decidable_in_chat:
        approve = {
            "type": "button",
            "action_id": APPROVE,
            "text": plain_text_block("Approve"),
            "style": "primary",
            "value": value,
        }
        reject = {
            "type": "button",
            "action_id": REJECT,
            "text": plain_text_block("Reject"),
            "style": "danger",
            "value": value,
        }
        found += [approve, reject]
    if facts.link:
        found.append(
            {"type": "button", "action_id": OPEN, "text": plain_text_block("Open the card"), "url": facts.link}
        )
    return found


def _ended_card(facts: ReviewFacts) -> dict[str, Any]:
    """The card of an ended review: struck through, and without buttons, because a click would only be refused."""
    word = ENDED.get(facts.status, "Ended")
    title = escaped(facts.title)
    struck = {"type": "mrkdwn", "text": f"~{title}~\n{word}."}
    return {"text": f"{word}: {title}", "blocks": [{"type": "section", "text": struck}]}


def reminder(facts: ReviewFacts, *, now: datetime) -> dict[str, Any]:
    return {
        "text": f"Reminder: this review has been waiting for {age(facts.requested_at, now)}."
        f" Deadline: {moment_in_words(facts.expires_at)}. Expiry never approves."
    }


def reject_view(*, value: str, codes: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The form that asks for the reason of a rejection. `codes`: (code, label)."""
    options = [{"text": plain_text_block(label, 75), "value": code} for code, label in codes[:MOST_OPTIONS]]
    reason = {
        "type": "static_select",
        "action_id": REASON,
        "options": options,
        "placeholder": plain_text_block("Choose a reason"),
    }
    note = {"type": "plain_text_input", "action_id": NOTE, "max_length": 280, "multiline": False}
    return {
        "type": "modal",
        "callback_id": REJECT_VIEW,
        "private_metadata": value,
        "title": plain_text_block("Reject", 24),
        "submit": plain_text_block("Reject", 24),
        "close": plain_text_block("Cancel", 24),
        "blocks": [
            {"type": "input", "block_id": REASON, "label": plain_text_block("Reason"), "element": reason},
            {
                "type": "input",
                "block_id": NOTE,
                "optional": True,
                "label": plain_text_block("Note (some reasons require one)"),
                "hint": plain_text_block("Enter no names, patient data or secrets. Holdpoint checks the note."),
                "element": note,
            },
        ],
    }
