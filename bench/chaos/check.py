"""The checker: what a history and the final state of the record prove, or which rule they break. Pure over both."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Lines = list[dict[str, Any]]
FINAL = {"preflight-denied", "completed", "failed-quarantined"}
ENDED_RUNS = {"completed", "cancelled"}
# Answers to intake that let something pass or made it wait, as opposed to refusals.
TAKEN = (201, 202)


@dataclass(frozen=True)
class Broken:
    rule: str
    what: str


class Run:
    """A history, sorted into what the rules ask for."""

    def __init__(self, lines: Lines) -> None:
        self.ops = [one for one in lines if one["kind"] == "op"]
        self.faults = [one for one in lines if one["kind"] == "fault"]
        self.effects = [one for one in lines if one["kind"] == "effect"]
        self.webhooks = [one for one in lines if one["kind"] == "webhook"]
        self.final: dict[str, Lines] = next((one["state"] for one in lines if one["kind"] == "final"), {})
        self.began = next((one["at"] for one in lines if one["kind"] == "start"), 0.0)
        self.ended = next((one["began"] for one in lines if one["kind"] == "rest"), float("inf"))
        self.rest = next((one for one in lines if one["kind"] == "rest"), {})
        self.verified = [one for one in lines if one["kind"] == "verified"]
        self.checked = [one for one in lines if one["kind"] == "checked"]
        self.denied = [one for one in lines if one["kind"] == "denied"]
        self.attempts = {one["id"]: one for one in self.final.get("attempts", [])}

    def named(self, *names: str) -> Lines:
        return [one for one in self.ops if one["name"] in names]

    def taken(self) -> Lines:
        return [one for one in self.named("intake") if one["status"] in TAKEN]


def acknowledged_is_present(run: Run) -> Iterator[str]:
    """What was acknowledged is on the record, in the state that was told or one that can follow it."""
    for op in run.taken():
        if op["id"] not in run.attempts:
            yield f"attempt {op['id']} was acknowledged at {op['ended']} and does not exist"
    for op in run.named("complete"):
        if op["status"] == 200 and run.attempts.get(op["attempt"], {}).get("state") != "completed":
            yield f"attempt {op['attempt']} was acknowledged as completed and is not"
    for op in run.named("review.approve", "review.reject"):
        wanted = "approved" if op["name"].endswith("approve") else "rejected"
        if op["status"] == 200 and run.attempts.get(op["attempt"], {}).get("review") != wanted:
            yield f"the review of attempt {op['attempt']} was acknowledged as {wanted} and is not"
    known = {one["id"] for one in run.final.get("events", [])}
    for op in run.named("event"):
        if op["status"] in (200, 202) and op["event"] not in known:
            yield f"event {op['event']} was acknowledged and does not exist"


def once_happens_at_most_once(run: Run) -> Iterator[str]:
    """A receiver of effect `once` is called at most once per attempt, whatever died meanwhile."""
    once = {one["id"] for one in run.attempts.values() if one["effect"] == "once"}
    calls = Counter(effect["attempt"] for effect in run.effects)
    for attempt, count in calls.items():
        if count > 1 and attempt in once:
            yield f"attempt {attempt} with effect once reached its receiver {count} times"
        if attempt not in run.attempts:
            yield f"the receiver was called for attempt {attempt}, which is not on record"
    for row in run.final.get("intents", []):
        if row["count"] > 1 and row["attempt"] in once:
            yield f"attempt {row['attempt']} with effect once has {row['count']} dispatch intents"


def nothing_runs_unrecorded(run: Run) -> Iterator[str]:
    """Before every call there is an intent; a completed call of ours has reached its receiver."""
    intents = {row["attempt"] for row in run.final.get("intents", [])}
    reached = {effect["attempt"] for effect in run.effects}
    for attempt in reached - intents:
        yield f"attempt {attempt} reached its receiver without a dispatch intent"
    for one in run.attempts.values():
        if one["connector"] == "http" and one["state"] == "completed" and one["id"] not in reached:
            yield f"attempt {one['id']} is completed and its receiver was never called"


def one_key_is_one_attempt(run: Run) -> Iterator[str]:
    """Except under a timeline contract, where each call is an attempt of its own. A refusal does not use a key up, so
    that it can be asked again; steps of a run share the key of their case."""
    told: dict[tuple[str, str], set[str]] = defaultdict(set)
    for op in run.taken():
        if op["contract"] != "timeline":
            told[op["contract"], op["key"]].add(op["id"])
    kept: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in run.attempts.values():
        refused = one["state"] == "preflight-denied"
        if one["key"] and "timeline" not in one["slug"] and not one["of_step"] and not refused:
            kept[one["slug"], one["key"]].add(one["id"])
    for (place, key), ids in [*told.items(), *kept.items()]:
        if len(ids) > 1:
            yield f"key {key} of {place} made {len(ids)} attempts"


def nothing_passes_during_an_outage(run: Run) -> Iterator[str]:
    """While the record (or the counters that throttles need) was away, nothing new was let in."""
    away = [(fault["away"], fault) for fault in run.faults if "ended" in fault.get("away", {})]
    for op in run.taken():
        for outage, fault in away:
            inside = outage["began"] <= op["began"] and op["ended"] <= outage["ended"]
            if inside and not (outage["what"] == "valkey" and op.get("replayed")):
                during = f"{fault['name']} {fault['target']}"
                yield f"{op['contract']} answered {op['status']} at {op['ended']} during {during}"


def everything_ends_or_says_why(run: Run) -> Iterator[str]:
    """What has not ended waits for somebody else, with a deadline or a reason that can be read."""
    for one in run.attempts.values():
        if (why := attempt_stuck(one)) is not None:
            yield f"attempt {one['id']} ({one['slug']}) is {one['state']}: {why}"
    for one in run.final.get("runs", []):
        if one["state"] in ENDED_RUNS or (one["state"] == "halted" and one["halt_reason"]):
            continue
        if one["state"] == "halted" or one["overdue"] or not one["waiting_steps"]:
            where = one.get("last_step", "")
            yield f"run {one['id']} is {one['state']} without a reason or a deadline to come: {where}"
    for one in run.final.get("outbox", []):
        yield f"event {one['id']} of the outbox is {one['status']} after {one['tries']} tries"
    for one in run.final.get("deliveries", []):
        if one["state"] == "pending" and not one["later"]:
            yield f"webhook {one['id']} is due and not sent"


def attempt_stuck(one: dict[str, Any]) -> str | None:
    if one["state"] in FINAL:
        return None if one["state"] == "completed" or one["reason_code"] else "ended without a reason"
    if one["state"] == "review-required":
        return None if one["review_in_time"] else "its review has no deadline to come"
    if one["state"] != "approved-for-execution":
        return "a state that should not last"
    if one["leased"]:
        return None  # by somebody who may be gone; the clock ends it then
    if one["connector"] == "http" and one["mode"] == "active":
        return "nobody executes it"
    return "its lease is over and nobody ended it" if one["lease_over"] else None


def deliveries_arrive(run: Run) -> Iterator[str]:
    """A webhook that is recorded as delivered reached its receiver."""
    reached = {one["id"] for one in run.webhooks}
    for one in run.final.get("deliveries", []):
        if one["state"] == "delivered" and one["event_id"] not in reached:
            yield f"webhook {one['event_id']} is recorded as delivered and never came"


def record_verifies(run: Run) -> Iterator[str]:
    """The ledger's hashes and heads, and every decision evaluated again, by the programs that operators use."""
    for one in run.verified:
        if one["code"] != 0:
            yield f"{one['name']} ended with {one['code']}: {one['said']}"
    for name in {"verify_ledger", "replay_decision"} - {one["name"] for one in run.verified}:
        yield f"{name} was not run"


def nothing_is_a_false_alarm(run: Run) -> Iterator[str]:
    """Before somebody forges a row, no check finds a fault, whatever died while it was written, sealed or compared."""
    for one in run.final.get("alarms", []):
        yield f"{one['kind']}: {one['what']}"
    for one in run.checked:
        if one["valid"] is False:
            yield f"the check from {one['began']} to {one['ended']} found a fault"


def deny_mode_stays(run: Run) -> Iterator[str]:
    """After a forgery nothing is let in, also when everything was killed meanwhile; and one row is named."""
    for one in run.denied:
        if let_in := [status for status in one["statuses"] if status in TAKEN]:
            yield f"in deny mode intake answered {let_in}"
        if 403 not in one["statuses"]:
            yield "in deny mode intake never answered 403"
        if not one["still_engaged"]:
            yield "deny mode ended by itself"
        if not one["only_the_forged_row"]:
            yield "another row than the forged one was named, or none"


RULES: tuple[Callable[[Run], Iterator[str]], ...] = (
    acknowledged_is_present,
    once_happens_at_most_once,
    nothing_runs_unrecorded,
    one_key_is_one_attempt,
    nothing_passes_during_an_outage,
    everything_ends_or_says_why,
    deliveries_arrive,
    record_verifies,
    nothing_is_a_false_alarm,
    deny_mode_stays,
)


def check(lines: Lines) -> list[Broken]:
    run = Run(lines)
    if not run.final:
        return [Broken("complete", "the history has no final state: the run did not end")]
    return [Broken(rule.__name__, what) for rule in RULES for what in rule(run)]


def figures(lines: Lines) -> dict[str, Any]:
    """How much was done, what came of it, and how long the longest standstill was."""
    run = Run(lines)
    broken = Counter(one.rule for one in check(lines))
    statuses = Counter(op["status"] for op in run.ops)
    made = [fault for fault in run.faults if "failed" not in fault]
    return {
        "operations": len(run.ops),
        "faults": len(made),
        "faults_by_kind": dict(sorted(Counter(f"{one['name']} {one['target']}" for one in made).items())),
        "faults_not_made": len(run.faults) - len(made),
        "attempts": len(run.attempts),
        "unanswered": statuses[0],
        "unavailable": sum(count for status, count in statuses.items() if status >= 500),
        "lost": broken["acknowledged_is_present"],
        "doubled": broken["once_happens_at_most_once"] + broken["one_key_is_one_attempt"],
        "passed_in_outage": broken["nothing_passes_during_an_outage"],
        "stuck": broken["everything_ends_or_says_why"],
        "checks": len(run.checked),
        "checks_killed": sum(one["killed"] for one in run.checked),
        "checks_whole": sum(one["valid"] is not None for one in run.checked),
        "false_alarms": broken["nothing_is_a_false_alarm"],
        "deny_mode_after_s": max((one["engaged_after_s"] for one in run.denied), default=None),
        "broken": sum(broken.values()),
        "longest_stall_s": longest_stalls(run),
        "at_rest_after_s": round(run.rest.get("ended", 0) - run.rest.get("began", 0), 1),
        "slowest_answer_s": round(max((op["ended"] - op["began"] for op in run.ops), default=0), 1),
    }


def longest_stalls(run: Run) -> dict[str, float]:
    """Per lane, the longest time between two results of it, while the clients asked."""
    lanes = {
        "intake": [op["ended"] for op in run.taken()],
        "execution": [one["at"] for one in run.effects],
        "webhooks": [one["at"] for one in run.webhooks],
    }
    within = {name: [at for at in times if run.began <= at <= run.ended] for name, times in lanes.items()}
    return {name: round(longest_gap(sorted(times)), 1) for name, times in within.items()}


def longest_gap(times: list[float]) -> float:
    return max((after - before for before, after in pairwise(times)), default=0.0)
