"""An executor: does what was released, one after the other, until SIGTERM.

HOLDPOINT_URL=… HOLDPOINT_EXECUTOR_KEY=… python executor.py [--seconds-per-action 2]
"""

import argparse
import logging
import sys
import time

from holdpoint_client import Executor, Holdpoint, Lease, NotDone, Success


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds-per-action", type=float, default=0.0)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)

    def handle(lease: Lease) -> Success:
        """Returning means done. `NotDone` means certainly not done. Any other error: nobody knows, a person looks."""
        action = lease.attempt.data
        print(f"begin {action['operation']} on {action['target_ref']}", flush=True)
        if action["operation"] == "example.fail":
            raise NotDone("the receiver said no")
        ends = time.monotonic() + options.seconds_per_action
        while time.monotonic() < ends:
            lease.check()  # between the parts of long work: stop when somebody else may be at it
            time.sleep(0.05)
        print(f"end {action['target_ref']}", flush=True)
        return Success({"reference": f"done-{lease.attempt.id[:8]}"})

    with Holdpoint() as client:
        executor = Executor(client, handle, poll=(0.2, 2.0))
        print("ready", flush=True)
        executor.run()
    print(f"stopped after {executor.done} reports", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
