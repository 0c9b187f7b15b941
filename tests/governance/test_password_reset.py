"""A new password: by mail, without telling who has an account; without mail, by a link that a second person sees."""

import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from django.conf import LazySettings
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.people.models import PasswordResetRequest, SignInLink, User
from governance.people.tasks import sign_in_mail_send_task
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.support import everything_stored

PAGE = "/accounts/password/reset/"
OLD, NEW = "a long enough pass phrase", "another pass phrase here"
URL = "/api/v1/authority-changes"


@pytest.fixture
def rita(cast: Cast) -> User:
    User.objects.filter(id=cast.reviewer.id).update(email="rita@clinic.invalid")
    cast.reviewer.refresh_from_db()
    return cast.reviewer


def ask(typed: str, *, client: Client | None = None) -> Any:
    return (client or Client()).post(PAGE, {"typed": typed})


def mailed_path() -> str:
    sign_in_mail_send_task()
    found = re.search(r"https://holdpoint\.example(/accounts/link/\S+/)", mail.outbox[-1].body)
    assert found
    return found[1]


def choose(path: str, password: str = NEW) -> Any:
    return Client().post(path, {"new": password, "again": password})


def sign_in(user: User, password: str = OLD) -> Client:
    client = Client()
    client.post("/accounts/login/", {"login": user.username, "password": password})
    return client


@pytest.mark.parametrize("typed", ["rita", "rita@clinic.invalid", " RITA@clinic.invalid "])
def test_the_link_goes_to_the_persons_own_address_and_sets_a_new_password(rita: User, typed: str) -> None:
    assert ask(typed).status_code == 200
    assert mail.outbox == [], "the page itself looks nobody up"
    path = mailed_path()
    assert mail.outbox[0].to == ["rita@clinic.invalid"]
    done = choose(path)
    assert (done.status_code, done["Location"]) == (302, "/accounts/login/")
    rita.refresh_from_db()
    assert rita.check_password(NEW)


def test_it_ends_every_session_and_lock_and_is_on_the_ledger(rita: User, cast: Cast) -> None:
    browsers = [sign_in(rita), sign_in(rita)]
    assert [one.get("/review/").status_code for one in browsers] == [200, 200]
    locked = Client()
    for _ in range(5):
        locked.post("/accounts/login/", {"login": "rita", "password": "wrong"})
    ask("rita")
    choose(mailed_path())
    assert [one.get("/review/").status_code for one in browsers] == [302, 302]
    assert browsers[0].get("/api/v1/reviews").status_code == 401
    assert sign_in(rita, NEW).get("/review/").status_code == 200
    with every_tenant():
        entry = LedgerEntry.objects.get(action="password_reset.used")
    assert (entry.organization_id, entry.actor_kind) == (cast.organization.id, "person")


def test_the_second_factor_stays(rita: User) -> None:
    """A mailbox that somebody else reads must not be enough."""
    TOTP.activate(rita, "JBSWY3DPEHPK3PXP")
    ask("rita")
    choose(mailed_path())
    client = sign_in(rita, NEW)
    assert "_auth_user_id" not in client.session


def test_the_link_works_once_and_for_an_hour(rita: User, time_machine: Any) -> None:
    ask("rita")
    path = mailed_path()
    assert choose(path).status_code == 302
    assert choose(path, "a third pass phrase").status_code == 410
    ask("rita")
    path = mailed_path()
    time_machine.move_to(timezone.now() + timedelta(minutes=61))
    assert choose(path).status_code == 410


def test_known_and_unknown_names_get_the_same_answer_for_the_same_work(rita: User) -> None:
    seen = []
    for typed in ("rita", "nobody-at-all", "rita@clinic.invalid", "x@y.invalid"):
        client = Client(REMOTE_ADDR=f"10.1.1.{len(seen)}")
        client.get(PAGE)
        with CaptureQueriesContext(connection) as found:
            answer = ask(typed, client=client)
        seen.append((answer.status_code, answer.content, len(found)))
    assert len(set(seen)) == 1


def test_what_was_typed_is_not_kept(rita: User) -> None:
    ask("my bank password")
    assert "bank" not in everything_stored()
    sign_in_mail_send_task()
    assert set(PasswordResetRequest.objects.values_list("typed_sealed", flat=True)) == {""}
    assert mail.outbox == []


@pytest.mark.parametrize("case", ["no address", "no access", "no sign-in", "two with the address"])
def test_nobody_is_mailed_who_could_not_use_it(rita: User, cast: Cast, case: str) -> None:
    rows = User.objects.filter(id=rita.id)
    if case == "no address":
        rows.update(email="")
    elif case == "no access":
        rows.update(is_active=False)
    elif case == "no sign-in":
        rows.update(password="!", last_login=None)
    else:
        User.objects.filter(id=cast.auditor.id).update(email="Rita@clinic.invalid")
    ask("rita@clinic.invalid" if case == "two with the address" else "rita")
    sign_in_mail_send_task()
    assert mail.outbox == []


def test_asking_too_often_from_one_address_is_refused(rita: User) -> None:
    client = Client()
    assert [ask("rita", client=client).status_code for _ in range(6)] == [200] * 5 + [429]
    assert ask("rita", client=Client(REMOTE_ADDR="10.5.5.5")).status_code == 200


def test_a_mailbox_is_not_filled_from_many_addresses(rita: User) -> None:
    for number in range(8):
        ask("rita", client=Client(REMOTE_ADDR=f"10.6.6.{number}"))
    sign_in_mail_send_task()
    assert SignInLink.objects.count() == 3
    assert len(mail.outbox) == 1, "older links have ended before they were sent"


def test_without_mail_the_page_says_whom_to_ask(rita: User, settings: LazySettings) -> None:
    settings.MAIL_REACHES_PEOPLE = False
    shown = Client().get(PAGE).content.decode()
    assert "Ask an operator of your organization" in shown
    assert "<form" not in shown.split("<main")[1]
    assert ask("rita").status_code == 400
    assert PasswordResetRequest.objects.count() == 0


def test_a_link_from_the_console_needs_a_second_person_who_sees_it(rita: User, cast: Cast) -> None:
    _ = cast.second_operator
    page = f"/admin/governance/user/{rita.id}/act/new-password/"
    answer = cast.console(cast.operator).post(page)
    assert "authoritychange" in answer["Location"]
    assert SignInLink.objects.count() == 0
    change = cast.session(cast.operator).get(URL).json()["results"][0]["id"]
    assert cast.fresh(cast.session(cast.operator)).post(f"{URL}/{change}/confirm", {}, format="json").status_code == 403
    done = cast.fresh(cast.session(cast.second_operator)).post(f"{URL}/{change}/confirm", {}, format="json")
    assert SignInLink.objects.get().shown_to == cast.second_operator
    assert choose(done.json()["secret"].removeprefix("https://holdpoint.example")).status_code == 302
    rita.refresh_from_db()
    assert rita.check_password(NEW)


@pytest.mark.parametrize("who", ["auditor", "reviewer", "other_operator"])
def test_only_operators_of_the_person_ask_for_it(rita: User, cast: Cast, who: str) -> None:
    page = f"/admin/governance/user/{rita.id}/act/new-password/"
    assert cast.console(getattr(cast, who)).post(page).status_code in {403, 404}


def test_not_for_somebody_who_acts_elsewhere_too_nor_for_an_administrator(rita: User, cast: Cast) -> None:
    _ = cast.second_operator
    cast.person("rita", "auditor", organization=cast.other)
    body = {"kind": "password_reset.issue", "subject": str(rita.id)}
    assert cast.session(cast.operator).post(URL, body, format="json").status_code == 403
    root = cast.person("root", "auditor")
    User.objects.filter(id=root.id).update(is_superuser=True)
    answer = cast.session(cast.operator).post(URL, body | {"subject": "root"}, format="json")
    assert answer.json()["type"].endswith("/administrator-protected")


def test_changing_ones_password_ends_the_other_sessions(rita: User) -> None:
    here, lost = sign_in(rita), sign_in(rita)
    data = {"oldpassword": OLD, "password1": NEW, "password2": NEW}
    assert here.post("/accounts/password/change/", data).status_code == 302
    assert (here.get("/review/").status_code, lost.get("/review/").status_code) == (200, 302)
    with every_tenant():
        assert LedgerEntry.objects.filter(action="person.password_changed", subject_id=rita.id).count() == 1


def test_somebody_without_a_password_is_told_so(rita: User, cast: Cast) -> None:
    User.objects.filter(id=rita.id).update(password="!")
    rita.refresh_from_db()
    shown = cast.console(rita).get("/accounts/password/change/")
    assert "You have no password" in shown.content.decode()
