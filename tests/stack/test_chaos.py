"""A short chaos run: a whole stack is used and broken at random, and its record is checked. `make chaos` is the long
one."""

import sys
from pathlib import Path

import pytest

from bench.chaos.check import check, figures
from bench.chaos.history import History, read_history
from bench.chaos.run import chaos_run

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]
# Always the same faults, so that a failure is this change's: PostgreSQL, Valkey and a worker are killed, and Valkey's
# files cannot grow.
SEED, SECONDS = 290, 25


def test_a_stack_that_is_used_and_broken_at_random_loses_and_doubles_nothing(
    seasoned_home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl"
    history = History(path)
    try:
        chaos_run(history=history, seconds=SECONDS, seed=SEED, seasoned=seasoned_home, rest=20)
    finally:
        history.close()
    lines = read_history(path)
    broken, told = check(lines), figures(lines)
    sys.stdout.write(f"\nchaos: {told}\n")
    assert broken == [], (f"make chaos SECONDS={SECONDS} SEED={SEED}", told)
    assert told["operations"] > 50
    assert told["faults"] >= 3
