"""Random definitions that go only forward, and random things that happen to their runs."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.workflows.engine.support import KINDS, definition, step
from workflows.definitions.rules.document import TERMINAL, Definition

CALLED = ("run_ai_review", "call_once", "call_check", "set_case_status", "gate_on_consent", "require_images")
ALL = tuple(sorted(KINDS))
VERDICTS = ("allow", "hold", "later", "deny")
HAPPENINGS = (
    "complete", "complete", "complete", "complete_otherwise", "unfit", "fail", "fail_for_good", "fail_tightened",
    "again", "stale", "foreign", "forged", "elsewhere",
    "time_out", "time_out_early", "time_out_elsewhere", "deadline", "retry_due", "retry_due", "retry_early", "tick",
    "gate", "gate_elsewhere", "halt", "resume", "resume", "retry_step", "cancel", "supersede", "start",
)  # fmt: skip
RARE = ("deadline", "cancel", "supersede")
# Made once: making a strategy takes longer than drawing from it.
COUNTS = st.integers(1, 8)
SECONDS = st.sampled_from([60, 1000, 1_000_000])
KIND_NAMES = st.sampled_from(ALL + CALLED * 2)
TIMEOUTS = st.sampled_from([None, 1, 30, 1000])
RETRIES = st.integers(0, 3)
BACKOFFS = st.sampled_from(["exponential", "linear", "fixed"])
DELAYS = st.sampled_from([1, 5, 400])


@cache
def _one_of(*values: str) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


@st.composite
def definitions(draw: Any) -> Definition:
    """Up to eight steps; every transition leads to a later step or to the end."""
    count = draw(COUNTS)
    return definition(
        {f"s{number}": _step(draw, number, count) for number in range(count)},
        seconds=draw(SECONDS),
    )


def _step(draw: Any, number: int, count: int) -> dict[str, Any]:
    kind = draw(KIND_NAMES)
    later = [f"s{other}" for other in range(number + 1, count)]
    targets = {outcome: draw(_one_of(*later, *later, TERMINAL)) for outcome in KINDS[kind].outcomes}
    fields: dict[str, Any] = {
        "timeout_seconds": draw(TIMEOUTS),
        "max_retries": draw(RETRIES),
        "retry_backoff": draw(BACKOFFS),
        "retry_delay_seconds": draw(DELAYS),
    }
    if kind == "condition":
        earlier = draw(st.integers(0, number))  # its own or a later one's output is not there: it cannot be evaluated
        fields["params"] = {"expr": draw(_one_of("sample(0.5)", f"s{earlier}.value < 5", "now() > 'x'"))}
    elif kind == "request_human_review" and draw(st.booleans()):
        fields["params"] = {"module": True}
    elif kind == "emit_final":
        targets = dict.fromkeys(targets, TERMINAL)
    return step(kind, targets, **fields)


def happenings(*, most: int) -> st.SearchStrategy[list[tuple[str, int]]]:
    """Each with a number that chooses whatever there is to choose: seconds that pass, which earlier step, a verdict."""
    common = [name for name in HAPPENINGS if name not in RARE] * 3
    return st.lists(st.tuples(st.sampled_from(common + list(RARE)), st.integers(0, 1000)), max_size=most)


def verdicts() -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(("allow",) * 4 + VERDICTS), min_size=1, max_size=12)
