"""`/integrations/slack/<workspace>`: callbacks of a Slack app (clicks, forms, the slash command), signed by Slack."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from attempts.notify.configured import public_url
from attempts.notify.errors import CallbackRefused
from attempts.notify.models import ChatWorkspace
from attempts.notify.rules.cards import APPROVE, NOTE, REASON, REJECT, REJECT_VIEW, entities
from attempts.notify.rules.delivery import slack_signature, slack_signature_fits
from attempts.notify.selectors import workspace_for_callback
from attempts.notify.services.chat import callback_take, chat_click, chat_decide, chat_whisper, reject_form_open
from attempts.notify.services.chat_accounts import chat_identity_link
from attempts.notify.services.chat_workspace import signing_secret_of
from attempts.reviews.states import VoteVerdict
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import tenant_scope
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_choices

MOST_BYTES = 256 * 1024  # nobody has signed the body yet when it is read, so its length is limited
NOTHING = HttpResponse
HOW_TO_LINK = "Type `/holdpoint link <code>`. You get the code in Holdpoint: your name, then Notifications."


@method_decorator(csrf_exempt, name="dispatch")
class SlackCallbackView(View):
    """Accepts callbacks. The signature over the raw body is the credential and counts once; cookies do not count."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, workspace_id: UUID) -> HttpResponse:
        workspace = self._signed_by(request, workspace_id)
        form = {name: values[0] for name, values in parse_qs(request.body.decode("utf-8", "replace")).items()}
        with tenant_scope([workspace.organization_id]):
            if "payload" in form:
                return _interaction(workspace, _document(form["payload"]))
            if "command" in form and form.get("team_id") == workspace.team_id:
                return _command(workspace, chat_user=form.get("user_id", ""), text=form.get("text", ""))
        raise CallbackRefused

    @staticmethod
    def _signed_by(request: HttpRequest, workspace_id: UUID) -> ChatWorkspace:
        """The workspace of a callback whose length, signature and timestamp are right, and which is new."""
        # The length before the body is read, and the signature before the body is parsed.
        length = request.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            raise CallbackRefused
        workspace, now = workspace_for_callback(workspace_id=workspace_id), timezone.now()
        secret = signing_secret_of(workspace)
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        fits = slack_signature_fits(
            secret=secret, timestamp=timestamp, signature=signature, body=request.body, now=now.timestamp()
        )
        if workspace is None or not secret or not fits:
            raise CallbackRefused
        # Remembered after the signature was checked: otherwise anybody could fill the table.
        seen = slack_signature(secret=secret, timestamp=timestamp, body=request.body)
        callback_take(signature_sha256=sha256(seen).hexdigest(), at=now)
        return workspace


def _document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CallbackRefused from error
    return found if isinstance(found, dict) else {}


def _at(document: Any, *path: str) -> str:
    """A text in a document from outside; empty if it is missing or of another type."""
    # PostgreSQL refuses the NUL character in text, which would be a server error.
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, str) and "\x00" not in document else ""


def _interaction(workspace: ChatWorkspace, payload: dict[str, Any]) -> HttpResponse:
    if _at(payload, "team", "id") != workspace.team_id:
        raise CallbackRefused
    chat_user, kind = _at(payload, "user", "id"), _at(payload, "type")
    if kind == "view_submission" and _at(payload, "view", "callback_id") == REJECT_VIEW:
        return _rejected(workspace, chat_user, payload)
    actions = payload.get("actions")
    if kind == "block_actions" and isinstance(actions, list) and actions:
        act = ACTS.get(_at(actions[0], "action_id"))
        if act is not None:
            _answered(workspace, chat_user, payload, act, _at(actions[0], "value"))
    return NOTHING()


Act = Callable[[ChatWorkspace, str, dict[str, Any], str], str]


def _answered(workspace: ChatWorkspace, chat_user: str, payload: dict[str, Any], act: Act, value: str) -> None:
    """Acts on a click and tells the person the result. Nobody else in the channel sees it."""
    try:
        words = act(workspace, chat_user, payload, value)
    except DomainError as refusal:
        words = entities(_refusal_in_words(refusal))
    channel = _at(payload, "container", "channel_id") or _at(payload, "channel", "id")
    if words:
        chat_whisper(workspace=workspace, channel=channel, chat_user=chat_user, text=words)


def _approve(workspace: ChatWorkspace, chat_user: str, payload: dict[str, Any], value: str) -> str:
    clicked = chat_click(workspace=workspace, chat_user=chat_user, value=value)
    chat_decide(clicked=clicked, at=timezone.now(), verdict=VoteVerdict.APPROVE)
    return "Your approval is on record."


def _reject(workspace: ChatWorkspace, chat_user: str, payload: dict[str, Any], value: str) -> str:
    """Opens the form that asks for the reason of a rejection. Nothing is decided yet."""
    clicked = chat_click(workspace=workspace, chat_user=chat_user, value=value)
    rows = reason_code_choices(organization_id=clicked.review.organization_id, scope=Scope.DENIAL)
    codes = [(row.code, f"{row.label} (needs a note)" if row.requires_note else row.label) for row in rows]
    opened = reject_form_open(workspace=workspace, trigger_id=_at(payload, "trigger_id"), value=value, codes=codes)
    if opened:
        return ""
    return f"The form did not open, and nothing was decided. Reject on the card: {_link(clicked.review.id)}"


ACTS: dict[str, Act] = {APPROVE: _approve, REJECT: _reject}


def _rejected(workspace: ChatWorkspace, chat_user: str, payload: dict[str, Any]) -> HttpResponse:
    """Rejects with the submitted form. A refusal is shown in the form."""
    values = ("view", "state", "values")
    reason = _at(payload, *values, REASON, REASON, "selected_option", "value")
    note = _at(payload, *values, NOTE, NOTE, "value")
    try:
        clicked = chat_click(workspace=workspace, chat_user=chat_user, value=_at(payload, "view", "private_metadata"))
        chat_decide(clicked=clicked, at=timezone.now(), verdict=VoteVerdict.REJECT, reason_code=reason, note=note)
    except DomainError as refusal:
        return JsonResponse({"response_action": "errors", "errors": {NOTE: _refusal_in_words(refusal)}})
    return JsonResponse({"response_action": "clear"})


def _command(workspace: ChatWorkspace, *, chat_user: str, text: str) -> HttpResponse:
    verb, _, code = text.strip().partition(" ")
    if verb != "link" or not code:
        return _whispered(HOW_TO_LINK)
    try:
        chat_identity_link(workspace=workspace, chat_user=chat_user, code=code.strip()[:40], at=timezone.now())
    except DomainError as refusal:
        return _whispered(entities(_refusal_in_words(refusal)))
    return _whispered("Linked. What you decide here counts as your vote in Holdpoint.")


def _whispered(text: str) -> HttpResponse:
    return JsonResponse({"response_type": "ephemeral", "text": text})


def _refusal_in_words(refusal: DomainError) -> str:
    """The refusal as text with a link. It contains no submitted value, because errors contain none."""
    more = " ".join(error.message for error in refusal.errors)
    advice = " ".join(type(refusal).advice().split())
    words = " ".join(part for part in (refusal.detail, more, advice) if part)
    return f"{words} {_link(refusal.extensions.get('review_id', ''))}"


def _link(review_id: UUID | str) -> str:
    """The URL of the card, or of the queue."""
    home = public_url()
    return f"{home}/review/{review_id}" if home else ""
