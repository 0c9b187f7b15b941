"""What a person in the chat is shown at once: a word that only they see, or the form of a rejection. Best effort: the
decision is on record whether or not the words arrive, and the card follows by itself."""

from collections.abc import Sequence
from typing import Any

import structlog

from attempts.models import ChatWorkspace
from attempts.notify.cards import reject_view
from attempts.notify.delivery import Trouble
from attempts.notify.slack import slack_call
from attempts.services.chat_workspace import connection_of

log = structlog.get_logger("holdpoint.chat")
SECONDS = 2.0  # Slack waits three for our answer


def chat_whisper(*, workspace: ChatWorkspace, channel: str, chat_user: str, text: str) -> None:
    _call(workspace, "chat.postEphemeral", {"channel": channel, "user": chat_user, "text": text})


def reject_form_open(
    *, workspace: ChatWorkspace, trigger_id: str, value: str, codes: Sequence[tuple[str, str]]
) -> bool:
    view = reject_view(value=value, codes=codes)
    return _call(workspace, "views.open", {"trigger_id": trigger_id, "view": view})


def _call(workspace: ChatWorkspace, method: str, body: dict[str, Any]) -> bool:
    connection = connection_of(workspace)
    outcome = (
        connection
        if isinstance(connection, Trouble)
        else slack_call(connection=connection, method=method, body=body, seconds=SECONDS)
    )
    if isinstance(outcome, Trouble):
        log.warning("chat_reply_failed", method=method, why=outcome.why, workspace_id=str(workspace.id))
        return False
    return True
