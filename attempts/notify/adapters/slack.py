"""Calls Slack's Web API: one JSON POST through the guarded client, with a limit on time and size."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import httpx

from attempts.notify.rules.delivery import Blame, Delivered, Trouble
from governance.outside.http import AddressRefused, GuardedBackend, guarded_client, url_check

READ_LIMIT_BYTES = 256 * 1024  # an endless answer must not occupy a worker or its memory
# Only what looks like a code is stored as the reason: the answer comes from outside and could contain anything.
ERROR_CODE = re.compile(r"[a-z][a-z0-9_]{0,62}")
# Errors that no later try can fix, by what they stop (docs.slack.dev/reference/methods). Any other error is temporary.
WORKSPACE_ERRORS = frozenset(
    {
        "account_inactive",
        "app_missing_action_url",
        "enterprise_is_restricted",
        "invalid_auth",
        "missing_scope",
        "not_authed",
        "org_login_required",
        "team_access_not_granted",
        "token_expired",
        "token_revoked",
    }
)
ROUTE_ERRORS = frozenset(
    {"channel_not_found", "is_archived", "no_permission", "not_in_channel", "restricted_action", "user_not_in_channel"}
)
MESSAGE_ERRORS = frozenset(
    {"cant_update_message", "edit_window_closed", "expired_trigger_id", "invalid_blocks", "message_not_found"}
)


@dataclass(frozen=True, slots=True)
class SlackConnection:
    base_url: str
    private_hosts: frozenset[str]
    token: str = field(repr=False)  # not in the repr, which may reach a log or a traceback


def slack_call(
    *, connection: SlackConnection, method: str, body: dict[str, Any], seconds: float = 10.0
) -> Delivered | Trouble:
    url = f"{connection.base_url}{method}"
    headers = {"Authorization": f"Bearer {connection.token}", "Content-Type": "application/json; charset=utf-8"}
    backend = GuardedBackend(private_hosts=connection.private_hosts, seconds=seconds)
    try:
        url_check(url, private_hosts=connection.private_hosts)
        with (
            guarded_client(backend) as client,
            client.stream("POST", url, content=json.dumps(body), headers=headers) as got,
        ):
            return _judged(got.status_code, got.headers.get("Retry-After", ""), _read(got))
    except AddressRefused:
        return Trouble("address_refused", pauses=True)
    except httpx.TimeoutException:
        return Trouble("timeout", pauses=True)
    except (httpx.HTTPError, httpx.InvalidURL, OSError):
        return Trouble("no_answer" if backend.sent else "no_connection", pauses=True)


def _read(response: httpx.Response) -> Any:
    found = b""
    for chunk in response.iter_bytes():
        found += chunk
        if len(found) > READ_LIMIT_BYTES:
            return None
    try:
        return json.loads(found)
    except ValueError:
        return None


def _judged(status: int, retry_after: str, answer: Any) -> Delivered | Trouble:
    if status == 429:
        return Trouble("rate_limited", after=float(retry_after) if retry_after.isdecimal() else 30.0, pauses=True)
    if status != 200 or not isinstance(answer, dict):
        return Trouble(f"http_{status}" if status != 200 else "unreadable_answer", pauses=status >= 500)
    if answer.get("ok") is True:
        ref = answer.get("ts")
        return Delivered(ref[:64] if isinstance(ref, str) else "")
    code = answer.get("error")
    why = code if isinstance(code, str) and ERROR_CODE.fullmatch(code) else "unknown_error"
    return Trouble(why, _blame(why), pauses=why in {"ratelimited", "rate_limited"})


def _blame(why: str) -> Blame:
    for errors, blame in (
        (WORKSPACE_ERRORS, Blame.WORKSPACE),
        (ROUTE_ERRORS, Blame.ROUTE),
        (MESSAGE_ERRORS, Blame.MESSAGE),
    ):
        if why in errors:
            return blame
    return Blame.NOBODY
