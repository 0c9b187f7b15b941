"""Signing in without a browser: one form, lockout, second factor, sessions; and nothing of it for the API."""

from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.core import mail
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config.middleware.people import PeopleMiddleware
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from governance.people.services.people import lockout_name, sign_in_reset
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

PASSWORD = "correct horse battery"
REASON = {"reason_code": "planned_maintenance"}
SECRET = "JBSWY3DPEHPK3PXP"
OURS = ("axes_", "account_", "mfa_", "usersessions_")


@pytest.fixture
def rita(cast: Cast) -> User:
    user = cast.reviewer
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    return user


def sign_in(client: Client, *, password: str = PASSWORD, path: str = "/accounts/login/", **more: str) -> Any:
    return client.post(path, {"login": "rita", "password": password, **more})


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


@pytest.mark.parametrize(("path", "to"), [("/accounts/login/", "/review/"), ("/admin/login/", "/admin/")])
def test_one_form_signs_in_to_both_consoles(rita: User, path: str, to: str) -> None:
    client = Client()
    assert "Sign in with a passkey" in client.get(path).content.decode()
    found = sign_in(client, path=path)
    assert (found.status_code, found["Location"]) == (302, to)
    assert signed_in(client)
    assert mail.outbox == []


def test_programs_that_know_djangos_form_go_on_working(rita: User) -> None:
    client = Client()
    client.post("/admin/login/", {"username": "rita", "password": PASSWORD})
    assert signed_in(client)


def test_next_leads_nowhere_else(rita: User) -> None:
    assert sign_in(Client(), next="https://elsewhere.example/")["Location"] == "/review/"
    assert sign_in(Client(), next="/review/?view=mine")["Location"] == "/review/?view=mine"


@pytest.mark.parametrize("path", ["signup/", "email/", "password/set/", "confirm-email/", "login/code/confirm/", ""])
def test_nobody_signs_up_or_is_mailed(db: None, path: str) -> None:
    assert Client().get(f"/accounts/{path}").status_code == 404


def test_somebody_who_is_no_operator_is_told_so_instead_of_sent_round(rita: User) -> None:
    rita.is_staff = False
    rita.save(update_fields=["is_staff"])
    client = Client()
    sign_in(client)
    found = client.get("/admin/", follow=True)
    assert (found.status_code, len(found.redirect_chain)) == (403, 1)
    assert "The console is for operators" in found.content.decode()


def test_guessing_locks_the_name_for_a_quarter_of_an_hour(rita: User, time_machine: Any) -> None:
    client = Client()
    answers = [sign_in(client, password="wrong").status_code for _ in range(5)]
    assert answers == [200, 200, 200, 200, 429]
    assert sign_in(client).status_code == 429
    assert not signed_in(client)
    time_machine.move_to(timezone.now() + timedelta(minutes=16))
    sign_in(client)
    assert signed_in(client)


def test_a_lock_is_of_one_name_only(cast: Cast, rita: User) -> None:
    for _ in range(5):
        Client().post("/accounts/login/", {"login": "audrey", "password": "wrong"})
    client = Client()
    sign_in(client)
    assert signed_in(client)


def test_what_was_typed_is_not_kept(rita: User) -> None:
    sign_in(Client(), password="my bank password")
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(found)::text FROM axes_accessattempt found")
        kept = " ".join(row[0] for row in cursor.fetchall())
    assert lockout_name(username="rita") in kept
    assert "rita" not in kept, "people type passwords into the wrong field"
    assert "bank" not in kept


def test_the_stored_name_cannot_be_tried_out_without_our_secret(settings: LazySettings) -> None:
    known = lockout_name(username="rita")
    assert sha256(b"rita").hexdigest() != known
    settings.SECRET_KEY = "another secret of this installation"
    assert lockout_name(username="rita") != known


def code(*, later: int = 0) -> str:
    return str(format_hotp_value(hotp_value(SECRET, int((timezone.now().timestamp() + later) // 30))))


def test_a_second_factor_is_asked_for_and_stored_so_that_a_reader_cannot_make_codes(rita: User) -> None:
    TOTP.activate(rita, SECRET)
    client = Client()
    assert sign_in(client)["Location"].startswith("/accounts/2fa/authenticate/")
    assert not signed_in(client)
    client.post("/accounts/2fa/authenticate/", {"code": code()})
    assert signed_in(client)
    assert SECRET not in str(Authenticator.objects.get(user=rita).data)


def test_wrong_codes_count_like_wrong_passwords(rita: User) -> None:
    TOTP.activate(rita, SECRET)
    client = Client()
    sign_in(client)
    answers = [client.post("/accounts/2fa/authenticate/", {"code": "000000"}).status_code for _ in range(5)]
    assert answers[-1] == 429
    assert client.post("/accounts/2fa/authenticate/", {"code": code()}).status_code == 429
    assert not signed_in(client)


def test_ones_own_sessions_are_listed_and_ended(rita: User) -> None:
    lost, here = Client(), Client()
    for client in (lost, here):
        sign_in(client)
    assert len(here.get("/accounts/sessions/").context["sessions"]) == 2
    other = UserSession.objects.exclude(session_key=here.session.session_key).get()
    assert here.get(f"/accounts/sessions/{other.id}/end").status_code == 405
    assert here.post(f"/accounts/sessions/{other.id}/end").status_code == 302
    assert lost.get("/review/").status_code == 302
    assert lost.get("/api/v1/reviews").status_code == 401
    assert here.get("/review/").status_code == 200


def test_all_others_are_ended_at_once(rita: User) -> None:
    clients = [Client() for _ in range(3)]
    for client in clients:
        sign_in(client)
    clients[0].post("/accounts/sessions/")
    assert [client.get("/review/").status_code for client in clients] == [200, 302, 302]


def test_nobody_ends_somebody_elses_session(cast: Cast, rita: User) -> None:
    sign_in(Client())
    theirs = UserSession.objects.get()
    other = cast.console(cast.operator)
    assert other.post(f"/accounts/sessions/{theirs.id}/end").status_code == 404
    assert Client().post(f"/accounts/sessions/{theirs.id}/end").status_code == 302
    assert UserSession.objects.filter(id=theirs.id).exists()


def test_an_operator_helps_somebody_who_lost_their_phone(cast: Cast, rita: User) -> None:
    TOTP.activate(rita, SECRET)
    client = Client()
    for _ in range(5):
        sign_in(client, password="wrong")
    console = cast.console(cast.operator)
    assert console.get(f"/admin/governance/user/{rita.id}/act/reset-sign-in/").status_code == 200
    assert Authenticator.objects.filter(user=rita).exists()
    address = f"/admin/governance/user/{rita.id}/act/reset-sign-in/"
    assert "reason" in console.post(address, {}).content.decode()
    assert Authenticator.objects.filter(user=rita).exists(), "not without a reason"
    console.post(address, REASON)
    sign_in(client)
    assert signed_in(client)
    with every_tenant():
        assert LedgerEntry.objects.filter(action="person.sign_in_reset", subject_id=rita.id).count() == 1


def test_nobody_resets_the_sign_in_of_somebody_who_acts_elsewhere_too(cast: Cast, rita: User) -> None:
    TOTP.activate(rita, SECRET)
    cast.person("rita", "operator", organization=cast.other)
    path = f"/admin/governance/user/{rita.id}/act/reset-sign-in/"
    assert cast.console(cast.operator).post(path, REASON).status_code == 403
    assert cast.console(cast.auditor).post(path, REASON).status_code == 403
    assert Authenticator.objects.filter(user=rita).exists()
    assert cast.console(cast.administrator).post(path, REASON).status_code == 302
    assert not Authenticator.objects.filter(user=rita).exists()


def test_the_reset_ends_every_session(cast: Cast, rita: User) -> None:
    client = Client()
    sign_in(client)
    with every_tenant():
        actor = cast.actor(cast.operator, [cast.organization])
        sign_in_reset(actor=actor, at=timezone.now(), user=rita, **REASON)
    assert client.get("/review/").status_code == 302


@pytest.mark.parametrize("path", ["/api/v1/reviews", "/api/v1/execution/x/1/attempts", "/health", "/metrics", "/"])
def test_programs_do_not_pass_the_sign_in_middleware(path: str) -> None:
    seen: list[HttpRequest] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(request)
        return HttpResponse()

    middleware = PeopleMiddleware(view)
    middleware(RequestFactory().get(path))
    middleware(RequestFactory().get("/review/"))
    assert [hasattr(request, "allauth") for request in seen] == [False, True]


def test_programs_cost_no_query_more(cast: Cast) -> None:
    api, person = cast.api(), cast.session(cast.reviewer)
    with CaptureQueriesContext(connection) as found:
        assert api.get("/api/v1/reviews").status_code == 200
        assert person.get("/api/v1/reviews").status_code == 200
        assert Client().get("/health").status_code == 200
    assert [query["sql"] for query in found if any(f'"{name}' in query["sql"] for name in OURS)] == []
