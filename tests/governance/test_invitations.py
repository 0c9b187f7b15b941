"""Invitations: a link that works once instead of a typed password. Whoever has it becomes the person, so who made it,
who saw it and from where it was used is kept."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.core import mail
from django.test import Client
from django.utils import timezone

from governance.ledger.models import LedgerEntry
from governance.ledger.services import person_commitment
from governance.people.errors import LinkNotValid
from governance.people.models import SignInLink, User
from governance.people.services.links import IssuedLink, invitation_create, sign_in_link_use
from governance.people.services.people import person_create, person_deactivate, person_role_give
from governance.people.tasks import sign_in_mail_send_task
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.support import everything_stored, in_parallel

PASSWORD = "correct horse battery"
AUDITOR = "auditor"
URL = "/api/v1/authority-changes"


def newcomer(cast: Cast, *, username: str = "petra", email: str = "", role: str = AUDITOR) -> User:
    actor, at = cast.actor(cast.operator, [cast.organization]), timezone.now()
    with every_tenant():
        user = person_create(actor=actor, at=at, username=username, email=email, is_staff=True)
        person_role_give(actor=actor, at=at, user=user, organization=cast.organization, role=role)
    return user


def invite(cast: Cast, user: User) -> IssuedLink:
    with every_tenant():
        return invitation_create(actor=cast.actor(cast.operator, [cast.organization]), at=timezone.now(), user=user)


def path_of(issued: IssuedLink) -> str:
    return f"/accounts/link/{issued.token}/"


def accept(path: str, *, password: str = PASSWORD, client: Client | None = None, **more: Any) -> Any:
    return (client or Client()).post(path, {"new": password, "again": password, **more})


def entries(action: str) -> list[LedgerEntry]:
    with every_tenant():
        return list(LedgerEntry.objects.filter(action=action).order_by("id"))


def mailed_path() -> str:
    sign_in_mail_send_task()
    found = re.search(r"https://holdpoint\.example(/accounts/link/\S+/)", mail.outbox[-1].body)
    assert found, mail.outbox[-1].body
    return found[1]


def test_a_person_is_made_without_a_password_and_chooses_one_by_the_link(cast: Cast) -> None:
    petra = newcomer(cast)
    assert not petra.has_usable_password()
    path, client = path_of(invite(cast, petra)), Client()
    shown = client.get(path)
    assert (shown.status_code, "no-store" in shown["Cache-Control"]) == (200, True)
    done = accept(path, client=client)
    assert (done.status_code, done["Location"]) == (302, "/accounts/home/")
    assert client.get("/accounts/home/")["Location"] == "/admin/"
    petra.refresh_from_db()
    assert petra.check_password(PASSWORD)
    assert client.get("/admin/").status_code == 200


def test_the_link_works_once(cast: Cast) -> None:
    path = path_of(invite(cast, newcomer(cast)))
    assert accept(path).status_code == 302
    for answer in (Client().get(path), accept(path, password="another pass phrase")):
        assert answer.status_code == 410
        assert "tell an operator at once" in answer.content.decode()
    assert User.objects.get(username="petra").check_password(PASSWORD)
    assert len(entries("invitation.accepted")) == 1


def test_opening_the_link_changes_nothing(cast: Cast) -> None:
    """Mail programs open links before people do."""
    path = path_of(invite(cast, newcomer(cast)))
    for _ in range(3):
        assert Client().get(path).status_code == 200
    assert accept(path).status_code == 302


def test_a_weak_password_is_refused_beside_the_field_and_the_link_still_works(cast: Cast) -> None:
    path = path_of(invite(cast, newcomer(cast)))
    weak = accept(path, password="short")
    assert weak.status_code == 400
    assert 'value="short"' not in weak.content.decode()
    different = Client().post(path, {"new": PASSWORD, "again": "something else entirely"})
    assert "not the same" in different.content.decode()
    assert accept(path).status_code == 302


def test_after_72_hours_the_link_has_ended(cast: Cast, time_machine: Any) -> None:
    path, now = path_of(invite(cast, newcomer(cast))), timezone.now()
    time_machine.move_to(now + timedelta(hours=71))
    assert Client().get(path).status_code == 200
    time_machine.move_to(now + timedelta(hours=73))
    assert Client().get(path).status_code == 410
    assert accept(path).status_code == 410


def test_an_unknown_token_gets_the_same_answer(db: None) -> None:
    assert Client().get("/accounts/link/nothing-like-it/").status_code == 410
    assert accept("/accounts/link/nothing-like-it/").status_code == 410


def test_the_token_is_stored_nowhere(cast: Cast) -> None:
    issued = invite(cast, newcomer(cast))
    accept(path_of(issued))
    assert issued.token is not None
    assert issued.token not in everything_stored()


def test_a_second_invitation_ends_the_first(cast: Cast) -> None:
    petra = newcomer(cast)
    first, second = path_of(invite(cast, petra)), path_of(invite(cast, petra))
    assert Client().get(first).status_code == 410
    assert accept(second).status_code == 302
    assert sorted(SignInLink.objects.values_list("ended_how", flat=True)) == ["replaced", "used"]


def test_nobody_is_invited_who_can_sign_in_already(cast: Cast) -> None:
    """Otherwise one operator could become anybody."""
    page = f"/admin/governance/user/{cast.reviewer.id}/act/invite/"
    assert cast.console(cast.operator).post(page).status_code == 409
    petra = newcomer(cast)
    accept(path_of(invite(cast, petra)))
    answer = cast.console(cast.operator).post(f"/admin/governance/user/{petra.id}/act/invite/")
    assert answer.status_code == 409
    assert SignInLink.objects.filter(ended_at=None).count() == 0


def test_an_operator_withdraws_an_invitation(cast: Cast) -> None:
    petra = newcomer(cast)
    path = path_of(invite(cast, petra))
    page = f"/admin/governance/user/{petra.id}/act/withdraw-invitation/"
    assert cast.console(cast.auditor).post(page).status_code == 403
    assert cast.console(cast.other_operator).post(page).status_code == 404
    assert Client().get(path).status_code == 200
    assert cast.console(cast.operator).post(page).status_code == 302
    assert Client().get(path).status_code == 410
    assert len(entries("invitation.withdrawn")) == 1


def test_ending_somebodys_access_ends_their_invitation(cast: Cast) -> None:
    petra = newcomer(cast)
    path = path_of(invite(cast, petra))
    with every_tenant():
        person_deactivate(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            user_id=petra.id,
            reason_code="person_left",
        )
    assert accept(path).status_code == 410


def test_by_mail_nobody_here_sees_the_link(cast: Cast) -> None:
    petra = newcomer(cast, email="petra@clinic.invalid")
    issued = invite(cast, petra)
    assert (issued.token, issued.address) == (None, "")
    path = mailed_path()
    assert mail.outbox[-1].to == ["petra@clinic.invalid"]
    assert path.split("/")[3] not in everything_stored()
    assert accept(path).status_code == 302
    sign_in_mail_send_task()
    assert len(mail.outbox) == 1
    assert [len(entries(action)) for action in ("invitation.created", "invitation.mailed")] == [1, 1]


def test_a_mail_that_was_not_taken_is_sent_again_later_with_another_token(
    cast: Cast, settings: LazySettings, time_machine: Any
) -> None:
    backend = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND, settings.EMAIL_PORT = "governance.outside.mail.TimedEmailBackend", 1
    invite(cast, newcomer(cast, email="petra@clinic.invalid"))
    sign_in_mail_send_task()
    link = SignInLink.objects.get()
    assert (link.mailed_at, link.mail_tries) == (None, 1)
    settings.EMAIL_BACKEND = backend
    sign_in_mail_send_task()
    assert mail.outbox == [], "not at once"
    time_machine.move_to(timezone.now() + timedelta(minutes=3))
    assert accept(mailed_path()).status_code == 302


def test_without_mail_the_record_says_to_whom_the_link_was_shown(cast: Cast, settings: LazySettings) -> None:
    settings.MAIL_REACHES_PEOPLE = False
    issued = invite(cast, newcomer(cast, email="petra@clinic.invalid"))
    assert issued.token
    (entry,) = entries("invitation.created")
    assert entry.organization_id == cast.organization.id
    assert entry.payload is not None
    assert entry.payload["shown_to"] == person_commitment(user_id=cast.operator.id)
    assert "petra" not in str(entry.payload)


def test_whoever_confirms_sees_the_link_once_and_is_named(cast: Cast) -> None:
    _ = cast.second_operator
    body = {"kind": "person.create", "subject": "petra", "details": {"roles": [AUDITOR]}}
    proposed = cast.session(cast.operator).post(URL, body, format="json").json()
    assert proposed["secret"] is None
    assert not User.objects.filter(username="petra").exists()
    done = cast.fresh(cast.session(cast.second_operator)).post(f"{URL}/{proposed['id']}/confirm", {}, format="json")
    assert done.status_code == 200, done.json()
    path = done.json()["secret"].removeprefix("https://holdpoint.example")
    assert cast.session(cast.second_operator).get(f"{URL}/{proposed['id']}").json().get("secret") is None
    link = SignInLink.objects.get()
    assert (link.shown_to, link.created_by) == (cast.second_operator, cast.operator)
    assert accept(path).status_code == 302


def test_the_real_person_sees_who_made_and_saw_the_link_and_from_where_it_was_used(cast: Cast) -> None:
    insider = Client(REMOTE_ADDR="10.0.0.7")
    insider.post("/accounts/login/", {"login": cast.operator.username, "password": "a long enough pass phrase"})
    path = path_of(invite(cast, newcomer(cast)))
    thief = Client(REMOTE_ADDR="10.0.0.7", headers={"user-agent": "Insider/1"})
    assert accept(path, client=thief).status_code == 302
    told = thief.get("/accounts/sessions/").content.decode()
    for words in ("Invitation by alice", "Shown once to alice", "10.0.0.7", "Insider/1", "signed in from the same"):
        assert words in told
    (entry,) = entries("invitation.accepted")
    assert entry.payload is not None
    assert entry.payload["used_beside"] is True
    assert "10.0.0.7" not in str(entry.payload)
    page = cast.console(cast.operator).get(f"/admin/governance/user/{SignInLink.objects.get().user_id}/change/")
    assert "shown to alice" in page.content.decode()


def test_from_elsewhere_nothing_is_said_about_the_same_address(cast: Cast) -> None:
    accept(path_of(invite(cast, newcomer(cast))), client=Client(REMOTE_ADDR="10.9.9.9"))
    assert SignInLink.objects.get().used_beside is False


def test_somebody_who_is_signed_in_does_not_become_another_person(cast: Cast) -> None:
    path = path_of(invite(cast, newcomer(cast)))
    alice = cast.console(cast.operator)
    for answer in (alice.get(path), accept(path, client=alice)):
        assert answer.status_code == 409
        assert "You are signed in as alice" in answer.content.decode()
    assert not User.objects.get(username="petra").has_usable_password()


def test_an_invitation_can_be_accepted_with_a_passkey_and_nothing_else_works_until_it_is_there(cast: Cast) -> None:
    client, path = Client(), path_of(invite(cast, newcomer(cast)))
    done = client.post(path, {"choice": "passkey"})
    assert (done.status_code, done["Location"]) == (302, "/accounts/2fa/webauthn/add/")
    assert client.get("/accounts/2fa/webauthn/add/").status_code == 200
    assert client.get("/admin/")["Location"] == "/accounts/second-factor/"
    assert "Add your passkey" in client.get("/accounts/second-factor/").content.decode()
    assert client.get("/api/v1/attempts").json()["type"].endswith("/second-factor-needed")
    assert not User.objects.get(username="petra").has_usable_password()


@pytest.mark.parametrize("who", ["auditor", "other_operator", "reviewer", "nobody"])
def test_only_operators_of_the_organization_invite(cast: Cast, who: str) -> None:
    petra = newcomer(cast)
    invite(cast, petra)
    answer = cast.console(getattr(cast, who)).post(f"/admin/governance/user/{petra.id}/act/invite/")
    assert answer.status_code in {403, 404}
    assert SignInLink.objects.filter(user=petra).count() == 1


def test_without_mail_one_operator_alone_cannot_see_a_new_link(cast: Cast) -> None:
    _ = cast.second_operator
    petra = newcomer(cast)
    answer = cast.console(cast.operator).post(f"/admin/governance/user/{petra.id}/act/invite/")
    assert answer.status_code == 302
    assert "authoritychange" in answer["Location"]
    assert SignInLink.objects.count() == 0


def test_no_entry_point_takes_a_password_for_somebody_else(cast: Cast) -> None:
    console = cast.console(cast.operator)
    for page in ("/admin/governance/user/add/", "/admin/start/people/"):
        assert 'type="password"' not in console.get(page).content.decode()


@pytest.mark.django_db(transaction=True)
def test_of_two_who_use_the_link_at_once_one_wins(transactional_db: None, cast: Cast) -> None:
    for number in range(4):
        issued = invite(cast, newcomer(cast, username=f"petra-{number}"))

        def use(password: str, token: str | None = issued.token) -> bool:
            try:
                with every_tenant():
                    sign_in_link_use(
                        at=timezone.now(), token=str(token), password=password, address="10.0.0.1", browser=""
                    )
            except LinkNotValid:
                return False
            return True

        assert sorted(in_parallel(lambda: use("first of the two"), lambda: use("second of the two"))) == [False, True]
        with every_tenant():
            assert LedgerEntry.objects.filter(action="invitation.accepted").count() == number + 1
