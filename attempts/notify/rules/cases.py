"""What a mail or a chat message says about a quarantine case. Nothing in it decides: the link opens the case. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from attempts.notify.rules.cards import OPEN, asked_blocks, plain_text_block
from attempts.notify.rules.facts import moment_in_words
from attempts.notify.states import CaseNoticeKind
from attempts.reviews.rules import AskedAction, asked_lines

# Of a held action these say why it waits for release; a case is past that.
NOT_OF_A_CASE = frozenset({"Why it is held", "Rule"})


@dataclass(frozen=True, slots=True)
class CaseWords:
    kind: CaseNoticeKind
    title: str
    """The title of the contract: text of operators, checked when it was written."""
    category: str
    owner: str
    asked: AskedAction
    opened_at: datetime
    due_at: datetime
    link: str

    @property
    def lines(self) -> list[tuple[str, str]]:
        return [
            ("What happened", self.category.replace("_", " ")),
            *(line for line in asked_lines(self.asked) if line[0] not in NOT_OF_A_CASE),
            ("Escalation owner", self.owner),
            ("Opened", moment_in_words(self.opened_at)),
            ("Due", moment_in_words(self.due_at)),
        ]

    @property
    def head(self) -> str:
        late = self.kind is CaseNoticeKind.ESCALATED
        title = " ".join(self.title.split())[:120]
        return f"Overdue in quarantine: {title}" if late else f"In quarantine: {title}"


ASKS = (
    "The action below failed, or nobody knows whether it happened. It is blocked until a person has found that out and "
    "said what follows."
)


def case_letter(words: CaseWords, *, choices: str) -> tuple[str, str]:
    """Subject and body."""
    lines = "".join(f"  {label}: {' '.join(text.split())}\n" for label, text in words.lines)
    where = f"\n{words.link}\n" if words.link else ""
    foot = f"\nOpening the link decides nothing. Choose which mails you get: {choices}\n" if choices else ""
    return words.head, f"{ASKS}\n\n{lines}{where}{foot}"


def case_card(words: CaseWords) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": plain_text_block(words.head)},
        {"type": "context", "elements": [plain_text_block(ASKS, 300)]},
        *asked_blocks(words.lines),
    ]
    if words.link:
        button = {"type": "button", "action_id": OPEN, "text": plain_text_block("Open the case")}
        blocks.append({"type": "actions", "elements": [button | {"url": words.link}]})
    return {"text": words.head, "blocks": blocks}
