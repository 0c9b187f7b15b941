"""One function per command: ask the API, show the answer. What only people may do is said, and where."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from holdpoint_client.cli.output import Screen
from holdpoint_client.client import Holdpoint
from holdpoint_client.errors import HoldpointError, SettingMissing

PEOPLE_ONLY = 3
ATTEMPT = ("id", "state", "reason_code", "workflow_slug", "operation", "target_ref", "created_at")
REVIEW = ("id", "status", "kind", "tier", "attempt_id", "expires_at")
CASE = ("id", "category", "reason_code", "attempt_id", "resolution", "opened_at")
RUN = ("id", "status", "mode", "case_id", "halt_reason", "created_at")
SHUTDOWN = ("id", "state", "scope", "target", "drill", "reason_code", "engaged_at")
HOLD = ("id", "state", "scope", "target", "reason_code", "placed_at")
CODE_LIMIT = 200


def listing_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    """Every `list`: the filters that were given, up to `--limit` rows."""
    given = {name: getattr(options, name) for name in options.filters}
    found = list(client.rows(options.path, most=options.limit, **given))
    screen.rows(found, options.columns, "nothing found")


def show_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    screen.one(client.read(f"{options.path}/{options.id}"))


def attempt_explain_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    found = client.read(f"/attempts/{options.id}/explain")
    if screen.json:
        return screen.one(found)
    screen.say(f"{found['state']}: " + ("what is in the way:" if found["obstacles"] else "nothing is in the way"))
    for obstacle in found["obstacles"]:
        screen.say(f"  {obstacle['kind']}: {obstacle['detail']}")
    return None


def attempt_timeline_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    found = client.read(f"/attempts/{options.id}/timeline")
    screen.rows(found, ("at", "wording", "actor_kind", "actor", "reason_code"), "nothing on record")


def attempt_cancel_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    screen.one(dict(client.cancel(options.id).data))


def attempt_replay_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    """The key is stored first: the same command again is the same replay."""
    answer = client.replay(options.id, ref=options.ref)
    screen.say("This replay was asked for before." if answer.replayed else "A new attempt.")
    screen.one({**answer.attempt.data, "id": answer.attempt.id, "state": answer.attempt.state})


def intervene_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    done = client.act(f"/workflow-instances/{options.id}/{options.act}", reasoned(client, options, "intervention"))
    if screen.json:
        return screen.one(done)
    screen.say(f"{options.act}: run {options.id} is now {done['instance']['status']}")
    return None


def shutdown_engage_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    """Shows first what it would stop; `--yes` is for scripts."""
    target = {"scope": options.scope, "target": options.target}
    preview = client.act("/shutdowns/preview", target)
    screen.say("A drill, nothing stops. It is about:" if options.drill else "This stops:")
    screen.say(f"  contracts: {preview['contracts']}, organizations: {preview['organizations']}")
    for name in preview["named"]:
        screen.say(f"  {name}")
    body = target | reasoned(client, options, "intervention") | {"drill": options.drill}
    agreed(options, "Engage it?")
    screen.one(client.act("/shutdowns", body))


def hold_place_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    body = {"scope": options.scope, "target": options.target, "authority_ref": options.authority_ref}
    screen.one(client.act("/legal-holds", body | reasoned(client, options, "intervention")))


def event_send_command(client: Holdpoint, options: Namespace, screen: Screen) -> None:
    """From a file or standard input. An `event_id` that is known changes nothing."""
    try:
        envelope = json.loads(sys.stdin.read() if options.file == "-" else Path(options.file).read_text())
    except OSError as error:
        raise SettingMissing(f"the file cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingMissing("the event is not JSON") from error
    screen.one(client.send_event(envelope))


def people_only_command(client: Holdpoint, options: Namespace, screen: Screen) -> int:
    """No key opens this door, whatever its scopes: somebody has to be signed in, and is on record with it."""
    place = client.settings.url + options.page.format(id=options.id)
    return screen.fail(f"{options.why} Sign in and do it here: {place}", PEOPLE_ONLY)


def reasoned(client: Holdpoint, options: Namespace, scope: str) -> dict[str, Any]:
    """Every intervention names a reason code. On a terminal it is asked for; a script has to give it."""
    code = options.reason
    if not code:
        if not sys.stdin.isatty():
            raise SettingMissing("give --reason <code>; `holdpoint reasons` lists them")
        for row in known_codes(client, scope):
            print(f"  {row['code']:32} {row['label']}", file=sys.stderr)
        print("Reason code: ", end="", file=sys.stderr, flush=True)
        code = sys.stdin.readline().strip()
    return {"reason_code": code, "note": options.note}


def known_codes(client: Holdpoint, scope: str) -> list[dict[str, Any]]:
    """None where the key may not read them: the server checks the code in any case."""
    try:
        return list(client.rows("/reason-codes", most=CODE_LIMIT, scope=scope, active="true"))
    except HoldpointError:
        return []


def agreed(options: Namespace, question: str) -> None:
    if options.yes or getattr(options, "drill", False):
        return
    if not sys.stdin.isatty():
        raise SettingMissing("give --yes to do this without being asked")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise SettingMissing("not done")
