"""`python -m config.supervisor run` and `python -m config.supervisor exec --throwaway -- command`."""

import argparse
import os
import sys
from collections.abc import Sequence

from config.supervisor.run import stack_run
from config.supervisor.throwaway import run_throwaway


def main(arguments: Sequence[str]) -> int:
    """Parses the command line and runs it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m config.supervisor")
    commands = parser.add_subparsers(dest="verb", required=True)
    commands.add_parser("run", help="run Holdpoint until Ctrl-C")
    execute = commands.add_parser("exec", help="run a command with PostgreSQL and Valkey at hand")
    execute.add_argument("--throwaway", action="store_true", required=True, help="servers in a temporary folder")
    execute.add_argument("--durable", action="store_true", help="with the settings of real use, as for benchmarks")
    execute.add_argument("command", nargs="+", metavar="-- command")
    options = parser.parse_args(arguments)
    if options.verb == "run":
        return stack_run(environ=os.environ)
    return run_throwaway(command=options.command, durable=options.durable, environ=os.environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
