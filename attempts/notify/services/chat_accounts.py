"""Which chat account is whose: a signed-in person gets a code, types it in the chat, and the chat's signature proves
the account. Nobody can link for somebody else: the code must leave the one and the signature the other."""

import re
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import choice
from uuid import UUID

from django.db import IntegrityError, transaction

from attempts.notify.errors import ChatAccountTaken, LinkCodeRefused
from attempts.notify.models import ChatCallback, ChatIdentity, ChatLinkCode, ChatWorkspace, MailChoice
from attempts.notify.selectors import workspace_get
from attempts.notify.services.routes import reason_facts
from attempts.notify.states import MailMode
from governance.ledger.services import ledger_append
from governance.people.models import User
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import CLOCK, Actor, ActorKind
from reasoncodes.base.errors import NotFound
from reasoncodes.base.tenancy import every_tenant

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 12  # 60 bits, for ten minutes
VALID = timedelta(minutes=10)
CHAT_USER = re.compile(r"[UW][A-Z0-9]{2,30}")
SEEN = timedelta(minutes=15)


def link_code_issue(*, user: User, at: datetime, workspace_id: UUID) -> str:
    """The code in clear, this once. A new one takes the place of the old one."""
    workspace = workspace_get(workspace_id=workspace_id)
    code = "".join(choice(ALPHABET) for _ in range(LENGTH))
    ChatLinkCode.objects.update_or_create(
        workspace=workspace, user=user, defaults={"sha256": _hash(code), "expires_at": at + VALID}
    )
    return f"{code[:6]}-{code[6:]}"


def chat_identity_link(*, workspace: ChatWorkspace, chat_user: str, code: str, at: datetime) -> ChatIdentity:
    """By a signed word of the chat: `chat_user` typed this code. Used once, whatever comes of it."""
    if not CHAT_USER.fullmatch(chat_user):
        raise LinkCodeRefused
    with transaction.atomic():
        rows = ChatLinkCode.objects.select_for_update(of=("self",)).select_related("user")
        found = rows.filter(workspace=workspace, sha256=_hash(code)).first()
        usable = found is not None and found.expires_at > at and found.user.is_active
        if found is not None:
            found.delete()
    if found is None or not usable:
        raise LinkCodeRefused
    return _link(workspace, found.user, chat_user, at)


def _link(workspace: ChatWorkspace, user: User, chat_user: str, at: datetime) -> ChatIdentity:
    """In place of the account that the person had before; somebody else's account stays theirs."""
    actor = Actor(ActorKind.PERSON, user.id, frozenset({workspace.organization_id}))
    try:
        with transaction.atomic():
            for old in ChatIdentity.objects.select_for_update(of=("self",)).filter(workspace=workspace, user=user):
                _unlink(old, actor=actor, at=at)
            identity = ChatIdentity(workspace=workspace, user=user, chat_user=chat_user, linked_at=at)
            identity.save(force_insert=True)
            _record(identity, "chat_identity.linked", actor=actor, at=at)
    except IntegrityError as error:
        raise ChatAccountTaken from error
    return identity


def chat_identity_unlink_own(*, actor: Actor, at: datetime, identity_id: UUID) -> None:
    """One's own; somebody else's does not exist."""
    with transaction.atomic():
        identity = tenant_get(ChatIdentity, identity_id, lock=True)
        if identity.user_id != actor.id:
            raise NotFound
        _unlink(identity, actor=actor, at=at)


def chat_identity_unlink(*, actor: Actor, at: datetime, identity_id: UUID, reason_code: str, note: str = "") -> None:
    """By an operator, with a reason."""
    with transaction.atomic():
        identity = tenant_get(ChatIdentity, identity_id, lock=True)
        organization_id = identity.workspace.organization_id
        if not actor.may_act_in(organization_id):
            raise NotFound
        facts = reason_facts(organization_id=organization_id, reason_code=reason_code, note=note)
        _unlink(identity, actor=actor, at=at, reason_code=reason_code, **facts)


def chat_tidy(*, at: datetime) -> None:
    """By the clock: codes and callbacks that are over, and accounts of people whose access ended."""
    with every_tenant():
        ChatCallback.objects.filter(received_at__lt=at - SEEN).delete()
        ChatLinkCode.objects.filter(expires_at__lt=at).delete()
        for identity_id in ChatIdentity.objects.filter(user__is_active=False).values_list("id", flat=True)[:200]:
            with transaction.atomic():
                rows = ChatIdentity.objects.select_for_update(of=("self",), skip_locked=True)
                identity = rows.select_related("workspace").filter(id=identity_id).first()
                if identity is not None:
                    _unlink(identity, actor=CLOCK, at=at)


def _unlink(identity: ChatIdentity, *, actor: Actor, at: datetime, reason_code: str = "", **more: str) -> None:
    _record(identity, "chat_identity.unlinked", actor=actor, at=at, reason_code=reason_code, **more)
    identity.delete()


def _hash(code: str) -> str:
    return sha256(code.upper().replace("-", "").strip().encode()).hexdigest()


def _record(
    identity: ChatIdentity, action: str, *, actor: Actor, at: datetime, reason_code: str = "", **more: str
) -> None:
    """Neither the person nor the account is named: who acted stands in the entry as a commitment."""
    ledger_append(
        action=action,
        organization_id=identity.workspace.organization_id,
        subject_type="chat_identity",
        subject_id=identity.id,
        actor=actor,
        at=at,
        payload={"workspace": str(identity.workspace_id), **more},
        reason_code=reason_code,
    )


def mail_choose(*, user: User, mode: MailMode) -> MailChoice:
    """Choosing anew also gives a refused address another chance."""
    choice, _ = MailChoice.objects.update_or_create(
        user=user, defaults={"mode": mode.value, "refused_address": "", "refused_at": None}
    )
    return choice


def address_refused(*, user: User, at: datetime) -> None:
    """Nothing more goes to this address until the person's address changes, or they choose anew."""
    MailChoice.objects.update_or_create(user=user, defaults={"refused_address": user.email, "refused_at": at})
