"""The checker of chaos runs finds each rule broken once, and nothing in a history that breaks none. And the same seed
makes the same run."""

from collections.abc import Callable
from copy import deepcopy
from itertools import islice
from typing import Any

import pytest

from bench.chaos.check import check, figures
from bench.chaos.plan import FAULTS, faults, operations

pytestmark = pytest.mark.unit
Lines = list[dict[str, Any]]


def op(name: str, began: float, status: int, **more: Any) -> dict[str, Any]:
    return {"kind": "op", "name": name, "client": 0, "began": began, "ended": began + 0.1, "status": status, **more}


def attempt(name: str, state: str, **more: Any) -> dict[str, Any]:
    plain = {"slug": "demo-allow", "effect": "idempotent", "connector": "external", "mode": "active", "of_step": False}
    over = {"reason_code": "", "lease_over": False, "leased": False, "review": None, "review_in_time": None}
    return {"id": name, "key": f"key-{name}", "state": state} | plain | over | more


def sound() -> Lines:
    """A short run in which everything went well, around an outage of the database."""
    state = {
        "attempts": [
            attempt("a", "completed"),
            attempt("b", "completed", slug="demo-once-http", effect="once", connector="http"),
            attempt("c", "review-required", slug="demo-hold", review="requested", review_in_time=True),
            attempt("d", "completed", slug="demo-hold", review="approved"),
            attempt("e", "preflight-denied", reason_code="throttle_unavailable", key="key-a"),
        ],
        "runs": [
            {"id": "r", "state": "waiting_approval", "halt_reason": "", "overdue": False, "waiting_steps": 1},
            {"id": "h", "state": "halted", "halt_reason": "step_timed_out", "overdue": True, "waiting_steps": 0},
        ],
        "events": [{"id": "event-1"}],
        "outbox": [],
        "deliveries": [{"id": "w", "event_id": "sent-1", "state": "delivered", "tries": 1, "later": False}],
        "alarms": [],
        "intents": [{"attempt": "b", "count": 1}],
    }
    return [
        {"kind": "start", "seed": 1, "seconds": 10, "at": 0.0},
        op("intake", 1, 201, contract="allow", key="key-a", id="a"),
        op("intake", 2, 201, contract="once_http", key="key-b", id="b"),
        {"kind": "effect", "at": 2.5, "attempt": "b"},
        op("intake", 3, 202, contract="hold", key="key-c", id="c"),
        op("intake", 3.5, 202, contract="hold", key="key-d", id="d"),
        op("review.approve", 4, 200, attempt="d"),
        op("complete", 4.5, 200, attempt="d"),
        op("event", 5, 202, event="event-1"),
        {"kind": "webhook", "at": 5.2, "id": "sent-1"},
        op("intake", 6.5, 503, contract="allow", key="key-f"),
        {
            "kind": "fault",
            "name": "kill",
            "target": "postgres",
            "began": 6,
            "ended": 8,
            "away": {"what": "postgres", "began": 6.1, "ended": 7.9},
        },
        op("intake", 8.5, 201, contract="allow", key="key-a", id="a", replayed=True),
        {"kind": "rest", "began": 10, "ended": 11, "ready_after": 0.1, "left": 0},
        {"kind": "final", "state": state},
        {"kind": "checked", "began": 1, "ended": 2, "killed": False, "valid": True},
        {"kind": "checked", "began": 3, "ended": 4, "killed": True, "valid": None},
        {
            "kind": "denied",
            "engaged_after_s": 20.0,
            "statuses": [0, 403, 503],
            "still_engaged": True,
            "only_the_forged_row": True,
        },
        {"kind": "verified", "name": "verify_ledger", "code": 0, "said": ""},
        {"kind": "verified", "name": "replay_decision", "code": 0, "said": ""},
    ]


def state_of(lines: Lines) -> dict[str, Lines]:
    return next(one["state"] for one in lines if one["kind"] == "final")


def row(lines: Lines, table: str, name: str) -> dict[str, Any]:
    return next(one for one in state_of(lines)[table] if one["id"] == name)


def of(lines: Lines, kind: str) -> dict[str, Any]:
    return next(one for one in lines if one["kind"] == kind)


def without(lines: Lines, table: str, name: str) -> None:
    state_of(lines)[table].remove(row(lines, table, name))


def completed_twice(lines: Lines) -> None:
    lines.insert(2, op("intake", 1.5, 201, contract="allow", key="key-a", id="z"))
    state_of(lines)["attempts"].append(attempt("z", "completed", slug="demo-other"))


BREAKS: dict[str, tuple[str, Callable[[Lines], Any]]] = {
    "an attempt is gone": ("acknowledged_is_present", lambda lines: without(lines, "attempts", "a")),
    "a report is gone": (
        "acknowledged_is_present",
        lambda lines: row(lines, "attempts", "d").update(state="approved-for-execution"),
    ),
    "a vote is gone": ("acknowledged_is_present", lambda lines: row(lines, "attempts", "d").update(review="requested")),
    "an event is gone": ("acknowledged_is_present", lambda lines: without(lines, "events", "event-1")),
    "called twice": (
        "once_happens_at_most_once",
        lambda lines: lines.insert(4, {"kind": "effect", "at": 9, "attempt": "b"}),
    ),
    "two intents": ("once_happens_at_most_once", lambda lines: state_of(lines)["intents"][0].update(count=2)),
    "called without an intent": ("nothing_runs_unrecorded", lambda lines: state_of(lines)["intents"].clear()),
    "completed without a call": ("nothing_runs_unrecorded", lambda lines: lines.pop(3)),
    "one key told twice": ("one_key_is_one_attempt", completed_twice),
    "one key kept twice": (
        "one_key_is_one_attempt",
        lambda lines: state_of(lines)["attempts"].append(attempt("z", "completed", key="key-a")),
    ),
    "allowed in an outage": (
        "nothing_passes_during_an_outage",
        lambda lines: lines.insert(5, op("intake", 7, 201, contract="allow", key="key-a", id="a", replayed=True)),
    ),
    "an execution stands still": (
        "everything_ends_or_says_why",
        lambda lines: row(lines, "attempts", "b").update(state="approved-for-execution"),
    ),
    "a review without a deadline": (
        "everything_ends_or_says_why",
        lambda lines: row(lines, "attempts", "c").update(review_in_time=False),
    ),
    "a lease that nobody ends": (
        "everything_ends_or_says_why",
        lambda lines: row(lines, "attempts", "a").update(state="approved-for-execution", lease_over=True),
    ),
    "ended without a reason": (
        "everything_ends_or_says_why",
        lambda lines: row(lines, "attempts", "e").update(reason_code=""),
    ),
    "a run that waits for nothing": (
        "everything_ends_or_says_why",
        lambda lines: row(lines, "runs", "r").update(waiting_steps=0),
    ),
    "a run that halts without a reason": (
        "everything_ends_or_says_why",
        lambda lines: row(lines, "runs", "h").update(halt_reason=""),
    ),
    "an event that stays": (
        "everything_ends_or_says_why",
        lambda lines: state_of(lines)["outbox"].append({"id": "o", "status": "pending", "tries": 3}),
    ),
    "a webhook that stays": (
        "everything_ends_or_says_why",
        lambda lines: row(lines, "deliveries", "w").update(state="pending"),
    ),
    "a webhook that never came": ("deliveries_arrive", lambda lines: lines.pop(9)),
    "a fault that nobody made": (
        "nothing_is_a_false_alarm",
        lambda lines: state_of(lines)["alarms"].append({"kind": "fault", "what": "attempts_attempt a"}),
    ),
    "a check that finds it": (
        "nothing_is_a_false_alarm",
        lambda lines: of(lines, "checked").update(valid=False),
    ),
    "somebody is let in": ("deny_mode_stays", lambda lines: of(lines, "denied")["statuses"].append(201)),
    "nobody is refused": ("deny_mode_stays", lambda lines: of(lines, "denied").update(statuses=[0, 503])),
    "deny mode ends": ("deny_mode_stays", lambda lines: of(lines, "denied").update(still_engaged=False)),
    "another row is named": ("deny_mode_stays", lambda lines: of(lines, "denied").update(only_the_forged_row=False)),
    "the ledger is wrong": ("record_verifies", lambda lines: lines[-2].update(code=1)),
    "the decisions were not replayed": ("record_verifies", lambda lines: lines.pop()),
    "the run did not end": ("complete", lambda lines: lines.remove(next(x for x in lines if x["kind"] == "final"))),
}


def test_a_run_in_which_everything_went_well_breaks_nothing() -> None:
    assert check(sound()) == []
    told = figures(sound())
    assert (told["operations"], told["faults"], told["lost"], told["doubled"], told["stuck"]) == (9, 1, 0, 0, 0)
    assert told["longest_stall_s"]["intake"] == 5.0


@pytest.mark.parametrize("what", BREAKS)
def test_each_rule_that_is_broken_once_is_found(what: str) -> None:
    rule, spoil = BREAKS[what]
    lines = deepcopy(sound())
    spoil(lines)
    assert rule in {one.rule for one in check(lines)}


def test_the_same_seed_makes_the_same_operations_and_faults_and_another_one_others() -> None:
    def plan(seed: int) -> tuple[Any, ...]:
        return tuple(islice(operations(seed, 0), 50)), tuple(faults(seed, seconds=300, calm=3))

    assert plan(4) == plan(4)
    assert plan(4) != plan(5)
    assert list(islice(operations(4, 0), 50)) != list(islice(operations(4, 1), 50))


def test_a_long_run_sees_every_kind_of_fault_and_ends_calmly() -> None:
    planned = faults(1, seconds=600, calm=3)
    assert {(one.name, one.target) for one in planned} == set(FAULTS)
    assert all(one.at + one.seconds <= 597 for one in planned)
