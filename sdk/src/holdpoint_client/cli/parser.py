"""The grammar of the command line. Keys come from the environment: everybody on a machine sees its command lines."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from holdpoint_client.cli import commands
from holdpoint_client.results import State
from holdpoint_client.transport import VERSION

Command = Callable[..., int | None]
EPILOG = """environment: HOLDPOINT_URL, HOLDPOINT_KEY (and HOLDPOINT_KEY_STORE for `attempts replay`)

exit codes: 0 done, 1 the server said no, 2 command line or setting, 3 only a signed-in person may do this,
            4 no answer or busy: try again later"""
DECIDE = "Only people decide, and not by key: whoever decides is on record with it."
RESOLVE = "Only people say what happened to an action whose outcome failed or is unknown."
SECOND = "Only a person may release it, and not whoever engaged it."


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    return build_parser().parse_args(arguments)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdpoint",
        description="Operate Holdpoint from a shell.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"holdpoint-client {VERSION}")
    groups = parser.add_subparsers(required=True, metavar="what")
    for build_group in (_attempts, _reviews, _quarantine, _instances, _shutdowns, _holds, _events, _reasons):
        build_group(groups)
    return parser


class CommandGroup:
    """The commands about one noun."""

    def __init__(self, groups: Any, name: str, text: str) -> None:
        parser = groups.add_parser(name, help=text, description=text)
        self._verbs = parser.add_subparsers(required=True, metavar="do")

    def add(self, verb: str, command: Command, text: str, *, id_: bool = True, **fixed: Any) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = self._verbs.add_parser(verb, help=text, description=text)
        _common(parser)
        if id_:
            parser.add_argument("id", type=_uuid, help="its id")
        parser.set_defaults(command=command, **fixed)
        return parser

    def list(self, path: str, columns: Sequence[str], **filters: dict[str, Any]) -> None:
        text = "the newest first"
        parser = self.add(
            "list", commands.listing_command, text, id_=False, path=path, columns=columns, filters=list(filters)
        )
        parser.add_argument("--limit", type=_count, default=50, help="rows at most (50)")
        for name, how in filters.items():
            parser.add_argument(f"--{name.replace('_', '-')}", dest=name, **how)

    def show(self, path: str) -> None:
        self.add("show", commands.show_command, "everything about one", path=path)

    def people(self, verb: str, why: str, page: str) -> None:
        self.add(verb, commands.people_only_command, f"{why} Says where.", why=why, page=page)


def _attempts(groups: Any) -> None:
    group = CommandGroup(groups, "attempts", "governed actions")
    states = [state.value for state in State]
    moments = {"metavar": "MOMENT", "help": "ISO 8601"}
    group.list(
        "/attempts",
        commands.ATTEMPT,
        state={"choices": states},
        workflow_slug={"metavar": "SLUG"},
        contract_version={"metavar": "N"},
        created_after=moments,
        created_before=moments,
        idempotency_key={"metavar": "KEY"},
    )
    group.show("/attempts")
    group.add("explain", commands.attempt_explain_command, "everything that holds it up right now")
    group.add("timeline", commands.attempt_timeline_command, "what the record says, in order")
    group.add("cancel", commands.attempt_cancel_command, "withdraw it, before its first lease")
    replay = group.add(
        "replay", commands.attempt_replay_command, "a new attempt with the same content, where that is allowed"
    )
    replay.add_argument("--ref", help="a name for this replay; without one there is one replay per attempt")


def _reviews(groups: Any) -> None:
    group = CommandGroup(groups, "reviews", "what waits for people")
    statuses = ["requested", "approved", "rejected", "confirmed", "overridden", "decided", "expired", "canceled"]
    kinds = ["release", "human_review", "human_task"]
    group.list("/reviews", commands.REVIEW, status={"choices": statuses}, kind={"choices": kinds}, tier={})
    group.show("/reviews")
    for verb in ("approve", "reject"):
        group.people(verb, DECIDE, "/review/{id}")


def _quarantine(groups: Any) -> None:
    group = CommandGroup(groups, "quarantine", "what failed, or nobody knows the outcome of")
    categories = ["outcome_unknown", "adapter_failure", "timeout", "invalid_response", "policy_changed", "lease_lost"]
    yes = {"choices": ["true", "false"]}
    group.list("/quarantine-cases", commands.CASE, category={"choices": categories}, resolved=yes)
    group.show("/quarantine-cases")
    group.people("resolve", RESOLVE, "/admin/attempts/quarantinecase/{id}/change/")


def _instances(groups: Any) -> None:
    group = CommandGroup(groups, "instances", "runs of workflows")
    statuses = ["queued", "running", "waiting_approval", "completed", "halted", "cancelled"]
    group.list(
        "/workflow-instances",
        commands.RUN,
        status={"choices": statuses},
        case_id={"metavar": "ID"},
        definition_id={"metavar": "ID"},
        halt_reason={"metavar": "CODE"},
    )
    group.show("/workflow-instances")
    texts = {
        "halt": "stop it",
        "resume": "go on where it halted",
        "cancel": "end it for good",
        "retry-step": "start its step anew",
        "supersede": "end it, and run the case under the latest definition",
    }
    for verb, text in texts.items():
        _reasoned(group.add(verb, commands.intervene_command, text, act=verb))


def _shutdowns(groups: Any) -> None:
    group = CommandGroup(groups, "shutdown", "the kill switch")
    group.list("/shutdowns", commands.SHUTDOWN, state={"choices": ["engaged", "released"]})
    engage = group.add(
        "engage", commands.shutdown_engage_command, "stop everything in a scope, from the next request on", id_=False
    )
    engage.add_argument("scope", choices=["organization", "contract", "connector", "global", "region"])
    engage.add_argument("target", nargs="?", default="", help="a contract's slug, a connector, a region")
    engage.add_argument("--drill", action="store_true", help="a rehearsal: nothing stops")
    engage.add_argument("--yes", action="store_true", help="do not ask")
    _reasoned(engage)
    group.people("release", SECOND, "/admin/governance/shutdown/{id}/change/")


def _holds(groups: Any) -> None:
    group = CommandGroup(groups, "holds", "legal holds: what must be kept")
    scopes = ["organization", "contract", "context", "attempt", "run", "person"]
    group.list("/legal-holds", commands.HOLD, state={"choices": ["active", "released"]}, scope={"choices": scopes})
    group.show("/legal-holds")
    place = group.add("place", commands.hold_place_command, "keep it, whatever retention or deletion says", id_=False)
    place.add_argument("scope", choices=scopes)
    place.add_argument("target", nargs="?", default="", help="a slug, a reference or an id; empty for all")
    place.add_argument("--authority-ref", default="", help="who demands it, by reference")
    _reasoned(place)
    group.people("release", SECOND.replace("engaged", "placed"), "/admin/governance/legalhold/{id}/change/")


def _events(groups: Any) -> None:
    group = CommandGroup(groups, "events", "what modules report")
    send = group.add("send", commands.event_send_command, "hand in one event", id_=False)
    send.add_argument("file", help="the envelope as JSON; - is standard input")


def _reasons(groups: Any) -> None:
    parser = groups.add_parser("reasons", help="the reason codes that there are")
    _common(parser)
    parser.add_argument("--scope", help="such as intervention, halt or quarantine")
    columns = ("scope", "code", "label", "requires_note")
    parser.set_defaults(
        command=commands.listing_command, path="/reason-codes", columns=columns, filters=["scope"], limit=500
    )


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the server's own document")
    parser.add_argument("--url", help="instead of HOLDPOINT_URL")


def _reasoned(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", metavar="CODE", help="a reason code; asked for if left out")
    parser.add_argument("--note", default="", help="where the code demands one; at most 280 characters, no names")


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError("an id, such as 0199a1c2-0000-7000-8000-000000000000") from None


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 10_000:
        raise argparse.ArgumentTypeError("a number from 1 to 10000")
    return int(text)
