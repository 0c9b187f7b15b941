"""Errors of the embedded servers, each one line for the person at the terminal."""


class EmbeddedServerError(Exception):
    """An embedded server cannot be started or stopped; the message is complete and fits on one line."""
