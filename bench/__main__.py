"""`make bench`: runs all benchmarks, or the named ones, and appends their figures to docs/measurements.md."""

import importlib
import json
import sys

from bench.record import record

NAMES = ["evaluate", "intake", "ledger", "workflows", "console", "edge", "verify", "webhooks"]
NAMES += ["idle", "fairness", "holds"]


def main(names: list[str]) -> None:
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        figures = importlib.import_module(f"bench.{name}").run()
        print(json.dumps(figures, indent=2), flush=True)
        record(name=f"bench {name}", figures=figures)


if __name__ == "__main__":
    main(sys.argv[1:])
