"""`make chaos [SECONDS=…] [SEED=…]`: runs it. `python -m bench.chaos check history.jsonl`: judges a history."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from random import SystemRandom

from bench.chaos.check import check, figures
from bench.chaos.history import History, read_history
from bench.chaos.run import chaos_run
from bench.record import record


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="start a stack, use and break it, check what came of it")
    run.add_argument("--seconds", type=float, default=120)
    run.add_argument("--seed", type=int, default=None, help="the same seed makes the same operations and faults")
    run.add_argument("--history", type=Path, default=None, help="where the history is written")
    run.add_argument("--record", action="store_true", help="add the figures to docs/measurements.md")
    judge = verbs.add_parser("check", help="check a history")
    judge.add_argument("history", type=Path)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.verb == "check":
        return judged(options.history)
    seed = SystemRandom().randrange(10**6) if options.seed is None else options.seed
    path = options.history or Path(tempfile.gettempdir()) / f"holdpoint-chaos-{seed}-{int(time.time())}.jsonl"
    print(f"seed {seed}, {options.seconds:.0f} s, history {path}", flush=True)
    history = History(path)
    try:
        chaos_run(history=history, seconds=options.seconds, seed=seed)
    finally:
        history.close()
    code = judged(path)
    if options.record:
        record(name=f"chaos, {options.seconds:.0f} s, seed {seed}", figures=figures(read_history(path)))
    if code:
        print(f"Again: make chaos SECONDS={options.seconds:.0f} SEED={seed}")
    return code


def judged(path: Path) -> int:
    lines = read_history(path)
    print(json.dumps(figures(lines), indent=2))
    broken = check(lines)
    for one in broken[:50]:
        print(f"BROKEN {one.rule}: {one.what}")
    print(f"{len(broken)} broken rules" if broken else "Nothing is broken.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
