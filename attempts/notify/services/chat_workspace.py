"""Connects and disables the chat workspaces of an organization, and keeps their secrets sealed: no page shows them."""

import re
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from attempts.notify.adapters.slack import SlackConnection
from attempts.notify.configured import slack_base
from attempts.notify.models import ChatWorkspace
from attempts.notify.rules.delivery import Blame, Trouble
from attempts.notify.services.routes import reason_facts, rows_resume, rows_stop
from attempts.notify.states import RouteState
from governance.boundary.services import text_check
from governance.ledger.services import ledger_append
from governance.outside.secret_box import SecretKeyMissing, SecretUnreadable, seal, unseal
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, NotFound, WrongState

TOKEN, SIGNING = "slack bot token", "slack signing secret"
TEAM = re.compile(r"[TE][A-Z0-9]{2,30}")
PRINTABLE = re.compile(r"[\x21-\x7e]{8,255}")


def workspace_connect(
    *,
    actor: Actor,
    at: datetime,
    organization: Organization,
    name: str,
    team_id: str,
    bot_token: str,
    signing_secret: str,
) -> ChatWorkspace:
    if not actor.may_act_in(organization.id):
        raise NotFound
    text_check(text=name, pointer="/name")
    if not TEAM.fullmatch(team_id):
        raise InvalidInput(errors=[FieldError("/team_id", "is not a Slack workspace's id, such as T024BE7LD")])
    workspace = ChatWorkspace(organization=organization, name=name, team_id=team_id, created_at=at)
    _put_secrets(workspace, bot_token, signing_secret)
    try:
        with transaction.atomic():
            workspace.save(force_insert=True)
            _record(workspace, "chat_workspace.connected", actor=actor, at=at)
    except IntegrityError as error:
        raise AlreadyExists("This workspace is connected already.") from error
    return workspace


def workspace_secrets_replace(
    *, actor: Actor, at: datetime, workspace_id: UUID, bot_token: str, signing_secret: str
) -> ChatWorkspace:
    """Replaces both secrets and activates the workspace."""
    with transaction.atomic():
        workspace = _lock(actor, workspace_id)
        _put_secrets(workspace, bot_token, signing_secret)
        workspace.state, workspace.disabled_reason, workspace.disabled_at = RouteState.ACTIVE.value, "", None
        workspace.save()
        rows_resume(route_ids=_routes(workspace), at=at)
        _record(workspace, "chat_workspace.secrets_replaced", actor=actor, at=at)
    return workspace


def workspace_disable(
    *, actor: Actor, at: datetime, workspace_id: UUID, reason_code: str, note: str = ""
) -> ChatWorkspace:
    """Disables a workspace. From the next callback on nobody can decide through it, and nothing is sent to it."""
    with transaction.atomic():
        workspace = _lock(actor, workspace_id)
        if workspace.state != RouteState.ACTIVE:
            raise WrongState("This workspace is disabled already.")
        facts = reason_facts(organization_id=workspace.organization_id, reason_code=reason_code, note=note)
        _disable(workspace, reason_code, actor=actor, at=at, reason_code=reason_code, **facts)
    return workspace


def workspace_refused(*, actor: Actor, at: datetime, workspace_id: UUID, why: str) -> None:
    """Disables a workspace because Slack refuses its token."""
    with transaction.atomic():
        workspace = _lock(actor, workspace_id)
        # Several messages may report the same refusal; only the first one changes anything.
        if workspace.state == RouteState.ACTIVE:
            _disable(workspace, why, actor=actor, at=at)


def connection_of(workspace: ChatWorkspace) -> SlackConnection | Trouble:
    base_url, private_hosts = slack_base()
    try:
        token = unseal(workspace.bot_token_sealed, purpose=TOKEN)
    except SecretKeyMissing:
        # Tried again, and not the workspace's fault: while SECRET_KEY is being changed, a process that was not
        # restarted yet does not have the new key.
        return Trouble("secret_key_missing")
    except SecretUnreadable:
        return Trouble("secret_unreadable", Blame.WORKSPACE)
    return SlackConnection(base_url, private_hosts, token)


def signing_secret_of(workspace: ChatWorkspace | None) -> str:
    """The signing secret of a workspace."""
    # A fixed one if there is no workspace, so that a signature is computed in any case: the time of the answer must not
    # tell which workspaces exist.
    if workspace is None:
        return "no such workspace"
    try:
        return unseal(workspace.signing_secret_sealed, purpose=SIGNING)
    except SecretUnreadable:
        return ""


def _put_secrets(workspace: ChatWorkspace, bot_token: str, signing_secret: str) -> None:
    given = {"/bot_token": bot_token, "/signing_secret": signing_secret}
    errors = [FieldError(pointer, "is not one of Slack's") for pointer, text in given.items() if not _usable(text)]
    if errors:
        raise InvalidInput(errors=errors)
    workspace.bot_token_sealed = seal(bot_token, purpose=TOKEN)
    workspace.signing_secret_sealed = seal(signing_secret, purpose=SIGNING)


def _usable(text: str) -> bool:
    return PRINTABLE.fullmatch(text) is not None


def _disable(
    workspace: ChatWorkspace, why: str, *, actor: Actor, at: datetime, reason_code: str = "", **more: str
) -> None:
    workspace.state, workspace.disabled_reason, workspace.disabled_at = RouteState.DISABLED.value, why, at
    workspace.save(update_fields=["state", "disabled_reason", "disabled_at"])
    rows_stop(route_ids=_routes(workspace))
    _record(workspace, "chat_workspace.disabled", actor=actor, at=at, reason_code=reason_code, reason=why, **more)


def _routes(workspace: ChatWorkspace) -> list[UUID]:
    return list(workspace.routes.filter(state=RouteState.ACTIVE).values_list("id", flat=True))


def _lock(actor: Actor, workspace_id: UUID) -> ChatWorkspace:
    workspace = tenant_get(ChatWorkspace, workspace_id, lock=True)
    if not actor.may_act_in(workspace.organization_id):
        raise NotFound
    return workspace


def _record(
    workspace: ChatWorkspace, action: str, *, actor: Actor, at: datetime, reason_code: str = "", **more: str
) -> None:
    ledger_append(
        action=action,
        organization_id=workspace.organization_id,
        subject_type="chat_workspace",
        subject_id=workspace.id,
        actor=actor,
        at=at,
        payload={"team": workspace.team_id, **more},
        reason_code=reason_code,
    )
