"""Sealed secrets outlive a change of SECRET_KEY: nothing is lost, at whatever moment somebody looks or the power
fails."""

import json
import os
import threading
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.utils import decrypt
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from attempts.notify.models import ChatWorkspace
from attempts.notify.services.chat_workspace import TOKEN, signing_secret_of, workspace_connect
from config.metrics import render_metrics
from governance.authority.models import AuthorityChange
from governance.identity.models import IdentityProvider
from governance.identity.selectors import client_secret
from governance.ledger.models import LedgerEntry
from governance.outside import secret_box
from governance.outside.secret_box import (
    SECOND_FACTOR,
    SealedColumn,
    SecretKeyMissing,
    SecretUnreadable,
    seal,
    sealed_columns,
    unseal,
)
from governance.people.models import User
from governance.secrets.selectors import SealedText, Standing, secrets_standing
from governance.secrets.services import _put, secrets_rotate
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governance.identity.support import TERMS
from tests.processes import ended, start

pytestmark = pytest.mark.django_db(transaction=True)
NEW = "the-next-secret-key-of-this-installation-0123456789abcdef"
SECRET = "JBSWY3DPEHPK3PXP"  # of a code app


def changed(settings: Any, new: str = NEW) -> None:
    """SECRET_KEY as after step two of the runbook: the new one signs, the former one still opens."""
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = new, [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def people(count: int) -> list[User]:
    found = [User.objects.create(username=f"person-{number}") for number in range(count)]
    for person in found:
        TOTP.activate(person, SECRET)
    return found


def rotate(**options: Any) -> Any:
    with every_tenant():
        return secrets_rotate(actor=SYSTEM, at=timezone.now(), **options)


def secrets_of_people() -> set[str]:
    return {decrypt(one.data["secret"]) for one in Authenticator.objects.filter(type="totp")}


def command(*options: str) -> tuple[int, dict[str, Any]]:
    out = StringIO()
    try:
        call_command("rotate_secrets", "--json", *options, stdout=out)
    except CommandError as error:
        return error.returncode, json.loads(out.getvalue())
    return 0, json.loads(out.getvalue())


@pytest.fixture
def workspace(cast: Cast) -> ChatWorkspace:
    with every_tenant():
        return workspace_connect(
            actor=SYSTEM,
            at=timezone.now(),
            organization=cast.organization,
            name="Clinic",
            team_id="T024BE7LD",
            bot_token="xoxb-the-bot-token",
            signing_secret="the-signing-secret",
        )


def test_what_a_former_key_sealed_opens_until_that_key_is_taken_away(settings: Any) -> None:
    sealed = seal("a secret", purpose=SECOND_FACTOR)
    changed(settings)
    assert unseal(sealed, purpose=SECOND_FACTOR) == "a secret"
    assert unseal(seal("another", purpose=SECOND_FACTOR), purpose=SECOND_FACTOR) == "another"
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(SecretKeyMissing):
        unseal(sealed, purpose=SECOND_FACTOR)


def test_a_text_from_before_key_ids_opens_too_and_an_altered_one_does_not(settings: Any) -> None:
    sealed = seal("a secret", purpose=SECOND_FACTOR)
    old_form = sealed.split(".")[2]
    changed(settings)
    assert unseal(old_form, purpose=SECOND_FACTOR) == "a secret"
    for wrong in (sealed[:-4] + "AAA=", sealed.replace("s1.", "s1.x"), old_form[:-3], "", "s1.", "s1.."):
        with pytest.raises(SecretUnreadable):
            unseal(wrong, purpose=SECOND_FACTOR)
    with pytest.raises(SecretUnreadable):
        unseal(sealed, purpose=TOKEN)


def test_everything_sealed_is_sealed_again_and_nothing_is_lost(settings: Any, workspace: ChatWorkspace) -> None:
    (rita,) = people(1)
    codes = RecoveryCodes.activate(rita).generate_codes()
    changed(settings)
    assert command("--check")[0] == 1
    code, said = command()
    assert code == 0
    assert sum(said["resealed"].values()) == 4
    settings.SECRET_KEY_FALLBACKS = []  # the former key is gone for good
    assert secrets_of_people() == {SECRET}
    assert RecoveryCodes(Authenticator.objects.get(user=rita, type="recovery_codes")).generate_codes() == codes
    with every_tenant():
        workspace.refresh_from_db()
    assert signing_secret_of(workspace) == "the-signing-secret"
    assert unseal(workspace.bot_token_sealed, purpose=TOKEN) == "xoxb-the-bot-token"
    assert command("--check") == (0, {"resealed": {}, "sealed_under": {"current": 4, "former": 0, "unknown": 0}})
    with every_tenant():
        entry = LedgerEntry.objects.get(action="secrets.resealed")
    assert (entry.payload["resealed"], entry.payload["left"], entry.payload["unreadable"]) == (4, 0, 0)
    assert "xoxb" not in json.dumps(entry.payload)


def test_a_second_run_changes_nothing_and_writes_nothing(settings: Any) -> None:
    people(2)
    changed(settings)
    rotate()
    stored = list(Authenticator.objects.order_by("id").values_list("data", flat=True))
    assert not rotate().resealed
    assert list(Authenticator.objects.order_by("id").values_list("data", flat=True)) == stored
    with every_tenant():
        assert LedgerEntry.objects.filter(action="secrets.resealed").count() == 1


def die_after(batches: int) -> None:
    done = []

    def progress(count: int, total: int) -> None:
        done.append(count)
        if len(done) == batches:
            os._exit(9)

    rotate(batch=3, progress=progress)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_killed_in_the_middle_it_is_continued_and_all_open_at_every_moment(settings: Any, batches: int) -> None:
    people(10)
    changed(settings)
    keys = {"SECRET_KEY": settings.SECRET_KEY, "SECRET_KEY_FALLBACKS": settings.SECRET_KEY_FALLBACKS}
    assert ended(start(die_after, batches, settings=keys)) == 9
    assert secrets_standing() == Standing(current=3 * batches, former=10 - 3 * batches)
    assert secrets_of_people() == {SECRET}, "half way, both keys open what they sealed"
    assert sum(rotate().resealed.values()) == 10 - 3 * batches
    settings.SECRET_KEY_FALLBACKS = []
    assert secrets_of_people() == {SECRET}


def test_two_rotations_at_once_seal_each_text_once(settings: Any) -> None:
    people(30)
    changed(settings)
    counts: list[int] = []

    def work() -> None:
        counts.append(sum(rotate(batch=2).resealed.values()))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(counts) == 30
    assert secrets_standing() == Standing(current=30)
    assert secrets_of_people() == {SECRET}


def test_what_somebody_replaces_meanwhile_stays_as_they_left_it(settings: Any) -> None:
    """Between the reading of a batch and its writing: the compare-and-set."""
    first, second = people(2)
    changed(settings)
    other = "KRSXG5CTMVRXEZLU"

    def replace(done: int, total: int) -> None:
        # Called after the first row's batch, before the second one is read.
        TOTP(Authenticator.objects.get(user=first)).instance.delete()
        TOTP.activate(first, other)

    rotate(batch=1, progress=replace)
    assert {decrypt(one.data["secret"]) for one in Authenticator.objects.filter(user=first)} == {other}
    stale = Authenticator.objects.get(user=second).data["secret"]
    text = secret_box.seal("stale", purpose=SECOND_FACTOR)
    column = next(one for one in sealed_columns() if one.json_key == "secret")
    row = Authenticator.objects.get(user=second).id
    assert not _put(column, SealedText(row, "what was read before"), text)
    assert Authenticator.objects.get(user=second).data["secret"] == stale


def test_other_facts_beside_a_sealed_text_stay(settings: Any) -> None:
    """A recovery code that is used while its seed is sealed again stays used."""
    (rita,) = people(1)
    codes = RecoveryCodes.activate(rita)
    spent = codes.generate_codes()[0]
    assert codes.validate_code(spent)
    changed(settings)
    rotate()
    again = RecoveryCodes(Authenticator.objects.get(user=rita, type="recovery_codes"))
    assert not again.validate_code(spent)
    assert len(again.get_unused_codes()) == len(again.generate_codes()) - 1


def test_an_old_process_that_seals_behind_the_pass_is_counted_and_the_check_says_so(settings: Any) -> None:
    people(1)
    former = settings.SECRET_KEY
    changed(settings)
    rotate()
    new, fallbacks = settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = former, []
    TOTP.activate(User.objects.create(username="late"), SECRET)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = new, fallbacks
    assert command("--check") == (1, {"resealed": {}, "sealed_under": {"current": 1, "former": 1, "unknown": 0}})
    assert b'holdpoint_secrets_sealed{key="former"} 1.0' in render_metrics()
    assert command()[0] == 0


def test_a_text_under_a_key_that_is_nowhere_is_left_alone_and_named(settings: Any) -> None:
    people(2)
    stored = list(Authenticator.objects.order_by("id").values_list("data", flat=True))
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, []
    code, said = command()
    assert (code, said["sealed_under"]) == (1, {"current": 0, "former": 0, "unknown": 2})
    assert list(Authenticator.objects.order_by("id").values_list("data", flat=True)) == stored
    assert b'holdpoint_secrets_sealed{key="unknown"} 2.0' in render_metrics()


def test_two_changes_of_the_key_in_a_row_lose_nothing(settings: Any) -> None:
    people(3)
    changed(settings)
    people_before = secrets_of_people()
    changed(settings, new="yet-another-secret-key-of-this-installation-9876543210fedcba")
    rotate()
    settings.SECRET_KEY_FALLBACKS = []
    assert secrets_of_people() == people_before == {SECRET}


def confirmed(cast: Cast) -> int:
    """What the second person is answered who confirms the newest proposal."""
    with every_tenant():
        change = AuthorityChange.objects.latest("id")
    url = f"/api/v1/authority-changes/{change.id}/confirm"
    return int(cast.fresh(cast.session(cast.second_operator)).post(url, {}, format="json").status_code)


def test_a_secret_that_waits_for_a_second_person_outlives_the_change_or_is_asked_for_again(
    settings: Any, cast: Cast
) -> None:
    """The details of a proposal never change, so that its secret is sealed again when it is confirmed."""
    _ = cast.operator, cast.second_operator
    url, body = "/api/v1/identity-providers", {"slug": "clinic-login", "kind": "oidc", "client_secret": "very secret"}
    assert cast.session(cast.operator).post(url, body | TERMS, format="json").status_code == 202
    changed(settings)
    rotate()
    assert confirmed(cast) == 200
    settings.SECRET_KEY_FALLBACKS = []  # the former key is gone for good
    with every_tenant():
        provider = IdentityProvider.objects.get()
    assert client_secret(provider) == "very secret"
    again = cast.session(cast.operator).patch(f"{url}/{provider.id}", {"client_secret": "newer"}, format="json")
    assert again.status_code == 202, again.json()
    changed(settings, new="yet-another-secret-key-of-this-installation-9876543210fedcba")
    rotate()
    settings.SECRET_KEY_FALLBACKS = []  # before anybody confirmed
    assert confirmed(cast) == 409
    with every_tenant():
        provider.refresh_from_db()
    assert client_secret(provider) == "very secret"


def test_nothing_can_be_sealed_for_a_place_that_rotation_does_not_know() -> None:
    with pytest.raises(RuntimeError, match="register_sealed"):
        seal("a secret", purpose="a purpose that nobody registered")


def test_every_column_that_is_called_sealed_is_registered_and_every_registered_one_exists() -> None:
    registered = {(column.model, column.column) for column in sealed_columns()}
    named = {
        (model._meta.label, field.name)
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if field.name.endswith("_sealed")
    }
    assert named <= registered, "register_sealed in apps.py, or rotate_secrets will lose it"
    for column in sealed_columns():
        assert apps.get_model(column.model)._meta.get_field(column.column)
    assert SealedColumn("attempts.ChatWorkspace", "bot_token_sealed", TOKEN) in sealed_columns()
