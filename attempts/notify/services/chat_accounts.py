"""Links chat accounts to people by a one-time code, unlinks them, and keeps people's choices about mail.

A signed-in person gets the code and types it in the chat. The code proves the person, Slack's signature the account.
"""

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

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: without letters that people misread
LENGTH = 12  # 60 bits: cannot be guessed within ten minutes
VALID = timedelta(minutes=10)
CHAT_USER = re.compile(r"[UW][A-Z0-9]{2,30}")
SEEN = timedelta(minutes=15)  # longer than a callback's timestamp is accepted, so that no repetition gets through


def link_code_issue(*, user: User, at: datetime, workspace_id: UUID) -> str:
    """Makes a code and returns it in clear. Only its hash is stored. It replaces an earlier code of the person."""
    workspace = workspace_get(workspace_id=workspace_id)
    code = "".join(choice(ALPHABET) for _ in range(LENGTH))
    ChatLinkCode.objects.update_or_create(
        workspace=workspace, user=user, defaults={"sha256": _hash(code), "expires_at": at + VALID}
    )
    return f"{code[:6]}-{code[6:]}"


def chat_identity_link(*, workspace: ChatWorkspace, chat_user: str, code: str, at: datetime) -> ChatIdentity:
    """Links the account that typed this code, according to a signed callback. The code is used up in any case."""
    if not CHAT_USER.fullmatch(chat_user):
        raise LinkCodeRefused
    # Locked and deleted in a transaction of its own, before linking: two callbacks cannot use one code, and a link that
    # fails does not bring the code back.
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
    """Replaces the account that the person had before. An account of another person stays with that person."""
    actor = Actor(ActorKind.PERSON, user.id, frozenset({workspace.organization_id}))
    try:
        with transaction.atomic():
            for old in ChatIdentity.objects.select_for_update(of=("self",)).filter(workspace=workspace, user=user):
                _unlink(old, actor=actor, at=at)
            identity = ChatIdentity(workspace=workspace, user=user, chat_user=chat_user, linked_at=at)
            identity.save(force_insert=True)
            _record(identity, "chat_identity.linked", actor=actor, at=at)
    except IntegrityError as error:
        # The unique constraint decides, not a check before: two people may link one account at the same moment.
        raise ChatAccountTaken from error
    return identity


def chat_identity_unlink_own(*, actor: Actor, at: datetime, identity_id: UUID) -> None:
    """Ends the actor's own link. The link of another person is not found."""
    with transaction.atomic():
        identity = tenant_get(ChatIdentity, identity_id, lock=True)
        if identity.user_id != actor.id:
            raise NotFound
        _unlink(identity, actor=actor, at=at)


def chat_identity_unlink(*, actor: Actor, at: datetime, identity_id: UUID, reason_code: str, note: str = "") -> None:
    """Ends a link as an operator, with a reason."""
    with transaction.atomic():
        identity = tenant_get(ChatIdentity, identity_id, lock=True)
        organization_id = identity.workspace.organization_id
        if not actor.may_act_in(organization_id):
            raise NotFound
        facts = reason_facts(organization_id=organization_id, reason_code=reason_code, note=note)
        _unlink(identity, actor=actor, at=at, reason_code=reason_code, **facts)


def chat_tidy(*, at: datetime) -> None:
    """Scheduled: deletes expired codes and old callbacks, and ends links of people whose access ended."""
    with every_tenant():
        ChatCallback.objects.filter(received_at__lt=at - SEEN).delete()
        ChatLinkCode.objects.filter(expires_at__lt=at).delete()
        for identity_id in ChatIdentity.objects.filter(user__is_active=False).values_list("id", flat=True)[:200]:
            with transaction.atomic():
                # SKIP LOCKED: the person may be unlinking it at this moment; the next run finds what is left.
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
    """Writes the ledger entry. It names neither the person nor the account; the actor is named as a commitment."""
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
    """Stores a person's choice about mail. It also clears a refused address, so that it is tried again."""
    choice, _ = MailChoice.objects.update_or_create(
        user=user, defaults={"mode": mode.value, "refused_address": "", "refused_at": None}
    )
    return choice


def address_refused(*, user: User, at: datetime) -> None:
    """Stops mail to this address until the person changes the address or chooses again."""
    MailChoice.objects.update_or_create(user=user, defaults={"refused_address": user.email, "refused_at": at})
