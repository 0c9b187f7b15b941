"""Named points at which a test kills the process. Inert unless the demo is allowed and the variable names the point."""

import os
import signal

from django.conf import settings

VARIABLE = "HOLDPOINT_CRASH_AT"


def crash_point(name: str) -> None:
    if os.environ.get(VARIABLE) == name and settings.DEMO_ALLOWED:
        os.kill(os.getpid(), signal.SIGKILL)
