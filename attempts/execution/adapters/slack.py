"""Posts a message to a Slack channel. Its effect is `once`, because Slack does not deduplicate messages."""

import http.client
import socket
from urllib.error import URLError

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from attempts.execution.adapters.base import AdapterCall, Outcome, failure, success, unknown
from attempts.execution.configured import slack_channel, slack_connection

# Errors that prove that nothing was sent. Any other error of the connection may have come after the message.
NOTHING_SENT = (ConnectionRefusedError, socket.gaierror)


class SlackAdapter:
    name = "slack"
    effect = "once"
    retryable: tuple[str, ...] = ()

    def receiver(self, route: str) -> str:
        return "slack"

    def call(self, call: AdapterCall) -> Outcome:
        channel = slack_channel(call.route)
        base_url, token = slack_connection()
        if not channel or not token:
            return failure("target_not_configured")
        # No retry handlers: by default the library repeats a request after a lost connection, and the message could
        # appear twice.
        client = WebClient(token=token, base_url=base_url, timeout=max(1, int(call.seconds)), retry_handlers=[])
        try:
            answer = client.chat_postMessage(channel=channel, text=_slack_text(call))
        except SlackApiError as error:
            return failure("refused", status=int(getattr(error.response, "status_code", 0) or 0))
        except URLError as error:
            return failure("no_connection") if isinstance(error.reason, NOTHING_SENT) else unknown("connection")
        except (OSError, http.client.HTTPException, SlackClientError):
            return unknown("connection")
        return success(status=int(answer.status_code or 200))


def _slack_text(call: AdapterCall) -> str:
    return f"{call.operation} for {call.target_ref} (attempt {call.attempt_id}, payload {call.payload_ref or 'none'})"
