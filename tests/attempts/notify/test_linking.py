"""Whose chat account it is: a code from the page, typed in the chat, once and within ten minutes."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from attempts.notify.models import ChatIdentity, ChatLinkCode, ChatWorkspace
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.notify.conftest import SAM, Chat
from tests.attempts.reviews.support import REVIEWER
from tests.cast import Cast


def code_of(page: Any) -> str:
    text = page.content.decode()
    return text.split("/holdpoint link ")[1][:13]


def test_a_person_links_their_account_with_a_code_that_works_once_and_for_ten_minutes(chat: Chat, cast: Cast) -> None:
    sam = cast.person("sam", REVIEWER)
    page = cast.console(sam)
    shown = page.post(f"/review/notifications/code/{chat.workspace.id}")
    assert shown["Cache-Control"] == "no-store"
    code = code_of(shown)
    with every_tenant():
        assert code.replace("-", "") not in str(list(ChatWorkspace.objects.values()))
    assert "wrong" in chat.command("link WRONG-CODE", user=SAM).json()["text"]
    assert "Linked" in chat.command(f"link {code.lower()}", user=SAM).json()["text"]
    assert "wrong" in chat.command(f"link {code}", user="U0THIEF").json()["text"]
    tess = cast.console(cast.person("tess", REVIEWER))
    old = code_of(tess.post(f"/review/notifications/code/{chat.workspace.id}"))
    with every_tenant():
        ChatLinkCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "ten minutes" in chat.command(f"link {old}", user="U0SAM2").json()["text"]
    with every_tenant():
        identity = ChatIdentity.objects.get(user=sam)
        assert identity.chat_user == SAM
        entry = LedgerEntry.objects.get(action="chat_identity.linked")
    assert "sam" not in str(entry.payload)
    assert SAM not in str(entry.payload)
    taken = code_of(tess.post(f"/review/notifications/code/{chat.workspace.id}"))
    assert "another person" in chat.command(f"link {taken}", user=SAM).json()["text"]
    assert "code" in chat.command("help", user=SAM).json()["text"]
    assert page.post(f"/review/notifications/unlink/{identity.id}").status_code == 302
    with every_tenant():
        assert not ChatIdentity.objects.filter(user=sam).exists()
        assert LedgerEntry.objects.filter(action="chat_identity.unlinked").count() == 1


def test_nobody_reaches_another_persons_or_another_organizations_link(chat: Chat, cast: Cast) -> None:
    with every_tenant():
        theirs = ChatIdentity.objects.get(user=cast.reviewer)
    sam, oscar = cast.console(cast.person("sam", REVIEWER)), cast.console(cast.other_operator)
    for stranger in (sam, oscar):
        assert stranger.post(f"/review/notifications/unlink/{theirs.id}").status_code == 404
    assert oscar.post(f"/review/notifications/code/{chat.workspace.id}").status_code == 404
    assert b"Clinic" not in oscar.get("/review/notifications").content
    assert cast.console(cast.nobody).get("/review/notifications").status_code == 403
    with every_tenant():
        assert ChatIdentity.objects.filter(id=theirs.id).exists()
