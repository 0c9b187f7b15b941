"""Why a start ends early."""


class StartError(Exception):
    """Holdpoint cannot start; the message is one line for the person at the terminal."""


class StopRequested(Exception):
    """Ctrl-C or SIGTERM arrived while something was still starting."""
