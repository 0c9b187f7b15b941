"""Who may see and change routes, workspaces and accounts, by API and console; and what the clock tidies up."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from attempts.notify.models import ChatIdentity, ChatWorkspace, NotificationRoute
from attempts.notify.services.chat_accounts import chat_tidy
from attempts.notify.services.routes import route_disable
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.notify.conftest import Chat
from tests.attempts.notify.stand_in import CHANNEL
from tests.cast import Cast
from tests.governance.support import everything_stored

ROUTES = "/api/v1/notification-routes"


def test_who_may_see_and_change_routes(chat: Chat, cast: Cast) -> None:
    with every_tenant():
        route = NotificationRoute.objects.get()
    one = f"{ROUTES}/{route.id}"
    body = {"channel": "email", "org_id": str(cast.organization.id)}
    stop = {"reason_code": "rehearsal"}
    table = [  # who, list, read, create, disable, enable
        (cast.session(cast.operator), 200, 200, 201, 200, 200),
        (cast.api("governance:write", "governance:read"), 200, 200, 409, 200, 200),
        (cast.session(cast.auditor), 200, 200, 403, 403, 403),
        (cast.session(cast.reviewer), 200, 200, 403, 403, 403),
        (cast.session(cast.nobody), 403, 403, 403, 403, 403),
        (cast.session(cast.other_operator), 200, 404, 404, 404, 404),
        (cast.api("governance:write", "governance:read", organization=cast.other), 200, 404, 404, 404, 404),
        (cast.api("attempts:create"), 403, 403, 403, 403, 403),
    ]
    for client, *expected in table:
        answers = [
            client.get(ROUTES),
            client.get(one),
            client.post(ROUTES, body, format="json"),
            client.post(f"{one}/disable", stop, format="json"),
            client.post(f"{one}/enable", {}, format="json"),
        ]
        assert [answer.status_code for answer in answers] == expected, [answer.content for answer in answers]
    own = cast.session(cast.operator)
    listed = own.get(ROUTES, {"channel": "slack"}).json()["results"]
    assert [row["id"] for row in listed] == [str(route.id)]
    assert cast.session(cast.other_operator).get(ROUTES).json()["results"] == []
    for wrong in (
        {"channel": "slack"},
        {"channel": "email", "chat_channel": CHANNEL},
        {"channel": "email", "tier": "no_such_tier"},
        {"channel": "slack", "workspace_id": str(chat.workspace.id), "chat_channel": "#general"},
        {"channel": "pigeon"},
    ):
        assert own.post(ROUTES, wrong, format="json").status_code == 400, wrong


def test_an_operator_connects_and_routes_in_the_console_and_no_page_shows_a_secret(cast: Cast, slack: Any) -> None:
    page = cast.console(cast.operator)
    secrets = {"bot_token": "xoxb-console-0001", "signing_secret": "console-secret-0001"}
    form = {"organization": str(cast.organization.id), "name": "Ours", "team_id": "T0OURS"} | secrets
    wrong = page.post("/admin/attempts/chatworkspace/add/", form | {"team_id": "nonsense"})
    assert (wrong.status_code, b"xoxb-console" in wrong.content) == (400, False)
    assert page.post("/admin/attempts/chatworkspace/add/", form).status_code == 302
    with every_tenant():
        workspace = ChatWorkspace.objects.get()
    route = {"organization": form["organization"], "channel": "slack", "workspace": str(workspace.id)}
    route |= {"chat_channel": CHANNEL, "digest_minutes": "0"}
    assert page.post("/admin/attempts/notificationroute/add/", route).status_code == 302
    for path in ("chatworkspace/", f"chatworkspace/{workspace.id}/change/", "notificationroute/", "notification/"):
        shown = page.get(f"/admin/attempts/{path}").content.decode()
        assert not any(secret in shown for secret in secrets.values()), path
    assert not any(secret in everything_stored() for secret in secrets.values())
    assert cast.console(cast.auditor).get(f"/admin/attempts/chatworkspace/{workspace.id}/change/").status_code == 200
    for who, expected in (("auditor", 403), ("reviewer", {302, 403}), ("other_operator", 404)):
        act = cast.console(getattr(cast, who)).post(f"/admin/attempts/chatworkspace/{workspace.id}/act/disable/", {})
        assert act.status_code in (expected if isinstance(expected, set) else {expected}), who


def test_without_a_public_address_no_route_is_made(chat: Chat, settings: Any) -> None:
    settings.PUBLIC_URL = ""
    answer = chat.cast.session(chat.cast.operator).post(ROUTES, {"channel": "email"}, format="json")
    assert answer.status_code == 400
    assert "HOLDPOINT_PUBLIC_URL" in answer.content.decode()


def test_what_is_over_is_tidied_up_and_accounts_of_people_who_left_end(chat: Chat, cast: Cast) -> None:
    User.objects.filter(id=cast.reviewer.id).update(is_active=False)
    chat_tidy(at=timezone.now() + timedelta(hours=1))
    with every_tenant():
        entry = LedgerEntry.objects.get(action="chat_identity.unlinked")
    assert entry.actor_kind == "clock"


def test_a_route_disabled_by_an_operator_is_on_the_ledger_with_its_reason(chat: Chat) -> None:
    with every_tenant():
        route = NotificationRoute.objects.get()
        route_disable(actor=chat.operator, at=timezone.now(), route_id=route.id, reason_code="rehearsal")
        assert LedgerEntry.objects.get(action="notification_route.disabled").payload["reason"] == "rehearsal"


def test_an_operator_unlinks_somebodys_account_with_a_reason(chat: Chat) -> None:
    with every_tenant():
        identity = ChatIdentity.objects.order_by("id")[0]
    address, operator = f"/admin/attempts/chatidentity/{identity.id}/act/unlink/", chat.cast.console(chat.cast.operator)
    assert operator.get(address).status_code == 200
    assert operator.post(address, {"reason_code": "rehearsal"}).status_code == 302
    with every_tenant():
        assert not ChatIdentity.objects.filter(id=identity.id).exists()
        entry = LedgerEntry.objects.get(action="chat_identity.unlinked")
    assert (entry.actor_kind, entry.reason_code) == ("person", "rehearsal")
