"""The conformance kit: a good module passes, and each way to get it wrong is found by its probe."""

import json
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from attempts.execution.adapters.base import AdapterCall, signature_headers, signing_secret
from sdk.conformance.messages import Kit, MessageForm, completed, secret_bytes
from sdk.conformance.probes import FORGERIES, changed, probes
from sdk.conformance.report import check
from tests.workflows import conformance_modules as modules
from workflows.kinds.base import checker
from workflows.webhooks.rules.events import TYPES, body_bytes, webhook_schema

pytestmark = pytest.mark.unit
ORGANIZATION = uuid4()
FORGED = {name for name, _, _ in FORGERIES}


def kit(form: MessageForm) -> Kit:
    secret = secret_bytes(signing_secret(ORGANIZATION))
    return Kit(secret=secret, form=form, run=uuid4(), clock=lambda: datetime.now(UTC))


def wrong(module: modules.Module, form: MessageForm, *, counted: bool = True) -> set[str]:
    findings = check(kit(form), module.send, (lambda: module.effects) if counted else None)
    assert len(findings) == len(probes())
    return {finding.probe for finding in findings if not finding.ok}


@pytest.mark.parametrize("form", MessageForm)
def test_a_module_that_does_as_the_docs_say_conforms(form: MessageForm) -> None:
    assert wrong(modules.Module(signing_secret(ORGANIZATION)), form) == set()


@pytest.mark.parametrize(
    ("kind", "form", "found"),
    [
        (modules.BelievesEverybody, MessageForm.CALL, FORGED | {"captured", "future"}),
        (modules.TakesOldSignatures, MessageForm.CALL, {"captured", "future"}),
        (modules.ChecksTheBodyOnlyIfSigned, MessageForm.WEBHOOK, {"unsigned"}),
        (modules.ReadsOneSignature, MessageForm.CALL, {"rotation"}),
        (modules.WorksEveryTime, MessageForm.CALL, {"twice", "at_once", "conflict"}),
        (modules.SaysDuplicate, MessageForm.CALL, {"twice", "at_once"}),
        (modules.LooksBeforeItLocks, MessageForm.CALL, {"at_once"}),
        (modules.LetsForgersUseKeysUp, MessageForm.CALL, FORGED),
        (modules.WantsThingsInOrder, MessageForm.WEBHOOK, {"reordered"}),
        (modules.TakesLateForForged, MessageForm.WEBHOOK, {"late"}),
        (modules.FallsOver, MessageForm.WEBHOOK, {"unreadable"}),
    ],
)
def test_each_way_to_get_it_wrong_is_found(kind: type[modules.Module], form: MessageForm, found: set[str]) -> None:
    """`body_flipped` may change a byte into one that is no JSON; a module that believes everybody then refuses it."""
    assert wrong(kind(signing_secret(ORGANIZATION)), form) - {"body_flipped"} == found - {"body_flipped"}


def test_without_a_count_of_effects_only_what_is_seen_from_outside_is_judged() -> None:
    module = modules.LooksBeforeItLocks(signing_secret(ORGANIZATION))
    assert wrong(module, MessageForm.CALL, counted=False) == set()
    assert max(module.effects.values()) > 1


def test_a_call_is_signed_and_shaped_as_the_http_adapter_does_it() -> None:
    checked = kit(MessageForm.CALL)
    message = checked.message("first")
    request = checked.sign(message)
    at = datetime.fromtimestamp(int(request.headers["webhook-timestamp"]), UTC)
    ours = signature_headers(organization_id=ORGANIZATION, message_id=message.id, at=at, body=message.body)
    assert ours.items() <= request.headers.items()
    call = AdapterCall(uuid4(), ORGANIZATION, "demo", "slug", 1, "op", "t", "p", "s", ("f",), "k", {}, 1.0)
    assert list(message.document) == list(call.document())
    assert request.headers["Idempotency-Key"] == message.document["effect_key"]


def test_webhooks_are_shaped_as_holdpoint_sends_them() -> None:
    checked = kit(MessageForm.WEBHOOK)
    started = checked.message("first")
    for message in (started, changed(started), completed(checked.message("second"), started)):
        schema = webhook_schema(TYPES[message.document["type"]])
        assert checker(schema).problems(dict(message.document)) == []
        parts = [message.document[name] for name in ("type", "timestamp", "data")]
        assert message.body == body_bytes(*parts)


def run(module: modules.Module, *options: str, monkeypatch: Any) -> tuple[int, str]:
    monkeypatch.setenv("HOLDPOINT_MODULE_SECRET", signing_secret(ORGANIZATION))
    out = StringIO()
    with modules.served(module) as url:
        try:
            call_command("check_module", url, *[one.replace("URL", url) for one in options], stdout=out)
        except SystemExit as end:
            return int(str(end.code)), out.getvalue()
        except CommandError as error:
            return error.returncode, str(error)
    return 0, out.getvalue()


def test_the_command_checks_a_server_and_prints_a_table_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    good = modules.Module(signing_secret(ORGANIZATION))
    code, said = run(good, "--allow-private", "--effects-url", "URL/effects", monkeypatch=monkeypatch)
    assert (code, f"Conforms to all {len(probes())} rules." in said) == (0, True)
    bad = modules.BelievesEverybody(signing_secret(ORGANIZATION))
    code, said = run(bad, "--allow-private", "--json", "--form", "webhook", monkeypatch=monkeypatch)
    document = json.loads(said)
    assert (code, document["conforms"], document["effects_counted"]) == (1, False, False)
    said_to_forged = {row["probe"]: row["said"] for row in document["findings"]}["wrong_secret"]
    assert said_to_forged == "answered 200 to a signature by another secret; 400, 401 or 403 was expected"


def test_what_cannot_be_checked_is_said_and_exits_with_two(monkeypatch: pytest.MonkeyPatch) -> None:
    module = modules.Module(signing_secret(ORGANIZATION))
    code, said = run(module, monkeypatch=monkeypatch)  # loopback, and nobody said that it is meant
    assert (code, "--allow-private" in said, module.answers) == (2, True, {})
    monkeypatch.setenv("HOLDPOINT_MODULE_SECRET", "whsec_short")
    for name in ("HOLDPOINT_MODULE_SECRET", "NOT_SET_AT_ALL"):
        with pytest.raises(CommandError) as caught:
            call_command("check_module", "https://module.example", "--secret-env", name)
        assert caught.value.returncode == 2
    monkeypatch.setenv("HOLDPOINT_MODULE_SECRET", signing_secret(ORGANIZATION))
    with pytest.raises(CommandError) as caught:
        call_command("check_module", "http://127.0.0.1:9", "--allow-private", "--seconds", "1")
    assert (caught.value.returncode, str(caught.value)) == (2, "The module did not answer.")
