"""The `holdpoint` command: what operators look at and do from a shell, with a key that may.

Exit codes: 0 done; 1 the server said no; 2 the command line is not right or a setting is missing; 3 only a signed-in
person may do this; 4 no answer, or busy: try again later.
"""

import sys
from collections.abc import Sequence

from holdpoint_client.cli.output import Screen, printable
from holdpoint_client.cli.parser import parse_arguments
from holdpoint_client.client import Holdpoint
from holdpoint_client.errors import HoldpointError, OutcomeUnknown, Refused, SettingMissing, TryLater, Unreachable

OK, REFUSED, USAGE, PEOPLE_ONLY, LATER = range(5)


def main(arguments: Sequence[str] | None = None) -> int:
    """For the script that pip makes: its return value is the exit code."""
    options = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    screen = Screen(json=options.json)
    try:
        with Holdpoint(options.url) as client:
            return int(options.command(client, options, screen) or OK)
    except SettingMissing as error:
        return screen.fail(str(error), USAGE)
    except (Unreachable, TryLater) as error:
        return screen.fail(error_in_words(error), LATER)
    except (Refused, OutcomeUnknown, HoldpointError) as error:
        return screen.fail(error_in_words(error), REFUSED)
    except BrokenPipeError:  # `holdpoint … | head`
        sys.stderr.close()
        return OK
    except KeyboardInterrupt:
        return screen.fail("interrupted", 130)


def error_in_words(error: HoldpointError) -> str:
    """In plain words, with the page that helps."""
    if not isinstance(error, Refused):
        return printable(str(error))
    problem, lines = error.problem, [printable(str(error))]
    if scope := problem.more.get("required_scope"):
        lines.append(f"The key needs the scope {printable(str(scope))}, or only people may do this.")
    if error.retry_after is not None:
        lines.append(f"Try again in {error.retry_after:.0f} seconds.")
    if problem.ours:
        lines.append(f"Help: {printable(problem.type)}")
    return "\n".join(lines)
