"""Posts a message to a Slack channel. Its effect is `once`, because Slack does not deduplicate messages."""

import json

import httpx

from attempts.execution.adapters.base import AdapterCall, Outcome, failure, success, unknown
from attempts.execution.configured import slack_channel, slack_connection, slack_private_hosts
from governance.outside.http import AddressRefused, GuardedBackend, guarded_client, url_check

READ_LIMIT_BYTES = 64 * 1024  # an answer without end must not occupy a worker


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
        url, private = f"{base_url}chat.postMessage", slack_private_hosts()
        # Not Slack's library: its limit is for single reads, and it has none for looking the name up.
        backend = GuardedBackend(private_hosts=private, seconds=call.seconds)
        try:
            url_check(url, private_hosts=private)
            with guarded_client(backend) as client:
                return _posted(client, url, token, {"channel": channel, "text": _slack_text(call)})
        except AddressRefused:
            return failure("address_refused")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            why = "timeout" if isinstance(error, httpx.TimeoutException) else "connection"
            return unknown(why) if backend.sent else failure("no_connection")


def _posted(client: httpx.Client, url: str, token: str, body: dict[str, str]) -> Outcome:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json; charset=utf-8"}
    with client.stream("POST", url, content=json.dumps(body), headers=headers) as response:
        read = b""
        for chunk in response.iter_bytes():
            read += chunk
            if len(read) > READ_LIMIT_BYTES:
                return unknown("connection")
    return _slack_outcome(response.status_code, read)


def _slack_outcome(status: int, read: bytes) -> Outcome:
    """Slack says `ok` in the body; a refusal proves that nothing was posted. Anything else may have come after the
    message."""
    try:
        answer = json.loads(read)
    except ValueError:
        answer = None
    ok = answer.get("ok") if isinstance(answer, dict) else None
    if ok is True and status == 200:
        return success(status=status)
    refused = ok is False or status == 429 or 300 <= status < 500
    return failure("refused", status=status) if refused else unknown("connection")


def _slack_text(call: AdapterCall) -> str:
    return f"{call.operation} for {call.target_ref} (attempt {call.attempt_id}, payload {call.payload_ref or 'none'})"
