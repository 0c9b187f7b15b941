"""Named points at which a test kills the process. Inert unless the demo is allowed and the variable names the point."""

import os
import signal

from governance.configured import demo_allowed

VARIABLE = "HOLDPOINT_CRASH_AT"


def crash_point(name: str) -> None:
    if os.environ.get(VARIABLE) == name and demo_allowed():
        os.kill(os.getpid(), signal.SIGKILL)
