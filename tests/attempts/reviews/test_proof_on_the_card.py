"""Proof on the card, without a browser: the press is answered with a prompt, and the same form with the proof decides.
Also the pages that add and remove a passkey."""

import json
import time
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from axes.models import AccessAttempt
from django.db import connection
from django.test import Client

from governance.ledger.models import LedgerEntry
from governance.people.models import Passkey, User
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.pages import answer, browser, page
from tests.attempts.reviews.support import Clinic, do, status_of, votes
from tests.authenticator import SoftKey, assertion_json, register, text
from tests.cast import Cast

PASSWORD = "a long enough pass phrase"
SECRET = "JBSWY3DPEHPK3PXP"
HIGH = {"risk_tier": "high"}


@pytest.fixture
def rita(cast: Cast) -> Client:
    cast.reviewer.set_password(PASSWORD)
    cast.reviewer.save(update_fields=["password"])
    return browser(cast.reviewer)


def prompt(found: Any) -> dict[str, Any]:
    assert (found.status_code, found["HX-Reswap"], found.content) == (200, "none", b""), found.content
    asked: dict[str, Any] = json.loads(found["HX-Trigger"])["review-proof"]
    return asked


def challenge_of(asked: dict[str, Any]) -> bytes:
    given = asked["options"]["challenge"]
    return urlsafe_b64decode(given + "=" * (-len(given) % 4))


def test_the_password_is_asked_for_and_decides_with_the_same_press(clinic: Clinic, rita: Client) -> None:
    review = clinic.hold(action=HIGH)
    asked = prompt(answer(rita, review, "approve", hx=True))
    assert (asked["kind"], asked["verb"], asked["what"]) == ("password", "approve", "case.close on case-0001")
    assert asked["elsewhere"].startswith("/accounts/reauthenticate/")
    done = answer(rita, review, "approve", hx=True, proof_kind="password", proof=PASSWORD)
    assert "Released" in done.content.decode()
    assert votes(review) == ["approve"]
    again = clinic.hold(action=HIGH)
    assert "Released" in answer(rita, again, "approve", hx=True).content.decode()  # proven for a quarter of an hour


def test_a_wrong_password_decides_nothing_and_counts_towards_the_lockout(clinic: Clinic, rita: Client) -> None:
    review = clinic.hold(action=HIGH)
    for _ in range(5):
        asked = prompt(answer(rita, review, "approve", hx=True, proof_kind="password", proof="wrong"))
        assert asked["refused"]
    assert AccessAttempt.objects.get().failures_since_start == 5
    asked = prompt(answer(rita, review, "approve", hx=True, proof_kind="password", proof=PASSWORD))
    assert "Too many wrong tries" in asked["refused"]
    assert votes(review) == []


def test_a_code_is_asked_for_where_an_app_is_set_up(cast: Cast, clinic: Clinic, rita: Client) -> None:
    TOTP.activate(cast.reviewer, SECRET)
    review = clinic.hold(action=HIGH)
    assert prompt(answer(rita, review, "approve", hx=True))["kind"] == "code"
    assert prompt(answer(rita, review, "approve", hx=True, proof_kind="password", proof=PASSWORD))["kind"] == "code"
    code = str(format_hotp_value(hotp_value(SECRET, int(time.time() // 30))))
    answer(rita, review, "approve", hx=True, proof_kind="code", proof=code)
    assert votes(review) == ["approve"]


def test_a_passkey_comes_first_where_one_is_enrolled(cast: Cast, clinic: Clinic, rita: Client) -> None:
    key = SoftKey()
    register(cast.reviewer, key)
    TOTP.activate(cast.reviewer, SECRET)
    review = clinic.hold(action=HIGH)
    asked = prompt(answer(rita, review, "approve", hx=True))
    assert asked["kind"] == "passkey"
    made = key.sign(challenge_of(asked))
    proof = {
        "id": text(made.credential_id),
        "rawId": text(made.credential_id),
        "type": "public-key",
        "clientExtensionResults": {},
        "response": {
            "authenticatorData": text(made.authenticator_data),
            "clientDataJSON": text(made.client_data_json),
            "signature": text(made.signature),
            "userHandle": None,
        },
    }
    wrong = answer(rita, review, "approve", hx=True, proof_kind="passkey", proof="{}")
    assert prompt(wrong)["refused"]
    asked = prompt(answer(rita, review, "approve", hx=True))
    made = key.sign(challenge_of(asked))
    proof["response"] |= {  # type: ignore[operator]
        "authenticatorData": text(made.authenticator_data),
        "clientDataJSON": text(made.client_data_json),
        "signature": text(made.signature),
    }
    answer(rita, review, "approve", hx=True, proof_kind="passkey", proof=json.dumps(proof))
    assert votes(review) == ["approve"]


def test_a_signature_is_the_step_up_and_the_only_prompt(cast: Cast, rita: Client) -> None:
    clinic, key = Clinic(cast, signature="passkey"), SoftKey()
    register(cast.reviewer, key)
    review = clinic.hold(action=HIGH)
    shown = rita.get(page(review)).content.decode()
    assert "Your answer is signed with your passkey (registered" in shown
    asked = prompt(answer(rita, review, "approve", hx=True))
    assert (asked["kind"], asked["elsewhere"]) == ("signature", "")
    proof = json.dumps(assertion_json(asked["challenge_id"], key.sign(challenge_of(asked))))
    done = answer(rita, review, "approve", hx=True, proof_kind="signature", proof=proof)
    assert "Released" in done.content.decode()
    card = rita.get(page(review)).content.decode()
    assert "signed, passkey registered" in card
    assert "less than a day before this vote" in card


@pytest.mark.parametrize("proof", ["", "{}", "[]", "null", '{"challenge_id": "x"}'])
def test_a_proof_that_cannot_be_read_decides_nothing(proof: str, cast: Cast, rita: Client) -> None:
    review = Clinic(cast, signature="passkey").hold()
    found = answer(rita, review, "approve", hx=True, proof_kind="signature", proof=proof)
    assert "A signature is needed" in found.content.decode()
    assert votes(review) == []


def test_without_scripts_a_signature_cannot_be_given_and_the_page_says_so(cast: Cast, rita: Client) -> None:
    review = Clinic(cast, signature="passkey").hold()
    found = answer(rita, review, "approve")
    assert found.status_code == 403
    assert "Signing needs JavaScript" in found.content.decode()
    assert status_of(review)[0] == "requested"


def test_without_a_passkey_the_card_leads_to_the_page_that_adds_one(cast: Cast, rita: Client) -> None:
    review = Clinic(cast, signature="passkey").hold()
    assert "/accounts/2fa/webauthn/add/" in rita.get(page(review)).content.decode()
    assert "A signature is needed" in answer(rita, review, "approve", hx=True).content.decode()


def test_an_unsigned_vote_is_shown_as_unsigned(cast: Cast, clinic: Clinic, rita: Client) -> None:
    review = clinic.hold()
    assert do(cast.session(cast.reviewer), review, "approve").status_code == 200
    assert ">unsigned<" in rita.get(page(review)).content.decode()


# -- the pages of passkeys ---------------------------------------------------------------------------------------------
def proven(client: Client, user: User) -> None:
    session = client.session
    session["account_authentication_methods"] = [{"method": "password", "at": time.time(), "reauthenticated": True}]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()


def add(client: Client, key: SoftKey) -> Any:
    assert client.get("/accounts/2fa/webauthn/add/").status_code == 200
    given = client.session["mfa.webauthn.state"]["challenge"]
    return client.post(
        "/accounts/2fa/webauthn/add/", {"name": "Desk", "credential": json.dumps(key.registration(challenge=given))}
    )


def entries() -> list[str]:
    with every_tenant():
        rows = LedgerEntry.objects.filter(subject_type="passkey").order_by("id")
        return list(rows.values_list("action", flat=True))


def test_adding_and_removing_a_passkey_on_its_page_is_on_the_ledger(cast: Cast, rita: Client) -> None:
    proven(rita, cast.reviewer)
    assert add(rita, SoftKey()).status_code == 302
    passkey = Passkey.objects.get(user=cast.reviewer)
    assert entries() == ["passkey.registered"]
    authenticator = passkey.authenticator
    assert authenticator is not None
    assert rita.post(f"/accounts/2fa/webauthn/keys/{authenticator.pk}/remove/").status_code == 302
    assert entries() == ["passkey.registered", "passkey.removed"]
    passkey.refresh_from_db()
    assert (passkey.authenticator_id, passkey.removed_at is not None) == (None, True)
    assert not Authenticator.objects.filter(user=cast.reviewer).exists()


def test_if_the_ledger_cannot_be_written_no_passkey_is_stored(cast: Cast, rita: Client) -> None:
    proven(rita, cast.reviewer)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table with pending triggers cannot be altered
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute(
            "ALTER TABLE governance_ledgerentry ADD CONSTRAINT no_more CHECK (action <> 'passkey.registered') NOT VALID"
        )
    assert add(rita, SoftKey()).status_code >= 500
    assert not Authenticator.objects.filter(user=cast.reviewer, type="webauthn").exists()
